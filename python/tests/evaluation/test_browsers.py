"""The key ``browser`` of a user."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from wirepaint.evaluation.browsers import Browser, BrowserTable

ADAPTER: TypeAdapter[BrowserTable] = TypeAdapter(Browser)


def test_a_name_is_a_table_with_the_defaults():
    assert ADAPTER.validate_python("light") == BrowserTable(engine="light", connections=6, pipelining=1)
    assert ADAPTER.validate_python("chromium").engine == "chromium"
    assert ADAPTER.validate_python({"engine": "light", "pipelining": 8}).pipelining == 8


@pytest.mark.parametrize(
    "written",
    [
        "firefox",
        {"engine": "light", "connections": 0},
        {"engine": "light", "connections": 9},
        {"engine": "light", "pipelining": 9},
        {"engine": "light", "coalesce": True},
        {"connections": 4},
        {"engine": "chromium", "pipelining": 1},
    ],
)
def test_what_no_browser_can_have_is_refused(written: Any):
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(written)
