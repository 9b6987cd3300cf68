"""Which command started which process.

A command puts its identity into its environment, and its child processes inherit it. A process
whose command is dead is a leftover.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "WIREPAINT_OWNER"


def claim() -> None:
    """Marks every process that this one starts from now on as its own."""
    os.environ[VARIABLE] = identity(os.getpid())


def living() -> list[int]:
    """Pids of the commands that have processes running."""
    return sorted({int(owner.partition(".")[0]) for _, owner in _owned() if is_alive(owner)})


def orphans() -> list[tuple[int, str]]:
    """Processes of dead commands: pid and name. An ordinary user sees only their own."""
    return [(pid, _name(pid)) for pid, owner in _owned() if not is_alive(owner)]


def _owned() -> Iterator[tuple[int, str]]:
    mark = f"{VARIABLE}=".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in environment:
            if variable.startswith(mark):
                yield int(entry.name), variable.removeprefix(mark).decode("ascii", "replace")


def identity(pid: int) -> str:
    """Pid and start time of a process, in clock ticks since boot: a later one with that pid has another."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return f"{pid}.{stat.rpartition(')')[2].split()[19]}"


def is_alive(owner: str) -> bool:
    """Whether a process with that :func:`identity` runs."""
    pid = owner.partition(".")[0]
    try:
        return pid.isdigit() and identity(int(pid)) == owner
    except OSError:
        return False


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
