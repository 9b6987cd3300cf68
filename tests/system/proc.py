"""Information from /proc on processes that a test started."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """False also for an orphan that is dead and that init has not yet reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def program(pid: int) -> str:
    """Name of a process's program; empty when it ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """Children of a process; none when it ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    return [found for child in children(pid) for found in (child, *descendants(child))]
