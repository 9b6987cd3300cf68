"""Quantities are read as users mean them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from wirepaint.evaluation import quantities as q


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (q.rate, "25 Mbit/s", 25_000_000),
        (q.rate, "1.6Mbit/s", 1_600_000),
        (q.rate, "780 kbit/s", 780_000),
        (q.rate, "1 Gbit/s", 10**9),
        (q.time, "13 ms", 13_000_000),
        (q.time, "0 ms", 0),
        (q.time, "562.5 ms", 562_500_000),
        (q.time, "20 µs", 20_000),
        (q.time, "2 min", 120 * 10**9),
        (q.size, "64 kB", 64_000),
        (q.size, "64 KiB", 65_536),
        (q.share, "1 %", 0.01),
        (q.share, "0.1%", 0.001),
        (q.share, 0.25, 0.25),
        (q.share, 1, 1.0),
    ],
)
def test_a_quantity_is_read(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (q.rate, "25 Mbps"),
        (q.rate, "25"),
        (q.rate, 25),
        (q.rate, "-1 Mbit/s"),
        (q.rate, "0 Mbit/s"),
        (q.rate, "1e3 Mbit/s"),
        (q.rate, "99999999999999 Gbit/s"),
        (q.time, "13"),
        (q.time, "13 m"),
        (q.time, "nan ms"),
        (q.size, "64 K"),
        (q.share, "101 %"),
        (q.share, 1.5),
        (q.share, float("nan")),
        (q.share, True),
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(read, text):
    with pytest.raises(PydanticCustomError) as refused:
        read(text)
    assert "such as" in refused.value.context["accepted"]  # pyright: ignore


@given(st.text(max_size=30))
def test_any_other_text_is_refused_and_never_raises_otherwise(text: str):
    for read in (q.rate, q.time, q.size, q.share):
        with suppress(PydanticCustomError):
            assert read(text) >= 0


@given(st.integers(min_value=0, max_value=2**53), st.sampled_from(sorted(q.TIMES)))
def test_whole_numbers_are_exact(number: int, unit: str):
    expected = number * q.TIMES[unit]
    if expected < 2**63:
        assert q.time(f"{number} {unit}") == expected
