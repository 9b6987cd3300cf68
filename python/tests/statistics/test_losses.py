"""Visits that do not count: their numbers by level, and their effect on a comparison."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import polars as pl
import pytest

from wirepaint import cli, report
from wirepaint.results import Results
from wirepaint.results.journal import CANNOT_COUNT, Journal, _change
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import agreement, compare, losses
from wirepaint.statistics.compare import command, compare_results


def timed_out(folder, chosen) -> None:
    """Makes chosen runs of a results folder ones that timed out."""
    runs = Results.open(folder).runs()
    book = Journal(folder)
    for row in runs.iter_rows(named=True):
        if chosen(SimpleNamespace(**row)):
            gone = {"verdict": None, "files": None, "reasons": "[]", "duration_ns": None}
            with book._transaction() as db:
                _change(db, row["run_key"], state="failed", kind="timeout", cause="no load event", **gone)
    book.close()


LIMIT = 60_000.0


def frame(values, late=()):
    """Visits of one page: ``values`` by level in ms; ``late`` has a level for each visit that timed out."""
    rows = [
        {"network": "lte", "congestion": level, "page": "a", "page_load_time": value, losses.LIMIT: None}
        for level, found in values.items() for value in found
    ]  # fmt: skip
    rows += [
        {"network": "lte", "congestion": level, "page": "a", "page_load_time": None, losses.LIMIT: LIMIT}
        for level in late
    ]
    schema = {"page_load_time": pl.Float64, losses.LIMIT: pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema)


FAST = [100.0, 101, 102, 103, 104, 105, 106]


def one(found, late=()):
    (row,) = compare(frame(found, late), "congestion", ["page-load-time"])
    return row


def test_a_timeout_ranks_behind_every_visit_that_loaded():
    left = {"cubic": FAST, "fld": FAST[:3]}
    without = one(left)
    row = one(left, late=["fld"] * 4)
    assert without.verdict == "too few visits" and without.effect < 0, "those that are left look fast"
    assert row.effect > 0
    slow = one({"cubic": FAST, "fld": [*FAST[:3], *[LIMIT] * 4]})
    assert (row.p, row.effect, row.shift) == (slow.p, slow.effect, slow.shift)
    assert (row.candidate.n, row.candidate.timed_out, row.baseline.timed_out) == (3, 4, 0)
    assert row.candidate.values == {"a": (100.0, 101.0, 102.0)}, "a timeout is never a number"
    assert row.candidate.median.value == 101
    assert "; 7 and 3 visits, and 0 and 4 that timed out, taken as longer than the limit;" in row.sentence


def test_a_level_that_always_timed_out_is_slower_and_has_no_median():
    row = one({"cubic": FAST}, late=["fld"] * 7)
    assert row.verdict == "slower" and row.p < 0.001
    assert (row.candidate.n, row.candidate.median, row.candidate.mean) == (0, None, None)
    assert row.baseline.median.value == 103
    assert row.shift_rel.low > 500
    json.dumps(row.as_dict(), allow_nan=False)


def test_levels_that_both_timed_out_are_alike():
    row = one({"cubic": FAST, "fld": FAST}, late=["cubic", "cubic", "fld", "fld"])
    assert row.effect == 0 and row.shift.value == 0


def test_a_timeout_says_nothing_of_a_paint():
    table = frame({"cubic": FAST, "fld": FAST}, late=["fld"] * 4)
    table = table.with_columns(first_contentful_paint=pl.col("page_load_time") / 2)
    (row,) = compare(table, "congestion", ["first-contentful-paint"])
    assert (row.candidate.n, row.candidate.timed_out, row.effect) == (7, 0, 0)


def test_medians_are_taken_over_pages_that_both_levels_loaded():
    table = pl.concat(
        [
            frame({"cubic": FAST, "fld": FAST}),
            frame({"cubic": [9000.0] * 7}, late=["fld"] * 7).with_columns(page=pl.lit("b")),
        ]
    )
    row = compare(table, "congestion", ["page-load-time"], by_page=False)[0]
    assert row.pages == ("a", "b") and row.left_out == ()
    assert row.baseline.median.value == row.candidate.median.value == 103


@pytest.fixture
def folder(results_folder):
    """cubic loses nothing; fld times out twice and fails once on 3g, and one of its visits is invalid."""

    def outcome(run):
        if run.congestion == "fld" and run.page == "large":
            if (run.network, run.visit) == ("3g", 3):
                return None
            if (run.network, run.visit) == ("lte", 2):
                return Outcome(
                    "invalid", [{"check": "bytes", "severity": "invalid", "found": 1, "expected": 2}]
                )
            if (run.network, run.visit) == ("lte", 3):
                return Outcome(
                    "suspect", [{"check": "steal", "severity": "suspect", "found": 1, "expected": 0}]
                )
        if run.page == "small" and run.visit == 5:
            return "not needed: interval narrower than 0.05 of the mean"
        return Outcome("valid")

    made = results_folder(lambda run: 1 + run.visit / 100, 5, outcome)
    timed_out(
        made,
        lambda run: (run.congestion, run.network, run.page) == ("fld", "3g", "large") and run.visit in (1, 2),
    )
    return made


def test_each_level_says_how_many_visits_count_and_what_the_others_were_lost_to(folder):
    results = Results.open(folder)
    cubic, fld = losses.by_level(losses.visits(results, ("valid",)), "congestion", ["cubic", "fld"])
    assert cubic.sentence == "cubic: 18 of 18 visits count."
    assert fld.sentence == "fld: 13 of 18 visits count; 2 timed out, 1 failed, 1 suspect, 1 invalid."
    assert (fld.lost, fld.timed_out, fld.failed, fld.left_out) == (5, 2, 1, {"suspect": 1, "invalid": 1})
    _, counted = losses.by_level(losses.visits(results, ("valid", "suspect")), "congestion", ["cubic", "fld"])
    assert (counted.counted, counted.left_out) == (14, {"invalid": 1})


def test_skipped_pages_are_lost_and_what_is_still_to_come_is_not(results_folder):
    def outcome(run):
        return f"{CANNOT_COUNT}slow" if run.page == "small" and run.congestion == "fld" else Outcome("valid")

    results = Results.open(results_folder(lambda run: 1.0, 3, outcome))
    found = losses.by_level(losses.visits(results, ("valid",)), "congestion", ["cubic", "fld"])
    assert [each.left_out for each in found] == [{}, {"cannot count": 6}]
    assert losses.unevenly(found) == [
        "cubic lost 0 of 12 visits and fld lost 6 of 12 visits (6 cannot count): those that are left may not "
        "be alike."
    ]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [((15, 0), (11, 4), True), ((15, 0), (14, 1), False), ((100, 0), (95, 5), False), ((4, 0), (3, 1), False),
     ((10, 5), (10, 5), False), ((100, 10), (10, 1), False), ((0, 0), (3, 3), False), ((0, 5), (5, 0), True)],
)  # fmt: skip
def test_different_shares_are_told_from_ten_points_and_two_visits_on(first, second, told):
    made = [
        losses.of(name, {"counted": n, "failed": lost})
        for name, (n, lost) in zip("ab", (first, second), strict=True)
    ]
    assert losses.uneven(*made) is told
    assert losses.uneven(*reversed(made)) is told


def test_a_row_whose_levels_lost_differently_is_marked(folder):
    rows = {row.stratum: row for row in compare_results(Results.open(folder), by_page=False)[:3]}
    assert rows["3g"].losses[1].timed_out == 2 and rows["3g"].candidate.timed_out == 2
    assert rows["3g"].uneven.startswith(
        "3g: cubic lost 0 of 9 visits and fld lost 3 of 9 visits (2 timed out, 1 failed)"
    )
    assert rows["lte"].uneven.startswith("lte: cubic lost 0 of 9 visits and fld lost 2 of 9")
    assert rows["all"].uneven.startswith("all conditions: cubic lost 0 of 18 visits and fld lost 5 of 18")


def test_compare_tells_losses_in_text_and_json(folder, capsys):
    command(folder, metric=["page-load-time"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    said = " ".join(out.split())
    assert "! 3g: cubic lost 0 of 9 visits and fld lost 3 of 9 visits (2 timed out, 1 failed)" in said
    assert "cubic: 18 of 18 visits count. fld: 13 of 18 visits count; 2 timed out, 1 failed" in said
    assert any(line.startswith("3g") and line.rstrip().endswith("!") for line in out.splitlines())
    assert "A visit that timed out ranks last; in the difference its limit stands for it." in said
    command(folder, json=True)
    document = json.loads(capsys.readouterr().out)
    assert [(level["level"], level["lost"]) for level in document["losses"]] == [("cubic", 0), ("fld", 5)]
    row = next(row for row in document["comparisons"] if row["stratum"] == "3g" and row["page"] is None)
    assert row["losses"][1]["timed_out"] == 2 and row["uneven"].startswith("3g: ")


def test_the_report_tells_losses(folder, tmp_path):
    text = report.build(folder, tmp_path / "report.html").read_text("utf-8")
    assert "<li>FLD_TCP: 13 of 18 visits count; 2 timed out, 1 failed, 1 suspect, 1 invalid.</li>" in text
    (box,) = re.findall(r"<b>Different shares of the visits were lost\.</b>(.*)</p>", text)
    assert [said.split(" visits")[0].strip() for said in box.split("<br>")] == [
        "lte: CUBIC lost 0 of 9",
        "3g: CUBIC lost 0 of 9",
        "all conditions: CUBIC lost 0 of 18",
    ], box
    assert '<li><a href="#runs">2 timed out</a></li>' in text
    assert '<span class="verdict verdict-timed-out">timed out</span>' in text


@pytest.mark.slow
def test_agree_tells_losses_and_ranks_points_that_timed_out(results_folder, capsys):
    folder = results_folder(lambda run: 2.0 if run.page == "large" else 1.0, backend="both")
    results = Results.open(folder)
    names = ["page-load-time", "first-contentful-paint"]
    before = {row.metric: row for row in agreement.agree(agreement.read(results), names)}
    timed_out(
        folder,
        lambda run: (run.network, run.page, run.backend) == ("3g", "large", "testbed") and run.visit > 2,
    )
    results = Results.open(folder)
    load, paint = agreement.agree(agreement.read(results), names)
    assert (load.points, load.timed_out, load.one_sided) == (6, 2, 0)
    assert (paint.points, paint.timed_out) == (8, 0)
    assert before["page-load-time"].points == 8 and load.rho is not None
    agreement.command(folder, ["page-load-time"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Points that timed out in the median: 2; they have a rank and no error." in said
    assert "! testbed lost 6 of 40 visits (6 timed out) and simulator lost 0 of 40 visits" in said
    assert "testbed: 34 of 40 visits count; 6 timed out." in said
    agreement.command(folder, ["page-load-time"], json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["losses"][0]["timed_out"] == 6 and len(document["uneven"]) == 1


def test_a_minority_of_timeouts_moves_the_median_of_a_point(results_folder):
    folder = results_folder(lambda run: 1 + run.visit / 10, backend="both")
    timed_out(folder, lambda run: run.backend == "simulator" and run.visit == 1)
    (row,) = agreement.agree(agreement.read(Results.open(folder)), ["page-load-time"])
    assert row.points == 8 and row.timed_out == 0
    assert row.bias > 0, "the fastest visit timed out: the median of the simulator is that of the 3rd and 4th"


def test_a_rank_correlation_takes_a_timeout_as_the_largest():
    axes = {
        "network": "lte",
        "http": "h2",
        "initial_window": 10,
        "background": "none",
        "proxy": "none",
        "user_agent": "user",
    }
    pages = [*((page, 100.0 * n, 100.0 * n) for n, page in enumerate("abcd", 1)), ("e", 500.0, None)]
    rows = [
        axes | {"backend": backend, "congestion": "cubic", "page": page, "warmup": False}
        | {"page_load_time": value, losses.LIMIT: None if value else LIMIT}
        for page, *values in pages
        for backend, value in zip(("testbed", "simulator"), values, strict=True)
    ]  # fmt: skip
    (row,) = agreement.agree(pl.DataFrame(rows), ["page-load-time"])
    assert (row.points, row.timed_out, row.rho) == (4, 1, pytest.approx(1.0))


def test_the_limit_is_that_of_the_evaluation(folder):
    table = pl.DataFrame(schema={"run_key": pl.String, "congestion": pl.String})
    found = losses.with_timeouts(Results.open(folder), table)
    assert found.columns == ["run_key", "congestion", losses.LIMIT]
    assert found[losses.LIMIT].to_list() == [60_000.0, 60_000.0]


def test_a_back_end_without_a_counted_visit_is_named_and_the_other_labelled(results_folder, capsys):
    folder = results_folder(
        lambda run: 1 + 0.01 * run.visit,
        backend="both",
        outcome=lambda run: Outcome("suspect" if run.backend == "testbed" else "valid"),
    )
    rows = compare_results(Results.open(folder), "congestion", ["page-load-time"], by_page=False)
    assert {row.conditions["backend"] for row in rows} == {"simulator"}
    assert cli.invoke(["compare", str(folder), "--metric", "page-load-time"]) == 0
    said = capsys.readouterr().out
    assert "testbed: 0 of 40 visits count; 40 suspect.\n" in said
    assert "simulator: 40 of 40 visits count.\n" in said
