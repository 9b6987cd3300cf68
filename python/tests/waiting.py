"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def holds_within(seconds: float, condition: Callable[[], object]) -> bool:
    """Whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
