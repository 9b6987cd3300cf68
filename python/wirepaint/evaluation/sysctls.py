"""Checks the kernel settings of an evaluation: each back end must have them."""

from __future__ import annotations

import json
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from wirepaint import dataplane
from wirepaint.errors import RunFailed, UsageError
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
    """Lets the data plane simulate one byte with them: it checks the names and values of its model."""
    with tempfile.TemporaryDirectory(prefix="wirepaint-") as folder:
        run = {
            "format": 1,
            "id": "sysctls",
            "seed": 1,
            "trace_dir": folder,
            "work_dir": folder,
            "congestion": [{"algorithm": "std", "name": "std"}],
            "simulation": {
                "flows": [
                    {
                        "kind": {"kind": "bulk", "bytes": 1},
                        "congestion": "std",
                        "route": {"down": [], "up": []},
                    }
                ],
                "tcp": {"sysctls": {name: str(value) for name, value in sysctls.items()}},
                "until_ns": 0,
            },
        }
        file = Path(folder) / "run.json"
        file.write_text(json.dumps(run))
        try:
            dataplane.call("simulate", str(file))
        except RunFailed as failure:
            refusal = re.search(r"simulation\.tcp\.sysctls\.(\S+): found (.*), accepted: (.*)", str(failure))
            if refusal is None:
                raise
            name, found, accepted = refusal.groups()
            if accepted.startswith("one of "):
                known = nearest(name, accepted.removeprefix("one of ").split(", "))
                raise UsageError(place, show(name), f"for the simulator {known}") from None
            raise UsageError(f"{place}.{name}", found, accepted) from None
