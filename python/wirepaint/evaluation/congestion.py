"""Congestion controls by name: those built into the running kernel and ours, with their parameters."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from wirepaint import dataplane
from wirepaint.errors import UsageError
from wirepaint.evaluation.reading import nearest, show

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LINUX = {
    *("reno", "bic", "cubic", "westwood", "htcp", "hybla", "vegas", "nv", "scalable", "lp", "veno", "yeah"),
    *("illinois", "dctcp", "cdg", "bbr", "bbr2", "bbr3"),
}
"""Names that Linux itself may register; others that the kernel lists are some program's BPF."""


class Congestion(BaseModel):
    """A congestion control as a run asks for it.

    ``algorithm`` is the name of a file in congestion/algorithms, or None for one of the kernel's
    own; ``parameters`` differ from the algorithm's defaults.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    algorithm: str | None
    parameters: dict[str, int] = {}


@cache
def of_kernel() -> tuple[str, ...]:
    """Names that this kernel has built in or loaded."""
    try:
        return tuple(name for name in _AVAILABLE.read_text().split() if name in _LINUX)
    except OSError:
        return ("reno", "cubic")


@cache
def ours() -> dict[str, dict[str, dict[str, Any]]]:
    """Algorithms of congestion/ by name, each with its parameters by name (default, summary)."""
    listed = dataplane.call("cc", "list", "--json")
    return {entry["name"]: {p["name"]: p for p in entry.get("parameters", [])} for entry in listed}


def resolve(name: str, parameters: dict[str, int], place: str) -> Congestion:
    """The congestion control of a name and parameters; raises UsageError at ``place``."""
    if name in of_kernel():
        if parameters:
            raise UsageError(
                f"{place}.{next(iter(parameters))}",
                show(next(iter(parameters.values()))),
                f"no parameter: {name} is the kernel's own",
            )
        return Congestion(name=name, algorithm=None)
    algorithms = ours()
    if name not in algorithms:
        raise UsageError(place, show(name), nearest(name, [*of_kernel(), *algorithms]))
    for parameter in parameters:
        if parameter not in algorithms[name]:
            raise UsageError(
                f"{place}.{parameter}", "an unknown parameter", nearest(parameter, algorithms[name])
            )
    return Congestion(name=name, algorithm=name, parameters=parameters)


def slug(text: str) -> str:
    """``text`` as a part of a run key: only a-z, 0-9, dot, underscore and hyphen."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.")
