"""The CWV study through the real simulator: set-up, measures and page, with few points and seeds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from wirepaint import catalogue
from wirepaint.cli import invoke
from wirepaint.studies import cwv_2010, model, running

NAME, STUDY = model.load("cwv-2010")
DEFAULTS = STUDY.chosen({})
SEGMENT_KBIT = 1460 * 8 / 1000


def measured(measure: str, point: dict, seeds: int = 1, **settings: str) -> pl.DataFrame:
    """The rows of one point."""
    sweep = model.Sweep(measure=measure, fixed=point)
    study = STUDY.model_copy(update={"sweeps": {"s": sweep}})
    planned = [running.Job("s", point, seed) for seed in range(1, seeds + 1)]
    return running.carry_out(study, study.chosen(settings), planned, lambda done, total: None)["s"]


def value(frame: pl.DataFrame, series: str, column: str) -> float:
    return frame.filter(pl.col("series") == series)[column].mean()


def test_the_setup_is_that_of_the_paper() -> None:
    point = {"flows": 2, "mix": "std", "event": "idle", "period": "1.5 s"}
    run = cwv_2010.describe(STUDY, DEFAULTS, cwv_2010.scene(STUDY, DEFAULTS, point, 1), Path())
    segments = {segment.name: segment for segment in run.segments}
    wide, narrow = segments["wide"].down, segments["narrow"].down
    assert (wide["capacity"]["bit_per_s"], narrow["capacity"]["bit_per_s"]) == (100_000_000, 2_000_000)
    assert wide["delay_ns"] == narrow["delay_ns"] == 100_000_000
    # Bandwidth-delay products over a round trip of 204 ms, in packets of 1500 bytes.
    assert (wide["queue"]["packets"], narrow["queue"]["packets"]) == (1700, 34)
    assert segments["s0"].down["delay_ns"] == segments["r1"].up["delay_ns"] == 1_000_000
    first = run.flows[0].kind
    assert (first["write_bytes"], [rate["bit_per_s"] for rate in first["rates"]]) == (
        1460,
        [512_000, 0, 512_000],
    )
    stopped, restarted = (first["rates"][at]["at_ns"] for at in (1, 2))
    assert restarted - stopped == 1_500_000_000
    assert stopped < run.reroutes[0].at_ns < restarted


def test_both_congestion_controls_meet_the_same_random_times() -> None:
    point = {"flows": 8, "event": "idle", "period": "1.5 s"}
    scenes = [cwv_2010.scene(STUDY, DEFAULTS, point | {"mix": mix}, 3) for mix in ("std", "cwv", "mixed")]
    assert len({scene.shifts for scene in scenes}) == 1
    assert scenes[2].series.count("std") == scenes[2].series.count("cwv") == 4


def test_a_path_that_carries_all_delivers_the_rate_and_drops_nothing() -> None:
    point = {"flows": 2, "mix": "cwv", "event": "idle", "period": "0.5 s"}
    frame = measured("restart", point)
    # A round trip of 204 ms: the packets of the first 0.918 of the 1.02 s arrive within them.
    assert value(frame, "cwv", "received_kbit_s") == pytest.approx(512 * 0.9, abs=1.5 * SEGMENT_KBIT)
    assert value(frame, "cwv", "dropped_percent") == 0


def test_standard_tcp_restarts_with_one_segment_and_doubles() -> None:
    point = {"flows": 1, "mix": "std", "event": "idle", "period": "1.5 s"}
    frame = measured("restart", point)
    # 1, 2, 4, 8 and, in the fifth round trip, the written part of 16; half of it arrives.
    segments = value(frame, "std", "received_kbit_s") * 1.02 / SEGMENT_KBIT
    assert 15 <= segments <= 31


def test_cwv_restarts_with_its_window_halved_per_timeout_and_std_with_one() -> None:
    def after(mix: str, period: str) -> float:
        point = {"flows": 1, "mix": mix, "event": "idle", "period": period, "path": "stays"}
        return value(measured("restart-window", point), mix, "cwnd_after")

    full = after("cwv", "0.5 s")
    # 512 kbit/s over 204 ms are 9 segments in flight.
    assert 9 <= full <= 12
    assert [after("cwv", period) for period in ("1.5 s", "2.5 s", "3.5 s", "4.5 s")] == [
        full // 2,
        full // 4,
        1,
        1,
    ]
    assert after("std", "1.5 s") == 1 and after("std", "0.5 s") > 500


def test_a_timeout_that_linux_adds_to_the_round_trip_lets_a_window_live_longer() -> None:
    point = {"flows": 1, "mix": "cwv", "event": "idle", "period": "1.1 s", "path": "stays"}
    floor, added = (measured("restart-window", point, cwvx_rto=rto) for rto in ("floor", "added"))
    assert value(floor, "cwv", "cwnd_after") == value(added, "cwv", "cwnd_after") // 2


def test_delays_are_those_of_the_path_where_nothing_waits() -> None:
    point = {"flows": 3, "mix": "cwv", "event": "idle", "period": "0.5 s", "path": "stays", "after": "2 s"}
    frame = measured("restart-delay", point)
    # 102 ms of propagation and 0.36 ms of transmission.
    assert value(frame, "cwv", "delay_ms") == pytest.approx(102.36, abs=0.3)
    packets = measured("packet-delay", point).sort("packet")
    assert packets["packet"].is_unique().all() and packets["packet"].min() < -800
    # The handshake and slow start from one segment delay the first packets by some round trips.
    assert packets["delay_ms"][0] > 300


def test_drops_are_counted_where_the_load_is_eight_times_the_path() -> None:
    point = {"flows": 32, "mix": "std", "event": "limited", "period": "2 s"}
    frame = measured("restart", point)
    assert 60 < value(frame, "std", "dropped_percent") < 88
    assert value(frame, "std", "received_kbit_s") * 32 == pytest.approx(2000 * 1460 / 1500, rel=0.1)


def test_the_same_command_measures_the_same() -> None:
    point = {"flows": 6, "mix": "mixed", "event": "idle", "period": "1.5 s"}
    first, second = measured("restart", point, seeds=4), measured("restart", point, seeds=4)
    assert first.equals(second)
    assert first["received_kbit_s"].n_unique() > 2, "seeds differ"


SMALL = """
title = "Small"
summary = "s"
source = "the paper"
code = "cwv_2010"
seeds = 3
quick_seeds = 3
[setup]
{setup}
[parameters.cwvx_rto_min]
default = "1 s"
options = ["1 s", "500 ms"]
reason = "r"
{parameters}
[sweeps.idle]
measure = "restart"
fixed = {{ event = "idle", period = "1.5 s" }}
over = {{ flows = [2, 4], mix = ["std", "cwv"] }}
[[figures]]
id = "4"
title = "Received rate"
sweep = "idle"
x = "flows"
x_title = "Flows"
y = "received_kbit_s"
y_title = "kbit/s"
caption = "c"
[[claims]]
id = "fig4"
item = "Fig. 4"
says = "CWV receives more"
published = "direction only"
kind = "more"
sweep = "idle"
x = "flows"
y = "received_kbit_s"
first = "cwv"
second = "std"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A study of its own file: the set-up and parameters of the shipped one, one sweep, one claim."""
    shipped = catalogue.find("study", "cwv-2010", Path()).read_text()
    setup = shipped.partition("[setup]\n")[2].partition("\n[parameters")[0]
    parameters = shipped.partition("[parameters.cwvx_rto]")[2].partition("\n# What is simulated")[0]
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(setup=setup, parameters="[parameters.cwvx_rto]" + parameters))
    return path


def test_a_study_leaves_a_page_figures_data_and_verdicts(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        invoke(["study", "run", str(small), "-o", str(tmp_path / "out"), "--set", "cwvx_acks=delayed"]) == 0
    )
    said = capsys.readouterr()
    assert re.search(r"^reproduced +Fig\. 4 +CWV receives more$", said.out, re.MULTILINE)
    assert said.err.startswith("Of 1 claim 1 reproduced. 12 runs")
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("<svg") == 1 and "http://" not in page.replace("http://www.w3.org", "")
    assert "delayed" in page and "--set cwvx_acks=delayed" in page
    verdicts = json.loads((tmp_path / "out/verdicts.json").read_text())
    assert [verdict["word"] for verdict in verdicts["verdicts"]] == ["reproduced"]
    assert pl.read_csv(tmp_path / "out/data/idle.csv").height == 12
    assert (tmp_path / "out/figures/figure-4.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["cwv-2011"],
            'study: found "cwv-2011"; accepted: one of cwv-2010, http-ae-2011 (did you mean "cwv-2010"?)',
        ),
        (["cwv-2010", "--set", "cwvx_rto"], "--set: found 'cwvx_rto'; accepted: NAME=OPTION"),
        (["cwv-2010", "--set", "rto=floor"], '--set: found "rto"; accepted: one of cwvx_rto_min, cwvx_rto'),
        (["cwv-2010", "--set", "cwvx_rto=1"], '--set cwvx_rto: found "1"; accepted: one of floor, added'),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["study", "run", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('sweep = "idle"\nx', 'sweep = "idel"\nx', 'figures[0].sweep: found "idel"; accepted: one of idle'),
        ('kind = "more"', 'kind = "less"', 'claims[0].kind: found "less"; accepted: '),
        ('code = "cwv_2010"', 'code = "nothing"', 'code: found "nothing"; accepted: a module'),
        ('measure = "restart"', 'measure = "start"', 'idle.measure: found "start"; accepted: one of restart'),
        ("flows = [2, 4]", "flows = [0]", "sweeps.idle.flows: found 0; accepted: a number of at least 1"),
        ("{ event =", "{ evnt =", 'sweeps.idle.evnt: found "idle"; accepted: one of flows, mix, event'),
        ('options = ["1 s", ', "options = [", 'cwvx_rto_min.default: found "1 s"; accepted: one of 500 ms'),
    ],
)
def test_a_wrong_study_file_is_refused_in_one_line(
    small: Path, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_text(small.read_text().replace(old, new))
    assert invoke(["study", "run", str(small)]) == 2
    error = capsys.readouterr().err
    assert words in error and str(small) in error and error.count("\n") == 1
