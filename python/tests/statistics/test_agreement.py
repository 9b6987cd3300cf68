"""The agreement of the two back ends, over values made by hand."""

from __future__ import annotations

import json
import re
from html import unescape

import polars as pl
import pytest
from scipy import stats

from wirepaint import figures, metrics, report
from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import agreement, agreement_by


def visit(backend: str, congestion: str, page: str, value: float | None) -> dict[str, object]:
    same = {
        "network": "lte",
        "http": "h2",
        "initial_window": 10,
        "background": "none",
        "proxy": "none",
        "user_agent": "user",
    }
    return same | {
        "backend": backend, "congestion": congestion, "page": page, "warmup": False, "page_load_time": value,
    }  # fmt: skip


def frame(*rows: tuple[str, str, str, list[float]]) -> pl.DataFrame:
    return pl.DataFrame([visit(*row[:3], value) for row in rows for value in row[3]])


def test_errors_are_shares_of_the_testbeds_median():
    table = frame(
        ("testbed", "cubic", "a", [90, 100, 130]), ("simulator", "cubic", "a", [110, 110, 110]),
        ("testbed", "cubic", "b", [200]), ("simulator", "cubic", "b", [190]),
        ("testbed", "cubic", "c", [400]), ("simulator", "cubic", "c", [480]),
    )  # fmt: skip
    (row,) = agreement.agree(table, ["page-load-time"])
    assert (row.points, row.left_out, row.rho) == (3, 0, None)
    assert row.median_error == pytest.approx(0.10) and row.bias == pytest.approx(0.10)
    assert row.p90_error == pytest.approx(0.18)


def test_by_an_axis_each_level_has_its_own_errors_and_its_differences_from_the_first():
    first, second = [100.0, 101, 102, 103, 104], [200.0, 201, 202, 203, 204]
    table = frame(
        ("testbed", "cubic", "a", first), ("testbed", "mine", "a", second), ("testbed", "fld", "a", second),
        ("simulator", "cubic", "a", [x * 1.1 for x in first]), ("simulator", "mine", "a", [90.0] * 5),
    )  # fmt: skip
    found = agreement_by.by_level(table, "congestion", ["page-load-time"])
    assert list(found) == ["cubic", "mine"], "fld has no simulated run"
    (cubic,), (mine,) = found.values()
    assert (cubic.median_error, cubic.decided) == (pytest.approx(0.1), 0)
    assert mine.bias == pytest.approx((90 - 202) / 202)
    assert (mine.decided, mine.same_sign) == (1, 0)


def test_a_simulator_that_orders_the_pages_the_other_way_has_a_negative_correlation():
    rows = [("testbed", "cubic", page, [value]) for page, value in zip("abcde", (1, 2, 3, 4, 5), strict=True)]
    rows += [
        ("simulator", "cubic", page, [value]) for page, value in zip("abcde", (9, 7, 5, 3, 2), strict=True)
    ]
    table = frame(*rows)
    assert agreement.agree(table, ["page-load-time"])[0].rho == pytest.approx(-1.0)


def test_the_rank_correlation_is_spearmans_where_points_are_equal_too():
    testbed, simulator = [100.0, 200, 200, 400, 500, 600], [90.0, 300, 250, 250, 700, 650]
    sides = [("testbed", testbed), ("simulator", simulator)]
    rows = [(side, "cubic", page, [x]) for side, of in sides for page, x in zip("abcdef", of, strict=True)]
    (row,) = agreement.agree(frame(*rows), ["page-load-time"])
    assert row.rho == stats.spearmanr(testbed, simulator).statistic


@pytest.mark.parametrize(
    "testbed", [(100, 200, 300, 400), (100, 101, 102, 103, 104.9), (100, 100, 100, 100, 100)]
)
def test_few_points_and_points_that_chance_orders_have_no_rank_correlation(testbed):
    rows = [("testbed", "cubic", page, [value]) for page, value in zip("abcde", testbed, strict=False)]
    rows += [("simulator", "cubic", page, [value * 1.01]) for _, _, page, [value] in rows]
    (row,) = agreement.agree(frame(*rows), ["page-load-time"])
    assert row.rho is None and row.cells[1] == agreement.NOTHING
    assert "Spearman" not in row.sentence


def test_the_direction_is_asked_only_where_the_testbed_decided():
    clear, blurred = [200.0, 201, 202, 203, 204], [90.0, 100, 110, 104, 96]
    table = frame(
        ("testbed", "cubic", "a", [100, 101, 102, 103, 104]), ("testbed", "fld", "a", clear),
        ("testbed", "cubic", "b", [95, 105, 100, 99, 101]), ("testbed", "fld", "b", blurred),
        *[("simulator", "cubic", page, [100, 101, 102, 103, 104]) for page in "ab"],
        *[("simulator", "fld", page, [90, 91, 92, 93, 94]) for page in "ab"],
    )  # fmt: skip
    (row,) = agreement.agree(table, ["page-load-time"])
    assert (row.decided, row.same_sign) == (1, 0)


def test_a_page_is_compared_where_one_back_end_has_no_other_page():
    slow, fast = [200.0, 201, 202, 203, 204], [100.0, 101, 102, 103, 104]
    rows = [
        (side, *of) for side in ("testbed", "simulator") for of in (("cubic", "a", slow), ("fld", "a", fast))
    ]
    rows += [("testbed", "cubic", "b", slow), ("testbed", "fld", "b", fast)]
    (row,) = agreement.agree(frame(*rows), ["page-load-time"])
    assert (row.decided, row.same_sign, row.one_sided) == (1, 1, 2)


def test_levels_that_one_back_end_lacks_do_not_hinder_the_others():
    slow, fast = [200.0, 201, 202, 203, 204], [100.0, 101, 102, 103, 104]
    rows = [
        ("testbed", "fld", "a", slow), ("testbed", "std", "a", fast),
        ("simulator", "cubic", "a", slow), ("simulator", "fld", "a", slow), ("simulator", "std", "a", fast),
    ]  # fmt: skip
    (row,) = agreement.agree(frame(*rows), ["page-load-time"])
    assert (row.decided, row.same_sign, row.one_sided) == (1, 1, 1)
    (row,) = agreement.agree(frame(*rows[1:]), ["page-load-time"])
    assert (row.points, row.decided) == (1, 0)


def test_a_level_of_which_only_a_warm_up_visit_counts_is_not_compared():
    warm = frame(("testbed", "fld", "a", [1])).with_columns(warmup=pl.lit(True))
    rest = frame(
        ("testbed", "cubic", "a", [1]), ("simulator", "cubic", "a", [1]), ("simulator", "fld", "a", [1])
    )
    (row,) = agreement.agree(pl.concat([warm, rest]), ["page-load-time"])
    assert (row.points, row.decided) == (1, 0)


def test_a_value_of_zero_has_no_relative_error():
    table = frame(("testbed", "cubic", "a", [0]), ("simulator", "cubic", "a", [5]))
    (row,) = agreement.agree(table, ["page-load-time"])
    assert (row.points, row.left_out, row.median_error, row.rho) == (1, 1, None, None)
    assert row.sentence.endswith(": nothing to compare.")


def test_an_agreement_in_words():
    row = agreement.Agreement(
        "page-load-time", "Page load time", "ms", points=8, left_out=0, one_sided=0, rho=0.95,
        median_error=0.012, p90_error=0.1, bias=-0.01, decided=4, same_sign=3,
    )  # fmt: skip
    assert row.sentence == (
        "Simulator beside testbed over 8 points, page load time: 1.2 % off in the median, 10.0 % in the 90th "
        "percentile; Spearman 0.95; the same sign in 3 of 4 differences that the testbed decided."
    )


def test_points_that_one_back_end_lacks_are_counted_and_told(capsys):
    table = frame(
        ("testbed", "cubic", "a", [100]), ("simulator", "cubic", "a", [110]),
        ("testbed", "cubic", "b", [100]), ("simulator", "cubic", "c", [100]),
    )  # fmt: skip
    (row,) = agreement.agree(table, ["page-load-time"])
    assert (row.points, row.one_sided, row.median_error) == (1, 2, pytest.approx(0.1))
    agreement.show([row])
    assert "one back end has no run that counts, 2 of them" in capsys.readouterr().out


def test_results_of_one_back_end_are_refused():
    with pytest.raises(
        UsageError, match=r"counted runs of the testbed only; accepted: valid runs of both back ends"
    ):
        agreement.agree(frame(("testbed", "cubic", "a", [1])), ["page-load-time"])


@pytest.fixture
def both(results_folder):
    """Results of both back ends; the simulator is 10 % slow on the large page."""

    def stretch(run):
        return 1.1 if run.backend == "simulator" and run.page == "large" else 1.0

    return results_folder(stretch, backend="both")


def test_the_command_prints_the_table_and_with_json_every_point(both, capsys):
    agreement.command(both)
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("Page load time"))
    assert re.search(r"Page load time\s+8\s", line), line
    agreement.command(both, ["page-load-time"], json=True)
    document = json.loads(capsys.readouterr().out)
    assert len(document["points"]["page-load-time"]) == 8
    assert document["agreement"][0]["p90_error"] == pytest.approx(0.1, abs=0.01)


@pytest.mark.slow
def test_simulated_visits_of_another_folder_take_the_place_of_its_own(both, results_folder, capsys):
    again = results_folder(lambda run: 1.5, name="again", backend="simulator")
    errors = []
    for simulated in (None, again, both):
        agreement.command(both, ["page-load-time"], simulated=simulated, json=True)
        errors.append(json.loads(capsys.readouterr().out)["agreement"][0]["median_error"])
    assert errors[1] == pytest.approx(0.5, abs=0.01)
    assert errors[0] == errors[2] < 0.2


def test_the_report_shows_table_and_figure_and_names_both_back_ends(both, tmp_path):
    report.build(both, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert 'id="agreement"' in html and "testbed and simulator, each by itself" in html
    head, _, _ = html.partition("</header>")
    (row,) = agreement.agree(metrics.table(Results.open(both)), ["page-load-time"])
    assert row.sentence in unescape(head).replace("\N{NO-BREAK SPACE}", " ")
    assert "<li>testbed: 40 of 40 visits count.</li>" in head
    assert "<li>simulator: 40 of 40 visits count.</li>" in head
    assert "has no run that counts" not in html
    saved = figures.save(Results.open(both), "agreement", tmp_path / "a.csv", metric="page-load-time")
    assert pl.read_csv(saved).height == 8


def test_the_report_compares_the_back_ends_when_asked(both, tmp_path):
    report.build(both, tmp_path / "report.html", factor="backend")
    html = (tmp_path / "report.html").read_text()
    answer = " ".join(re.sub(r"<[^>]+>", "", html.partition("<body")[2]).split())
    assert "whether simulator shows these pages faster than testbed" in answer


@pytest.mark.slow
def test_the_report_says_how_many_points_one_back_end_lacks(results_folder, tmp_path):
    def fails(run):
        lost = run.backend == "testbed" and run.page == "large" and run.network == "3g"
        return None if lost else Outcome("valid")

    results = results_folder(lambda run: 1.0, outcome=fails, backend="both")
    report.build(results, tmp_path / "report.html")
    assert "one back end has no run that counts, 2 of them" in (tmp_path / "report.html").read_text()


def test_a_report_of_one_back_end_says_which_in_its_first_line_and_has_no_agreement(results_folder, tmp_path):
    folder = results_folder(lambda run: 1.0, backend="simulator")
    report.build(folder, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "wirepaint report · simulated: " in html and 'id="agreement"' not in html
    assert metrics.levels(Results.open(folder), "backend") == ["simulator"]


def test_large_differences_are_counted_apart():
    def near(middle: float) -> list[float]:
        return [middle + step / 10 for step in (-2, -1, 0, 1, 2)]

    rows = []
    for page, fld, simulated in (("a", 101, 102), ("b", 110, 105), ("c", 90, 120)):
        rows += [("testbed", "cubic", page, near(100)), ("testbed", "fld", page, near(fld))]
        rows += [("simulator", "cubic", page, near(100)), ("simulator", "fld", page, near(simulated))]
    (row,) = agreement.agree(frame(*rows), ["page-load-time"])
    assert (row.decided, row.same_sign, row.large, row.large_same_sign) == (3, 2, 2, 1)


def test_by_an_axis_the_command_says_which_levels_and_visits_are_left_out(results_folder, capsys):
    def outcome(run):
        return Outcome("invalid" if (run.backend, run.congestion) == ("testbed", "fld") else "valid")

    folder = str(results_folder(lambda run: 1.0, outcome=outcome, backend="both"))
    assert invoke(["agree", folder, "--by", "cc", "--metric", "page-load-time"]) == 0
    out = capsys.readouterr().out
    assert "Simulator against testbed." in out
    assert "Left out, without runs that count on both: fld." in out
    assert "testbed: 20 of 40 visits count; 20 invalid." in out and "simulator: 40 of 40 visits count." in out
    assert invoke(["agree", folder, "--by", "htp"]) == 2
    assert '--by: found "htp"; accepted: one of ' in capsys.readouterr().err
