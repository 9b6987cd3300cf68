"""What is known of the time that runs will take."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.evaluation import plan
from wirepaint.runners import pace
from wirepaint.runners.testbed import side_by_side

from .plans import Fake, carry_out, planned


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "wirepaint" / "pace.json"


def test_without_any_run_it_is_a_guess_and_called_so(tmp_path: Path):
    [expected] = pace.expected(planned(tmp_path).runs, tmp_path / "r")
    assert expected.seconds == 14 * pace.USUAL_S["testbed"]
    assert "for 14 runs, 6 s each (a guess: none has run on this machine yet)" in expected.sentence


def test_the_pace_of_the_last_runs_is_kept_and_done_runs_need_no_time(tmp_path: Path):
    tally = carry_out(tmp_path, tmp_path / "r", Fake(seconds=0.02))
    assert 0.02 <= tally.seconds["testbed"] < 10
    pace.keep(tally.seconds)
    pace.keep({"simulator": 0.5})
    [expected] = pace.expected(planned(tmp_path).runs, tmp_path / "new")
    assert expected.seconds == pytest.approx(14 * tally.seconds["testbed"])
    assert expected.because == "as the last ones on this machine"
    [expected] = pace.expected(planned(tmp_path).runs, tmp_path / "r")
    assert (expected.runs, expected.sentence) == (0, "testbed: all runs are done")


def test_flows_that_go_on_to_the_end_take_the_time_that_was_asked(tmp_path: Path):
    pace.keep({"testbed": 2.0, "simulator": 0.5})
    file = tmp_path / "flows.toml"
    file.write_text(
        'title = "x"\nbackend = "both"\nduration = "30 s"\nrepeats = 2\nwarmup = false\n'
        '[scenarios]\nnetwork = ["lte"]\n[[flows]]\nname = "a"\nbulk = "endless"\n'
    )
    found = {one.backend: one for one in pace.expected(plan(file).runs, tmp_path / "r")}
    assert 60 < found["testbed"].seconds < 70
    assert found["testbed"].because == "as long as asked"
    assert found["simulator"].seconds == 1.0


def test_slow_links_take_the_time_of_the_pages_bytes_and_light_users_share_it(tmp_path: Path):
    pace.keep({"testbed": 2.0})
    file = tmp_path / "slow.toml"

    def expected(rate: str, engine: str) -> pace.Expected:
        file.write_text(
            'title = "x"\nbackend = "testbed"\nwarmup = false\n[scenarios]\n'
            f'network = [{{title = "n", down = {{rate = "{rate}"}}, up = {{rate = "{rate}"}}}}]\n'
            f'[[user_agents]]\npages = ["kit"]\nvisits = 2\nbrowser = {{engine = "{engine}"}}\n'
        )
        [found] = pace.expected(plan(file).runs, tmp_path / "r")
        return found

    alone, together = expected("256 kbit/s", "chromium"), expected("256 kbit/s", "light")
    assert alone.each > 10
    assert together.each == pytest.approx(max(alone.each / side_by_side.limit(), side_by_side.between_s()))
    assert alone.because == together.because == "bytes of pages over rates of links"
    assert expected("100 Mbit/s", "chromium").each == 2.0


@pytest.mark.parametrize("text", ["", "[]", '{"testbed": "fast"}', '{"testbed": -1}'])
def test_a_damaged_cache_is_no_knowledge(tmp_path: Path, cache: Path, text: str):
    cache.parent.mkdir(parents=True)
    cache.write_text(text)
    [expected] = pace.expected(planned(tmp_path).runs, tmp_path / "r")
    assert "a guess" in expected.sentence
