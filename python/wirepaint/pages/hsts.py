"""Hosts that a browser always asks by https: its preloaded HSTS list."""

from __future__ import annotations

from functools import cache
from pathlib import Path

LIST = Path(__file__).with_name("preloaded.txt")
"""Its head explains the lines and the source of the names."""


def preloaded(host: str) -> bool:
    """True for a host that Chromium asks only by https (RFC 6797, section 12.3)."""
    if len(host) > 253:
        return False
    names = _names()
    parents = [host[at:] for at, letter in enumerate(host) if letter == "."]
    return f"{host}!" in names or host in names or any(p in names or p[1:] in names for p in parents)


@cache
def _names() -> frozenset[str]:
    lines = LIST.read_text(encoding="ascii").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
