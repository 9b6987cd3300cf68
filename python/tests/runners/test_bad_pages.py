"""Pages that cannot count never end an evaluation, and only what may end otherwise is repeated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from wirepaint.errors import PageFailed, PageTimeout, Refused, RunFailed, UsageError
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.runners import refusals

from . import plans
from .plans import EVALUATION, KEYS, Fake, carry_out

FOUR = EVALUATION.replace('["cubic", "reno"]', '["cubic", "reno", {name = "cubic", title = "c"}, "bbr"]')
"""Four scenarios: 24 runs and 4 warm-ups, two for each page."""


class By(Fake):
    """Ends each run as ``end`` says by its page, visit and so on."""

    def __init__(self, end) -> None:
        super().__init__()
        self._end = end

    def outcome(self, run):
        end = self._end(run)
        if isinstance(end, Exception):
            raise end
        return end or Outcome("valid", [], 1000)


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirepaint.evaluation.congestion.of_kernel", lambda: ("reno", "cubic", "bbr"))


def reason(check: str, severity: str = "invalid") -> dict[str, str]:
    return {"check": check, "severity": severity, "found": "x", "expected": "y"}


def invalid(*reasons) -> Outcome:
    return Outcome("invalid", list(reasons) or [reason("objects")], 1000)


def attempts(fake: Fake) -> Counter[str]:
    return Counter(key for key, _ in fake.asked)


@pytest.mark.parametrize(
    ("end", "standing"),
    [(PageFailed("status 404"), "failed"), (invalid(), "invalid"), (invalid(reason("server")), "invalid")],
    ids=["failed", "objects", "server"],
)
def test_the_other_visits_of_a_page_that_cannot_count_are_skipped_with_the_reason(
    tmp_path: Path, end, standing
):
    fake = By(lambda run: end if run.page_name == "one" else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert tally.counts == {"valid": KEYS // 2, standing: 2, "cannot count": KEYS // 2 - 2}
    why = "status 404" if standing == "failed" else f"{end.reasons[0]['check']}: x (expected y)"
    assert tally.cannot_count == {"one": why}
    results = Results.open(tmp_path / "r")
    assert set(results.runs("skipped")["cause"]) == {f"the page cannot count: {why}"}
    assert results.cannot_count() == {"one": why}
    assert max(attempts(fake).values()) == 1 and tally.repeats == 0


def test_a_page_at_fault_in_two_scenarios_is_skipped_in_the_others_from_the_start(tmp_path: Path, capsys):
    fake = By(lambda run: PageFailed("status 404") if run.page_name == "one" else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake, FOUR)
    tried = [key for key in attempts(fake) if ".one." in key]
    assert [key[-3:] for key in tried] == ["v00", "v00"]
    assert tally.counts == {"valid": 14, "failed": 2, "cannot count": 12}
    assert tally.cannot_count == {"one": "status 404"}
    assert "one: cannot count in fast-cubic-h2; its other visits are skipped" in capsys.readouterr().err


def test_a_page_that_counts_in_one_scenario_is_tried_in_all(tmp_path: Path):
    bad = {"fast-reno-h2", "fast-bbr-h2"}
    fake = By(lambda run: invalid() if run.page_name == "two" and run.scenario in bad else None)
    text = FOUR.replace("[scenarios]", 'order = "sequential"\n[scenarios]')
    tally = carry_out(tmp_path, tmp_path / "r", fake, text.replace("visits = 3", "visits = 2"))
    # The warm-ups of page two are in these scenarios, so its other visits are skipped, too.
    assert tally.counts == {"valid": 2 + 8, "invalid": 2, "cannot count": 8}
    one_bad = By(lambda run: invalid() if run.page_name == "two" and run.scenario == "fast-reno-h2" else None)
    tally = carry_out(tmp_path, tmp_path / "s", one_bad, text.replace("visits = 3", "visits = 2"))
    assert tally.counts == {"valid": 3 + 14, "invalid": 1, "cannot count": 2}
    assert tally.cannot_count == {"two": "objects: x (expected y) (in fast-reno-h2)"}


def test_what_was_found_over_one_http_version_says_nothing_of_the_other(tmp_path: Path):
    text = EVALUATION.replace("[[user", 'http = ["h2", "h1"]\n[[user')
    fake = By(lambda run: PageFailed("refused") if run.http == "h2" and run.page_name == "one" else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake, text)
    runs = Results.open(tmp_path / "r").runs("done")
    assert set(runs.filter(runs["page"] == "one")["http"]) == {"h1"}
    assert tally.cannot_count["one"].startswith("refused (in fast-cubic-h2, fast-reno-h2)")


def test_a_page_that_counted_once_in_a_scenario_is_never_skipped_there(tmp_path: Path):
    fake = By(lambda run: invalid() if run.visit == 2 else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert tally.counts == {"valid": KEYS - 4, "invalid": 4}
    assert tally.cannot_count == {}


def test_a_page_that_is_too_slow_is_tried_twice_in_each_scenario_and_never_at_once(tmp_path: Path):
    fake = By(lambda run: PageTimeout("no load event within 60 s") if run.page_name == "one" else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake, FOUR)
    assert tally.counts == {"valid": 14, "timed out": 8, "cannot count": 6}
    assert max(attempts(fake).values()) == 1
    once = By(lambda run: PageTimeout("no load event within 60 s") if run.visit == 1 else None)
    assert carry_out(tmp_path, tmp_path / "s", once).counts == {"valid": KEYS - 4, "timed out": 4}


def test_a_crash_is_repeated_at_once_and_speaks_against_the_page_in_that_scenario_only(tmp_path: Path):
    scenario = "fast-cubic-h2"
    fake = By(
        lambda run: RunFailed("crashed") if (run.scenario, run.page_name) == (scenario, "one") else None
    )
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert attempts(fake)[f"{scenario}.user.one.v00"] == 3
    assert tally.counts == {"valid": KEYS - 4, "failed": 1, "cannot count": 3}
    assert (tally.repeats, tally.repeats_in_vain) == (2, 2)
    assert tally.cannot_count == {"one": f"crashed (in {scenario})"}


def test_repeats_are_counted_and_those_that_ended_no_better_are_in_vain(tmp_path: Path):
    ends = {1: RunFailed("crashed"), 2: Outcome("suspect", [reason("steal", "suspect")]), 3: None}
    tally = carry_out(tmp_path, tmp_path / "r", By(lambda run: ends[run.attempt] if run.visit == 1 else None))
    assert (tally.counts, tally.repeats, tally.repeats_in_vain) == ({"valid": KEYS}, 8, 0)
    ends[3] = ends[2]
    tally = carry_out(tmp_path, tmp_path / "s", By(lambda run: ends[run.attempt] if run.visit == 1 else None))
    assert (tally.repeats, tally.repeats_in_vain) == (8, 4)
    assert tally.counts == {"valid": KEYS - 4, "suspect": 4}


def test_a_visit_at_fault_on_a_busy_machine_is_repeated_before_it_speaks_against_its_page(tmp_path: Path):
    busy = invalid(reason("objects"), reason("steal", "suspect"))
    fake = By(lambda run: busy if (run.page_name, run.visit, run.attempt) == ("one", 1, 1) else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    assert (tally.counts, tally.repeats, tally.repeats_in_vain) == ({"valid": KEYS}, 2, 0)
    warm = By(lambda run: busy if (run.page_name, run.visit) == ("one", 0) else None)
    tally = carry_out(tmp_path, tmp_path / "s", warm)
    assert (tally.counts, tally.repeats) == ({"valid": KEYS - 1, "invalid": 1}, 0)


def test_two_visits_at_fault_on_a_busy_machine_speak_against_their_page(tmp_path: Path):
    busy = invalid(reason("objects"), reason("steal", "suspect"))
    fake = By(lambda run: busy if run.page_name == "one" else None)
    tally = carry_out(tmp_path, tmp_path / "r", fake)
    tried = {key: number for key, number in attempts(fake).items() if ".one." in key}
    assert set(tried.values()) == {1} and len(tried) == 4
    assert tally.counts == {"valid": KEYS // 2, "invalid": 3, "cannot count": 4}
    assert tally.cannot_count == {"one": "objects: x (expected y)"} and tally.repeats == 0
    again = Fake()
    assert carry_out(tmp_path, tmp_path / "r", again) == tally and again.asked == []


def test_a_network_that_is_off_makes_runs_suspect_and_no_repeat_would_help(tmp_path: Path):
    off = Outcome("suspect", [reason("calibration", "suspect")])
    tally = carry_out(tmp_path, tmp_path / "r", By(lambda run: off))
    assert (tally.counts, tally.repeats) == ({"suspect": KEYS}, 0)


def test_a_page_that_is_known_not_to_count_is_skipped_from_the_start(tmp_path: Path, capsys):
    fake, known = Fake(), {"one": "its script asks for another address each time"}
    tally = plans.pool.carry_out(
        plans.planned(tmp_path), tmp_path / "r", [fake.backend()], plans.Lines(), cannot_count=known
    )
    assert tally.counts == {"valid": KEYS // 2, "cannot count": KEYS // 2}
    assert tally.cannot_count == known
    assert not [key for key in attempts(fake) if ".one." in key]
    assert capsys.readouterr().err.count(known["one"]) == 1


def test_the_same_command_tries_the_first_visit_again_and_the_skipped_ones_follow_it(tmp_path: Path):
    def bad(run):
        return PageFailed("status 404") if run.page_name == "one" else None

    carry_out(tmp_path, tmp_path / "r", By(bad))
    again = By(bad)
    tally = carry_out(tmp_path, tmp_path / "r", again)
    assert sorted(attempts(again).values()) == [1, 1], "one visit in each scenario"
    assert tally.counts == {"valid": KEYS // 2, "failed": 2, "cannot count": KEYS // 2 - 2}
    assert (tally.repeats, tally.repeats_in_vain) == (2, 2)
    mended = Fake()
    assert carry_out(tmp_path, tmp_path / "r", mended).counts == {"valid": KEYS}
    assert len(attempts(mended)) == KEYS // 2


def test_a_page_whose_visit_is_invalid_stays_skipped_when_the_same_command_is_given_again(tmp_path: Path):
    first = carry_out(tmp_path, tmp_path / "r", By(lambda run: invalid() if run.page_name == "one" else None))
    again = Fake()
    second = carry_out(tmp_path, tmp_path / "r", again)
    assert again.asked == [] and second == first


def test_what_fails_on_pages_that_loaded_before_ends_the_evaluation(tmp_path: Path):
    with pytest.raises(RunFailed, match="3 runs in a row failed"):
        carry_out(tmp_path, tmp_path / "r", By(lambda run: RunFailed("died") if run.visit == 2 else None))
    assert set(Results.open(tmp_path / "r").runs("failed")["visit"]) == {2}


def test_what_fails_on_every_page_ends_the_evaluation_and_what_fails_on_one_does_not(tmp_path: Path):
    text = FOUR.replace('"one", "two"', '"one", "two", "three", "four"')
    with pytest.raises(RunFailed, match="3 runs in a row failed"):
        carry_out(tmp_path, tmp_path / "r", By(lambda run: RunFailed("died")), text)
    tally = carry_out(
        tmp_path, tmp_path / "s", By(lambda run: RunFailed("died") if run.page_name == "one" else None), text
    )
    assert tally.counts == {"valid": 39, "failed": 4, "cannot count": 9}


def test_what_is_refused_and_not_the_pages_ends_the_evaluation_at_once(tmp_path: Path):
    fake = By(lambda run: Refused("cc load: congestion[0]: clang is not installed"))
    with pytest.raises(Refused, match="clang is not installed"):
        carry_out(tmp_path, tmp_path / "r", fake)
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("/r/run.json: pages.shop.resources[0].type: found data, accepted: html", PageFailed),
        ("/r/run.json: sites.shop.responses[3].status: found 0, accepted: 200 to 599", PageFailed),
        ("/r/run.json: sites: found no origin, accepted: one at least", PageFailed),
        ("/r/run.json: network.down.queue: found 0 packets, accepted: 1 or more", Refused),
        ("/r/run.json: congestion[0]: mine.c:3: expected ';'", Refused),
        ("/r/run.json: simulation.tcp.net.ipv4.tcp_rmem: found many, accepted: a number", Refused),
        ("/r/run.json: lone leading surrogate in hex escape at line 1 column 4711", RunFailed),
    ],
)
def test_a_refusal_names_whose_fault_it_is(said: str, kind: type[Exception]):
    refusal = refusals.refusal(said, "replay")
    assert type(refusal) is kind
    assert "/r/run.json" not in str(refusal)


def test_what_is_wrong_in_the_folder_of_a_page_is_the_pages_and_all_else_is_not(tmp_path: Path):
    with pytest.raises(PageFailed, match="body: found damage"), refusals.reading(tmp_path):
        raise UsageError(f"{tmp_path}/page.json: body", "damage", "a body")
    with pytest.raises(PageFailed, match="No such file"), refusals.reading(tmp_path):
        (tmp_path / "page.json").read_bytes()
    with pytest.raises(PageFailed, match="ZeroDivisionError"), refusals.reading(tmp_path):
        _ = 1 / 0
    with pytest.raises(UsageError), refusals.reading(tmp_path):
        raise UsageError("/var/cache", "a folder that cannot be written", "one that can")
    with pytest.raises(FileNotFoundError), refusals.reading(tmp_path):
        Path("/nowhere/at/all").read_bytes()
