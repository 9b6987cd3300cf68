"""Congestion controls by name: those built into the running kernel and ours, with their parameters."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from wirepaint import dataplane
from wirepaint.errors import UsageError
from wirepaint.evaluation.model import CongestionTable
from wirepaint.evaluation.reading import nearest, show

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LINUX = {
    *("reno", "bic", "cubic", "westwood", "htcp", "hybla", "vegas", "nv", "scalable", "lp", "veno", "yeah"),
    *("illinois", "dctcp", "cdg", "bbr", "bbr2", "bbr3"),
}
"""Names that Linux itself may register; others that the kernel lists are some program's BPF."""


class Congestion(BaseModel):
    """A congestion control as a scenario asks for it.

    ``label`` is its name in the scenario. ``own`` tells a file of congestion/algorithms from one of
    the kernel's own; ``parameters`` differ from the algorithm's defaults.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    name: str
    own: bool
    parameters: dict[str, int]
    sysctls: dict[str, int | str]


@cache
def of_kernel() -> tuple[str, ...]:
    """Names that this kernel has built in or loaded."""
    return tuple(name for name in _AVAILABLE.read_text().split() if name in _LINUX)


def registered_by_runs() -> list[str]:
    """Names that runs registered, ``<algorithm>_<run id>``, and that are there now."""
    pattern = re.compile(rf"({'|'.join(name[:9] for name in ours())})_[a-z0-9]{{5}}")
    return [name for name in _AVAILABLE.read_text().split() if pattern.fullmatch(name)]


@cache
def ours() -> dict[str, dict[str, dict[str, Any]]]:
    """Algorithms of congestion/ by name, each with its parameters by name (min, max, summary)."""
    listed = dataplane.call("cc", "list")
    return {entry["name"]: {p["name"]: p for p in entry.get("parameters", [])} for entry in listed}


NEEDS: dict[str, dict[str, int | str]] = {"std": {"net.ipv4.tcp_slow_start_after_idle": 0}}
"""Sysctls without which an algorithm of ours is not itself: with 1 the kernel's own rule for idle
connections runs beside the algorithm's."""


def resolve(value: str | CongestionTable, place: str) -> Congestion:
    """The congestion control that an evaluation names; raises UsageError at ``place``."""
    table = CongestionTable.model_validate({"name": value}) if isinstance(value, str) else value
    name, parameters = table.name, dict(table.__pydantic_extra__ or {})
    own = name not in of_kernel()
    if own and name not in ours():
        where = place if isinstance(value, str) else f"{place}.name"
        accepted = nearest(name, [*of_kernel(), *ours()])
        if name in _LINUX:
            accepted += f" ({name} after: sudo modprobe tcp_{name})"
        raise UsageError(where, show(name), accepted)
    known = ours()[name] if own else {}
    for key, number in parameters.items():
        if key not in known:
            accepted = nearest(key, ["name", "title", "sysctls", *known])
            raise UsageError(f"{place}.{key}", f"a key that {name} does not have", accepted)
        least, most = known[key]["min"], known[key]["max"]
        if not least <= number <= most:
            accepted = f"{least} to {most} ({known[key]['summary']})"
            raise UsageError(f"{place}.{key}", str(number), accepted)
    label = table.title or "-".join([name, *(f"{key}-{number}" for key, number in parameters.items())])
    sysctls = (NEEDS.get(name, {}) if own else {}) | table.sysctls
    return Congestion(label=slug(label), name=name, own=own, parameters=parameters, sysctls=sysctls)


def slug(text: str) -> str:
    """``text`` as a part of a run key: only a-z, 0-9, dot, underscore and hyphen."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.")
