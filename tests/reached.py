"""Slow tests end with CI's time: what would begin after ``SLOW_TESTS_UNTIL`` is skipped by name."""

from __future__ import annotations

import os
import time

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = os.environ.get("SLOW_TESTS_UNTIL")
    if until and item.get_closest_marker("slow") and time.time() > float(until):
        pytest.skip(f"{item.nodeid}: CI had no time left for it")
