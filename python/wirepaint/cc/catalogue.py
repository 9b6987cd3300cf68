"""Finds congestion controls: files of congestion/algorithms, the user's own, and Linux's."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from wirepaint import dataplane
from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion
from wirepaint.reading import nearest, show

Entry = dict[str, Any]


@cache
def ours() -> dict[str, Entry]:
    """The shipped congestion controls by name."""
    return {entry["name"]: entry for entry in dataplane.call("cc", "list")}


def everything() -> list[Entry]:
    """The shipped ones, then those built into this kernel, each with ``where`` it runs."""
    built_in = [
        {
            "name": name,
            "where": ["kernel"],
            "summary": "built into this Linux",
            "parameters": [],
            "sysctls": {},
        }
        for name in congestion.of_kernel()
    ]
    return [entry | {"where": ["kernel", "native"]} for entry in ours().values()] + built_in


def find(name: str) -> Entry:
    """The entry of a shipped name, or of a C file; raises UsageError."""
    if not name.endswith(".c"):
        if name in ours():
            return ours()[name]
        beside = f' (did you mean "{name}.c"?)' if Path(f"{name}.c").is_file() else ""
        accepted = f"{nearest(name, ours())}, or the path of a C file{beside}"
        raise UsageError("NAME", show(name), accepted)
    if not Path(name).is_file():
        raise UsageError(name, "no such file", "a C file (wirepaint cc new NAME writes one)")
    return dataplane.control(Path(name), name)


def header(name: str) -> str:
    """The comment at the head of an algorithm's source, without comment marks; it explains the algorithm."""
    source = Path(name).read_text() if name.endswith(".c") else source_of(name)
    lines = []
    inside = False
    for line in source.splitlines():
        if line.startswith("/* SPDX"):
            continue
        inside |= line.startswith("/*")
        if not inside:
            continue
        if line.rstrip().endswith("*/"):
            lines.append(
                line.rstrip().removesuffix("*/").removeprefix("/*").removeprefix(" *").removeprefix(" ")
            )
            break
        lines.append(line.removeprefix("/*").removeprefix(" *").removeprefix(" "))
    return "\n".join(lines).strip("\n").rstrip()


def source_of(name: str) -> str:
    """C source of a shipped algorithm."""
    return subprocess.run(
        [dataplane.program(), "cc", "source", name], capture_output=True, text=True, check=True
    ).stdout
