"""Figures: the values and intervals that they draw."""

from __future__ import annotations

import polars as pl
import pytest

from wirepaint.statistics import mean
from wirepaint.studies import drawing
from wirepaint.studies.model import Figure

FIGURE = Figure.model_validate(
    {
        "id": "1",
        "title": "t",
        "caption": "c",
        "sweep": "s",
        "x": "x",
        "x_title": "x",
        "y": "load_s",
        "y_title": "y",
    }
)
LOADS = {"small": [1.0, 1.1, 0.9], "large": [9.0, 9.3, 8.7]}


def pages(loads: dict[str, list[float]]) -> pl.DataFrame:
    """Load times of pages by visit, one series at one x."""
    return pl.DataFrame(
        [
            {"series": "a", "x": 1, "page": page, "seed": seed, "load_s": load}
            for page, values in loads.items()
            for seed, load in enumerate(values, 1)
        ]
    )


def test_an_interval_over_several_pages_is_that_of_visits_and_not_the_spread_of_the_pages() -> None:
    [found] = drawing.data(FIGURE, {"s": pages(LOADS)}).to_dicts()
    visits = mean([5.0, 5.2, 4.8])
    assert (found["y"], found["seeds"]) == (pytest.approx(5.0), 3)
    assert (found["low"], found["high"]) == (pytest.approx(visits.low), pytest.approx(visits.high))


def test_a_visit_that_lacks_a_page_is_left_out() -> None:
    [found] = drawing.data(FIGURE, {"s": pages(LOADS | {"large": [9.0, 9.3]})}).to_dicts()
    assert (found["y"], found["seeds"], found["low"]) == (pytest.approx(5.1), 2, None)
