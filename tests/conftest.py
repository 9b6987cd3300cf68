"""What the tests across rooms share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def root() -> None:
    """Skips, by name and aloud, where the testbed cannot run."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces cannot be made without it")
