"""Checks the kernel settings of an evaluation: each back end must have them."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from wirepaint import dataplane
from wirepaint.errors import UsageError
from wirepaint.reading import hint, nearest, refused, show

_KERNEL = Path("/proc/sys")
_NAME = re.compile(r"net\.(?:ipv4|core)(?:\.[A-Za-z0-9_-]{1,64}){1,4}")


def _only_of_the_network(sysctls: dict[str, int | str]) -> dict[str, int | str]:
    for name, value in sysctls.items():
        if not _NAME.fullmatch(name):
            raise refused('names such as "net.ipv4.tcp_slow_start_after_idle"', show(name))
        number = isinstance(value, int)
        if not (-(2**63) <= value < 2**63 if number else re.fullmatch(r"[\t\x20-\x7e]{0,200}", value)):
            raise refused("a number of 64 bits or a line of text", show(value), name)
    return sysctls


Sysctls = Annotated[dict[str, int | str], Field(max_length=100), AfterValidator(_only_of_the_network)]
"""Kernel settings of the client's and the server's namespace by name."""


def check(sysctls: Mapping[str, int | str], place: str, backends: Sequence[str]) -> None:
    """Raises UsageError at ``place`` for a setting that a back end lacks."""
    if "testbed" in backends and (_KERNEL / "net").is_dir():
        for name in sysctls:
            _check_kernel(name, place)
    if "simulator" in backends and sysctls:
        _check_simulator(sysctls, place)


def _check_kernel(name: str, place: str) -> None:
    """Checks against this namespace, which has all settings of a new network namespace."""
    path = _KERNEL / name.replace(".", "/")
    if _can_be_set(path):
        return
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    known = [".".join(file.relative_to(_KERNEL).parts) for file in beside if _can_be_set(file)]
    raise UsageError(place, show(name), f"a setting that this kernel lets one change{hint(name, known)}")


def _can_be_set(path: Path) -> bool:
    return path.is_file() and bool(path.stat().st_mode & stat.S_IWUSR)


def _check_simulator(sysctls: Mapping[str, int | str], place: str) -> None:
    """Checks against the settings of the simulator's model, which the data plane prints."""
    known = _of_simulator()
    for name, value in sysctls.items():
        if name not in known:
            raise UsageError(place, show(name), f"for the simulator {nearest(name, known)}")
        if accepted := _refusal(known[name], str(value)):
            raise UsageError(f"{place}.{name}", show(str(value)), accepted)


@cache
def _of_simulator() -> dict[str, dict[str, Any]]:
    return dataplane.call("schema")["sysctls"]


def _refusal(form: Mapping[str, Any], value: str) -> str | None:
    """What the simulator accepts, unless it is this value."""
    words = value.split()
    numbers = [int(word) for word in words if re.fullmatch(r"[0-9]{1,20}", word)]
    whole = len(numbers) == len(words)
    match form["form"]:
        case "number":
            if whole and len(numbers) == 1 and form["least"] <= numbers[0] <= form["most"]:
                return None
            bounded = form["most"] < 2**64 - 1
            return f"{form['least']} to {form['most']}" if bounded else f"a number from {form['least']}"
        case "buffer":
            if whole and len(numbers) == 3 and 0 < numbers[0] <= numbers[1] <= numbers[2]:
                return None
            return "three numbers of bytes in ascending order"
    return None
