"""Fixtures that the tests of the whole project share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from wirepaint.metrics import enrol

pytest_plugins = ["disturbed", "reached"]
NEEDS_THE_TESTBED = {"root", "root_of_module", "cells"}
ROOT_ALONE = {"test_verifier.py", "test_congestion_of_linux.py"}
"""Files that need root and neither cells nor quiet."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what must run alone: the testbed is locked while it is used."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if NEEDS_THE_TESTBED.intersection(fixtures) and item.path.name not in ROOT_ALONE:
            item.add_marker("testbed")


@pytest.fixture(autouse=True)
def no_metrics_of_others() -> Iterator[None]:
    """Forgets the metrics of one's own that the test has read."""
    yield
    enrol([], "")


@pytest.fixture
def root() -> None:
    """Skips visibly, with the reason, if the testbed cannot run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces cannot be made without it")
