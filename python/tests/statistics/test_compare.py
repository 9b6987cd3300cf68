"""Comparisons: verdicts, strata, correction, refusals; the command on a results folder."""

import json
from zlib import crc32

import numpy as np
import polars as pl
import pytest

from wirepaint.errors import UsageError
from wirepaint.results.journal import CANNOT_COUNT
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import compare, terminal
from wirepaint.statistics.compare import HEADLINE, command
from wirepaint.statistics.verdicts import holm

PAGES = {"small": 900.0, "middle": 2400.0, "large": 6100.0}


def evaluation(effect, visits=7, noise=0.01, networks=("lte", "3g"), seed=1, **columns):
    """A metric table: visits of three pages; ``effect(network, page)`` is the share by which fld differs."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "network": network, "congestion": congestion, "page": page, "visit": visit, "warmup": visit == 0,
            "page_load_time": size * (1 + (congestion == "fld") * effect(network, page))
            * random.lognormal(0, noise),
        }
        for network in networks for congestion in ("cubic", "fld") for page, size in PAGES.items()
        for visit in range(visits + 1)
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(**columns)


def verdicts(frame, metric="page-load-time", **options):
    rows = compare(frame, "congestion", [metric], **options)
    return {(row.network, row.page): row.verdict for row in rows}


def test_a_gain_on_one_network_and_none_on_the_other():
    found = verdicts(evaluation(lambda network, page: -0.08 if network == "3g" else 0.0, noise=0.005))
    assert found["3g", None] == "faster"
    assert found["lte", None] == "same"
    assert {found["3g", page] for page in PAGES} == {"faster"}


def test_a_sentence_says_what_a_number_is_and_who_disagrees():
    def said(frame, pages):
        rows = compare(frame.filter(pl.col("page").is_in(pages)), "initial_window", ["page-load-time"])
        [whole] = [row for row in rows if row.network is None and row.page is None]
        return whole.sentence

    opposed = evaluation(lambda network, page: 0.2 if network == "3g" else -0.2, noise=0.005)
    windows = pl.col("congestion").replace_strict({"cubic": 10, "fld": 32})
    opposed = opposed.with_columns(initial_window=windows).drop("congestion")
    assert "IW 32 is mixed (the conditions disagree) against IW 10; " in said(opposed, ["small"])
    assert "IW 32 is mixed (the pages disagree) against IW 10; " in said(opposed, [*PAGES])
    others = evaluation(lambda network, page: -0.2).with_columns(initial_window=pl.lit(10))
    later = evaluation(lambda network, page: -0.2).with_columns(initial_window=pl.lit(32))
    rows = compare(pl.concat([others, later]), "congestion", ["page-load-time"], by_page=False)
    assert {row.stratum for row in rows} >= {"lte / IW 10", "lte / IW 32"}


def test_a_loss_is_slower_and_swapping_the_baseline_makes_it_faster():
    frame = evaluation(lambda network, page: 0.05)
    assert verdicts(frame)["lte", None] == "slower"
    assert verdicts(frame, baseline="fld")["lte", None] == "faster"


def test_noise_without_an_effect_has_too_few_visits_and_is_not_the_same():
    assert verdicts(evaluation(lambda network, page: 0.0, noise=0.15))["lte", None] == "too few visits"


def test_a_difference_within_the_margin_is_the_same_although_the_test_finds_it():
    frame = evaluation(lambda network, page: -0.01, noise=0.001)
    (row,) = [
        row
        for row in compare(frame, "congestion", ["page-load-time"])
        if row.stratum == "lte" and not row.page
    ]
    assert row.p_holm < 0.001 and row.verdict == "same"
    assert verdicts(frame, margin=0.005)["lte", None] == "faster"


def test_the_numbers_behind_the_word():
    frame = evaluation(lambda network, page: -0.08)
    row = next(row for row in compare(frame, "congestion", ["page-load-time"]) if row.network == "lte")
    assert (row.baseline.level, row.candidate.level) == ("cubic", "fld")
    assert row.pages == tuple(PAGES) and row.left_out == ()
    assert row.baseline.n == row.candidate.n == 21
    assert row.shift_rel.low < -0.08 < row.shift_rel.high
    assert row.shift_rel.value == pytest.approx(-0.08, abs=0.01)
    assert row.shift.low < row.shift.value < row.shift.high < 0
    assert row.baseline.median.value == pytest.approx(np.mean(list(PAGES.values())), rel=0.01)
    assert row.baseline.median.low < row.baseline.median.value < row.baseline.median.high
    assert row.effect == pytest.approx(-1, abs=0.05)
    assert row.test == "van Elteren"
    assert row.sentence.startswith(
        "Page load time, lte, 3 pages: fld is faster than cubic; difference \N{MINUS SIGN}8"
    )


def test_every_single_value_is_kept():
    frame = evaluation(lambda network, page: 0.0)
    row = next(row for row in compare(frame, "congestion", ["page-load-time"]) if row.network == "lte")
    chosen = frame.filter(
        (pl.col("network") == "lte") & (pl.col("congestion") == "cubic") & ~pl.col("warmup")
    )
    assert sorted(v for values in row.baseline.values.values() for v in values) == sorted(
        chosen["page_load_time"]
    )


def test_warm_up_visits_never_enter():
    frame = evaluation(lambda network, page: 0.0, noise=0.005)
    polluted = frame.with_columns(page_load_time=pl.when("warmup").then(1e9).otherwise("page_load_time"))
    assert verdicts(polluted) == verdicts(frame)


def test_over_all_networks_each_network_and_page_is_a_stratum():
    rows = compare(evaluation(lambda network, page: -0.08), "congestion", ["page-load-time"])
    (overall,) = [row for row in rows if not row.conditions]
    assert overall.stratum == "all" and overall.page is None
    assert list(overall.baseline.values) == [f"{n} / {p}" for n in ("lte", "3g") for p in PAGES]
    assert overall.shift_rel.high - overall.shift_rel.low < rows[0].shift_rel.high - rows[0].shift_rel.low


def test_what_was_measured_and_what_was_simulated_are_never_taken_together():
    measured, simulated = (
        evaluation(lambda network, page, e=e: e, backend=pl.lit(backend))
        for e, backend in ((-0.05, "testbed"), (0.3, "simulator"))
    )
    both = compare(pl.concat([measured, simulated]), "congestion", ["page-load-time"])
    assert {row.conditions.get("backend") for row in both} == {"testbed", "simulator"}
    alone = [row for row in compare(measured, "congestion", ["page-load-time"]) if row.conditions]
    beside = [row for row in both if row.conditions["backend"] == "testbed"]
    assert [(row.verdict, row.shift) for row in beside] == [(row.verdict, row.shift) for row in alone]
    assert {row.family for row in beside} == {2, 6}, "two networks; three pages on each"


def test_other_axes_that_vary_are_held_equal():
    h1, h2 = (
        evaluation(lambda network, page, e=e: e, http=pl.lit(http))
        for e, http in ((0.05, "h1"), (-0.05, "h2"))
    )
    rows = compare(pl.concat([h1, h2]), "congestion", ["page-load-time"], by_page=False)
    assert {row.stratum: row.verdict for row in rows if row.conditions} == {
        "lte / h1": "slower", "3g / h1": "slower", "lte / h2": "faster", "3g / h2": "faster"
    }  # fmt: skip


def test_a_page_without_values_at_one_level_is_left_out_and_named():
    frame = evaluation(lambda network, page: 0.0, networks=("lte",))
    frame = frame.filter(~((pl.col("page") == "large") & (pl.col("congestion") == "fld")))
    row = compare(frame, "congestion", ["page-load-time"])[0]
    assert row.pages == ("small", "middle") and row.left_out == ("large",)


def test_nulls_do_not_count_as_visits():
    frame = evaluation(lambda network, page: 0.0).with_columns(
        page_load_time=pl.when(pl.col("visit") == 3).then(None).otherwise("page_load_time")
    )
    assert compare(frame, "congestion", ["page-load-time"])[0].baseline.n == 18


def test_three_levels_are_each_compared_with_the_first():
    frame = evaluation(lambda network, page: -0.05)
    bbr = frame.filter(pl.col("congestion") == "fld").with_columns(congestion=pl.lit("bbr"))
    rows = compare(pl.concat([frame, bbr]), "congestion", ["page-load-time"], by_page=False)
    assert {(row.baseline.level, row.candidate.level) for row in rows} == {("cubic", "fld"), ("cubic", "bbr")}
    assert {row.family for row in rows} == {6}


def test_a_metric_that_is_zero_throughout_is_the_same():
    frame = evaluation(lambda network, page: 0.0).with_columns(drop_rate=pl.lit(0.0))
    assert set(verdicts(frame, "drop-rate").values()) == {"same"}


def test_a_metric_with_zeros_has_an_absolute_shift_only():
    frame = evaluation(lambda network, page: 0.0)
    share = (pl.col("congestion") == "fld").cast(pl.Float64) * pl.col("page_load_time") / 1000
    row = compare(frame.with_columns(drop_rate=share), "congestion", ["drop-rate"])[0]
    assert row.shift_rel is None and row.shift.low > 0
    assert row.verdict == "worse"


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [
        ("link-utilisation", "better"),
        ("bytes-transferred", "higher"),
        ("effective-concurrency", "higher"),
        ("connection-duration", "longer"),
        ("queueing-delay-p50", "worse"),
        ("flow-completion-time", "slower"),
    ],
)
def test_the_word_fits_the_metric(metric, verdict):
    column = metric.replace("-", "_")
    frame = evaluation(lambda network, page: 0.3).rename({"page_load_time": column})
    assert verdicts(frame, metric)["lte", None] == verdict


def test_one_visit_a_page_is_compared_over_the_pages():
    row = compare(evaluation(lambda network, page: -0.1, visits=1), "congestion", ["page-load-time"])[0]
    assert row.test == "Wilcoxon" and row.verdict == "too few visits" and row.shift_rel.low is None


def test_holm_by_hand():
    assert [p for p, _ in holm([0.01, 0.04, 0.03, 0.005])] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [p for p, _ in holm([0.5, 0.9])] == [1.0, 1.0]


def test_the_level_of_an_interval_is_the_one_of_its_step_up_to_the_first_that_fails():
    levels = [level for _, level in holm([0.01, 0.04, 0.03, 0.005])]
    assert levels == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])


@pytest.mark.slow
def test_by_simulation_a_verdict_without_an_effect_is_rare():
    """Over all rows of an evaluation together: at most 5 % of evaluations have any false verdict."""
    false = 0
    for seed in range(120):
        frame = evaluation(lambda network, page: 0.0, visits=5, noise=0.05, seed=seed)
        rows = compare(frame, "congestion", ["page-load-time"], by_page=False)
        false += any(row.verdict in ("faster", "slower") for row in rows)
    assert false / 120 <= 0.05 + 2 * (0.05 * 0.95 / 120) ** 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("colour", ["page-load-time"]), 'factor: found "colour"; accepted: one of network, congestion'),
        (("page", ["page-load-time"]), 'factor: found "page"; accepted: one of network, congestion'),
        (("congestion", ["pltm"]), 'metric: found "pltm"; accepted: a name of `wirepaint metric list`'),
        (("congestion", ["page-load-tiem"]), r'\(did you mean "page-load-time"\?\)'),
        (("congestion", ["page-type"]), "metric: found 'page-type'; accepted: a metric that is a number"),
        (
            ("congestion", ["page-load-time"], "bbr"),
            "found 'bbr' with no usable run; accepted: one of cubic, fld",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(arguments, message):
    with pytest.raises(UsageError, match=message):
        compare(evaluation(lambda network, page: 0.0), *arguments)


@pytest.mark.parametrize("margin", [-0.1, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin):
    with pytest.raises(UsageError, match=r"margin: found .*; accepted: a share from 0 to less than 1"):
        compare(evaluation(lambda network, page: 0.0), "congestion", ["page-load-time"], margin=margin)


def test_one_level_is_nothing_to_compare():
    frame = evaluation(lambda network, page: 0.0).filter(pl.col("congestion") == "cubic")
    with pytest.raises(UsageError, match="factor congestion: found the one level 'cubic'"):
        compare(frame, "congestion", ["page-load-time"])


@pytest.fixture
def folder(results_folder):
    def stretch(run):
        random = np.random.default_rng(crc32(repr(run).encode()))
        faster = 0.9 if (run.congestion, run.network) == ("fld", "3g") else 1.0
        return faster * (2.0 if run.page == "large" else 1.0) * random.lognormal(0, 0.004)

    return results_folder(stretch)


def test_the_table_says_the_verdict_within_100_columns(folder, capsys):
    command(folder, metric=["page-load-time"], by_page=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Page load time (ms)"
    assert " ".join(lines[1].split()) == "network page cubic fld difference, interval p verdict"
    (row,) = [line for line in lines if line.startswith("3g")]
    assert "2 pages" in row and row.split()[-1] == "faster"
    assert "\x1b" not in "".join(lines)


def test_a_piped_table_has_the_whole_name_of_a_page(capsys):
    long = "a-page-whose-name-is-longer-than-a-column-of-a-terminal-" + "x" * 60
    terminal.show(
        compare(
            evaluation(lambda *_: 0.1).with_columns(page=pl.lit(long)),
            "congestion", ["page-load-time"], by_page=True,
        )
    )  # fmt: skip
    lines = [line for line in capsys.readouterr().out.splitlines() if long in line]
    assert lines and all(" (" in line and " %" in line for line in lines), "a row is one line"


def test_two_shares_differ_by_points():
    """Some visits have 0 %, so the difference is no share of the base."""
    frame = evaluation(lambda *_: 0.0)
    share = pl.when(pl.col("congestion") == "fld").then(8.0).otherwise(5.0 * (pl.col("visit") % 2))
    rows = compare(frame.with_columns(retransmission_share=share), "congestion", ["retransmission-share"])
    assert all(" points (" in row.sentence for row in rows) and rows


def test_json_holds_every_comparison_with_its_numbers(folder, capsys):
    command(folder, json=True)
    document = json.loads(capsys.readouterr().out)
    assert {row["metric"] for row in document["comparisons"]} == set(HEADLINE)
    row = next(
        row for row in document["comparisons"]
        if (row["metric"], row["stratum"], row["page"]) == ("page-load-time", "3g", None)
    )  # fmt: skip
    assert row["verdict"] == "faster"
    assert row["shift_rel"]["low"] < row["shift_rel"]["value"] < row["shift_rel"]["high"] < 0
    assert len(row["baseline"]["values"]["small"]) == 5


def test_a_page_that_cannot_count_is_named_with_the_reason(results_folder, capsys):
    def outcome(run):
        return f"{CANNOT_COUNT}objects: [x]" if run.page == "small" else Outcome("valid")

    folder = results_folder(lambda run: 1.0, 3, outcome)
    command(folder, metric=["page-load-time"])
    said = "small cannot count, visits of it were skipped: objects: [x]"
    assert said in capsys.readouterr().out.splitlines()
    command(folder, json=True)
    assert json.loads(capsys.readouterr().out)["cannot_count"] == {"small": "objects: [x]"}
    with pytest.raises(UsageError, match=r"found no run; small cannot count \(slow\); large cannot count"):
        command(results_folder(lambda run: 1.0, 1, lambda run: f"{CANNOT_COUNT}slow", name="none"))


def test_a_metric_without_values_is_named_not_dropped_in_silence(folder, capsys):
    command(folder, metric=["speed-index"])
    assert capsys.readouterr().out == "No values at two levels of the same page: speed-index.\n"
    command(folder, metric=["speed-index", "objects"], json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["without_values"] == ["speed-index"]
    assert {row["verdict"] for row in document["comparisons"]} == {"same"}


def test_networks_can_be_the_factor():
    frame = evaluation(lambda network, page: 0.0).with_columns(
        pl.col("page_load_time") * pl.when(pl.col("network") == "3g").then(2.0).otherwise(1.0)
    )
    rows = compare(frame, "network", ["page-load-time"], by_page=False)
    assert [(row.baseline.level, row.candidate.level, row.stratum) for row in rows] == [
        ("lte", "3g", "cubic"), ("lte", "3g", "fld"), ("lte", "3g", "all")
    ]  # fmt: skip
    assert {row.verdict for row in rows} == {"slower"}


def test_the_baseline_is_the_first_level_of_the_file_even_when_it_has_no_valid_run(results_folder):
    folder = results_folder(
        lambda run: 1.0, 1, lambda run: Outcome("invalid") if run.congestion == "cubic" else Outcome("valid")
    )
    with pytest.raises(UsageError, match="found the one level 'fld'"):
        command(folder)


def test_without_a_factor_the_first_axis_with_several_values_is_compared(simulated, results_folder, capsys):
    for folder, factor in (
        (simulated, "http"),
        (results_folder(lambda run: 1 + run.visit / 99), "congestion"),
    ):
        command(folder, json=True)
        assert json.loads(capsys.readouterr().out)["factor"] == factor


def test_without_a_factor_the_others_are_named(results_folder, capsys):
    folder = results_folder(lambda run: 1 + run.visit / 99, more_axes='http = ["h1", "h2"]')
    command(folder, metric=["page-load-time"])
    assert capsys.readouterr().err == "congestion control was compared; --factor compares http.\n"
    command(folder, "http", metric=["page-load-time"])
    assert capsys.readouterr().err == ""


def test_without_a_valid_run_the_verdicts_are_counted(results_folder):
    folder = results_folder(lambda run: 1.0, 1, lambda run: Outcome("suspect"))
    with pytest.raises(UsageError, match=r"found 12 suspect; accepted: valid runs \(--suspect counts"):
        command(folder)


def test_suspect_runs_enter_only_when_asked(results_folder):
    folder = results_folder(lambda run: 1.0, 3, lambda run: Outcome("suspect" if run.visit == 1 else "valid"))
    from wirepaint.results import Results
    from wirepaint.statistics.compare import compare_results

    results = Results.open(folder)
    assert compare_results(results)[0].baseline.n == 4
    assert compare_results(results, suspect=True)[0].baseline.n == 6


def test_pages_that_differ_in_opposite_directions_are_not_called_the_same(capsys):
    effects = {"small": 0.1, "middle": -0.1, "large": 0.0}
    frame = evaluation(lambda network, page: effects[page], visits=11, noise=0.001, networks=("lte",))
    row = compare(frame, "congestion", ["page-load-time"])[0]
    assert row.shift_rel.inside(0.02)
    assert row.verdict == "mixed" and row.dissent == ("small", "middle")
    assert row.by_stratum["small"].value == pytest.approx(0.1, abs=0.01)
    assert "apart: small (+9.9 %), middle (\N{MINUS SIGN}10.0 %)." in row.sentence
    terminal.show([row])
    out = capsys.readouterr().out
    assert "mixed*" in out and "* Page load time, lte, 3 pages" in out


def test_a_page_that_loses_where_the_others_gain_is_named():
    effects = {"small": 0.05, "middle": -0.1, "large": -0.1}
    frame = evaluation(lambda network, page: effects[page], visits=11, noise=0.002, networks=("lte",))
    row = compare(frame, "congestion", ["page-load-time"])[0]
    assert row.verdict == "faster" and row.dissent == ("small",)


def test_one_metric_is_primary_and_the_others_do_not_weigh_on_it():
    frame = evaluation(lambda network, page: -0.05).with_columns(
        first_contentful_paint="page_load_time", speed_index="page_load_time"
    )
    alone = compare(frame, "congestion", ["page-load-time"], by_page=False)
    names = ["speed-index", "page-load-time", "first-contentful-paint"]
    beside = compare(frame, "congestion", names, by_page=False)
    assert [row for row in beside if row.is_primary] == alone
    assert {row.family for row in alone} == {3} and {row.family for row in beside if row not in alone} == {6}
    several = compare(frame, "congestion", names, by_page=False, primary=["page_load_time", "speed_index"])
    assert {row.family for row in several if row.is_primary} == {6}


def test_rows_of_single_pages_are_not_primary():
    rows = compare(evaluation(lambda network, page: -0.05), "congestion", ["page-load-time"])
    assert {row.is_primary for row in rows if row.page} == {False}


def test_the_interval_is_the_one_of_the_verdict():
    """Whatever the number of comparisons, a direction is said exactly where the interval leaves out zero."""
    for seed in range(30):
        frame = evaluation(lambda network, page: -0.02, noise=0.03, seed=seed, networks=("a", "b", "c", "d"))
        for row in compare(frame, "congestion", ["page-load-time"], margin=0.0):
            apart = row.interval.outside(0)
            assert (row.verdict in ("faster", "slower")) == apart == (row.p_holm <= 0.05)


def test_looks_share_the_error():
    frame = evaluation(lambda network, page: -0.05)
    (once, *_), (of_four, *_) = (
        compare(frame, "congestion", ["page-load-time"], looks=looks) for looks in (1, 4)
    )
    assert 1 - of_four.confidence == pytest.approx((1 - once.confidence) / 4)
    assert of_four.p_holm == pytest.approx(4 * once.p_holm)
    assert of_four.interval.low < once.interval.low


def test_too_few_visits_say_how_many_are_needed_and_with_these_it_is_decided():
    def row(visits, seed):
        frame = evaluation(lambda network, page: 0.01, visits, 0.04, ("lte",), seed)
        return compare(frame, "congestion", ["page-load-time"], by_page=False)[0]

    few = [row(8, seed) for seed in range(20)]
    needed = sorted(one.visits_needed for one in few if one.verdict == "too few visits")
    assert len(needed) >= 15
    typical = needed[len(needed) // 2]
    assert 40 < typical < 400
    assert sum(row(typical, seed).is_decided for seed in range(20)) >= 18
    assert "; about " in next(one for one in few if not one.is_decided).sentence
    assert "; at least 2 visits of each page are needed" in row(1, 0).sentence, (
        "nothing is known of the spread"
    )


def test_without_an_interval_the_fewest_visits_are_needed_that_have_one():
    frame = evaluation(lambda network, page: -0.1, visits=3, networks=("lte",))
    frame = frame.filter(pl.col("page") == "small")
    row = compare(frame, "congestion", ["page-load-time"])[0]
    assert (row.verdict, row.visits_needed) == ("too few visits", 4)


def test_pages_that_disagree_are_mixed_whatever_their_mean():
    effects = {"small": 0.06, "middle": -0.08, "large": -0.01}
    frame = evaluation(lambda network, page: effects[page], visits=11, noise=0.01, networks=("lte",))
    row = compare(frame, "congestion", ["page-load-time"])[0]
    assert row.verdict == "mixed" and set(row.dissent) >= {"small", "middle"}
