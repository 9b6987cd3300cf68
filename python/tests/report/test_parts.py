"""The parts of the report by themselves: sentences, drawings, packed visits."""

# ruff: noqa: RUF001 (the report prints a true minus sign)

from __future__ import annotations

import base64
import gzip
import json

import numpy as np
import polars as pl
import pytest

from wirepaint.report import svg, visits, words
from wirepaint.report.answer import Clause, evidence, plain, sentence
from wirepaint.report.render import unbroken
from wirepaint.statistics import Interval

FASTER = Clause("faster", "9 % faster", ("3g",), "−310 ms, 95 % interval −420 … −190")
SAME = Clause("same", "no different", ("lte",), "95 % interval within ±2 %")
UNDECIDED = Clause("too few visits", "not told apart", ("sat",), "+1 %, 95 % interval −4 … +6")


def text(*said: Clause) -> str:
    return "".join(part.text for part in sentence("fld", "cubic", said))


def test_a_difference_is_told_with_its_size_and_interval() -> None:
    expected = "fld loads these pages 9 % faster than cubic on 3g (−310 ms, 95 % interval −420 … −190)"
    assert text(FASTER) == f"{expected}."
    assert text(FASTER, SAME) == f"{expected}, and no differently on lte (95 % interval within ±2 %)."


def test_sameness_is_told_without_a_difference() -> None:
    assert text(SAME) == "fld loads these pages no differently than cubic on lte (95 % interval within ±2 %)."


def test_visits_that_do_not_tell_are_said_so() -> None:
    numbers = "(+1 %, 95 % interval −4 … +6)"
    assert text(UNDECIDED) == (
        f"The visits do not tell whether fld loads these pages faster than cubic on sat {numbers}."
    )
    assert text(SAME, UNDECIDED).endswith(f"±2 %). The visits do not tell on sat {numbers}.")


def test_pages_that_disagree_are_said_so() -> None:
    mixed = Clause("mixed", "not told apart", ("dsl",), "+1 %, interval −9 … +9")
    assert text(FASTER, mixed, UNDECIDED).endswith(
        f". The pages disagree on dsl ({mixed.evidence})."
        f" The visits do not tell on sat ({UNDECIDED.evidence})."
    )
    assert text(mixed).startswith("The pages disagree whether fld loads these pages faster than cubic on dsl")


def test_a_series_alone_is_told_with_its_times() -> None:
    times = {"lte": Interval(824.0, 801.0, 850.0), "3g": Interval(3070.0)}
    told = " ".join("".join(part.text for part in plain("cubic", times)).split())
    assert told == "cubic loads these pages in 824 ms on lte (95 % interval 801 ms … 850 ms), 3.07 s on 3g."


@pytest.mark.parametrize(
    ("interval", "unit", "expected"),
    [
        (Interval(-310.4, -420.2, -190.0), "ms", "−310 ms"),
        (Interval(-0.0912, -0.2, 0.1), "share", "−9.1 %"),
        (Interval(0.0, -1.0, 1.0), "ms", "±0.0 ms"),
        (Interval(0.03), "share", "+3.0 %"),
        (Interval(-1600.4), "ms", "−1600 ms"),
        (Interval(12_345.6), "ms", "+12 346 ms"),
        (Interval(0.25), "1", "+0.25"),
    ],
)
def test_a_change_has_sign_and_unit(interval: Interval, unit: str, expected: str) -> None:
    assert words.change(interval, unit).replace(words.THIN, " ") == expected


def test_the_bounds_of_an_interval_have_one_unit_and_stay_on_one_line() -> None:
    said = evidence(Interval(0.055, -0.015, 0.46), "share")
    assert " ".join(said.split()) == "+5.5 %, interval −1.5 … +46 %"
    assert said.count(" ") == 1, "a line may end after the difference only"


def test_no_line_ends_within_a_name_or_between_a_number_and_its_unit() -> None:
    told = unbroken("Off by: <b>-news 3.0 %, news-medium 12,345 ms.", ["news", "<b>-news", "news-medium"])
    assert '<span class="name">news-medium</span> 12\u202f345\u00a0ms.' in told
    assert '<span class="name">&lt;b&gt;-news</span> 3.0\u00a0%,' in told


def test_an_interval_that_does_not_exist_is_not_invented() -> None:
    assert words.span(Interval(1.0), "ms") == "too few visits"


def test_an_unknown_check_is_still_explained() -> None:
    entry = {"check": "moon_phase", "severity": "note", "found": "full", "expected": "new"}
    assert words.reason(entry) == "Check moon phase. Found full; expected new."


def test_a_check_of_the_data_plane_is_explained_with_or_without_spaces() -> None:
    meaning = words.CHECKS["packet_conservation"]
    for check in ("packet conservation", "packet_conservation"):
        entry = {"check": check, "severity": "invalid", "found": "2 packets down", "expected": "none"}
        assert words.reason(entry) == f"{meaning} Found 2 packets down; expected none."


DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg"><clipPath id="a"/><path clip-path="url(#a)" fill="#fff"/></svg>'
)


def test_ids_of_a_drawing_are_its_own() -> None:
    inlined = svg.inline(DRAWING, "Title", "box-")
    assert 'id="box-a"' in inlined and 'clip-path="url(#box-a)"' in inlined and 'fill="#fff"' in inlined


def test_a_drawing_keeps_nothing_that_runs_or_loads() -> None:
    harmful = DRAWING.replace("<path", '<path onclick="x()" href="http://example.org" style="fill:url(x)"')
    inlined = svg.inline(harmful, '"><script>', "p-")
    assert not any(word in inlined for word in ("onclick", "href", "style", "<script"))
    with pytest.raises(ValueError, match="<script>"):
        svg.inline(DRAWING.replace("clipPath", "script"), "Title", "p-")


def test_packed_data_is_what_was_packed() -> None:
    value = {"url": "https://example.org/é?</script>", "times": [1, 2, None]}
    packed = visits.pack(value)
    assert "<" not in packed
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == value


def test_a_connection_says_how_many_hosts_its_group_spans() -> None:
    rows = [
        (0, "10.65.0.0/24", 0, "10.65.0.1"),
        (1, "10.65.0.0/24", 0, "10.65.0.2"),
        (2, "10.65.1.0/24", 0, "10.65.1.1"),
        (0, "10.65.0.0/24", 1, "10.65.0.1"),
        (None, "10.65.1.0/24", 0, "10.65.1.1"),
    ]
    groups = pl.DataFrame(
        rows, ["connection", "server", "slot", "server_address"], orient="row"
    ).with_columns(
        algorithm=pl.lit("heracles"), congestion=pl.lit(None, pl.String), prefix=pl.lit("10.64.0.0/24")
    )
    assert visits.group_hosts(groups) == {0: 2, 1: 2, 2: 1}
    assert visits.group_hosts(groups.clear()) == visits.group_hosts(groups.drop("server")) == {}


def test_thinning_keeps_the_extremes_the_ends_and_each_change_of_state() -> None:
    rows = 20_000
    cwnd = (50 + 40 * np.sin(np.arange(rows) / 300)).astype(int)
    cwnd[7_777], cwnd[12_345] = 500, 1
    states = ["Open"] * rows
    states[9_000:9_003] = ["Recovery"] * 3
    frame = pl.DataFrame({"time": range(rows), "cwnd": cwnd, "in_flight": cwnd - 1, "state": states})
    kept = visits.thin(frame)
    assert {0, 7_777, 9_000, 9_003, 12_345, rows - 1} <= set(kept)
    assert len(kept) < 5 * visits.CONNECTION_BUCKETS
    assert kept == sorted(set(kept))
