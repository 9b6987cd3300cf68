"""Results that grow: an evaluation that is edited after it began."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wirepaint.errors import PageFailed, PageTimeout, UsageError
from wirepaint.evaluation.pages import PageRef
from wirepaint.results import Results, growth
from wirepaint.results.verify import verify

sys.path.insert(0, str(Path(__file__).parents[1]))
from runners import plans
from runners.plans import EVALUATION, Fake, carry_out

SLOW = '{title = "slow", down = {rate = "1 Mbit/s", delay = "50 ms"}, up = {delay = "50 ms"}}'
FAST = EVALUATION[EVALUATION.index("[{title") + 1 : EVALUATION.index("}}]") + 2]


class Slowest(Fake):
    """Every run of the page "two" times out."""

    def outcome(self, run):
        if run.page_name == "two":
            raise PageTimeout("the page did not load within 60 s")
        return super().outcome(run)


class Broken(Fake):
    """Every run on the network "slow" fails."""

    def outcome(self, run):
        if run.network.name == "slow":
            raise PageFailed("net::ERR_FAILED")
        return super().outcome(run)


def edited(*changes: tuple[str, str]) -> str:
    """The evaluation with texts replaced."""
    text = EVALUATION
    for was, now in changes:
        assert was in text
        text = text.replace(was, now)
    return text


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    carry_out(tmp_path, tmp_path / "r", Fake())
    return tmp_path / "r"


def grown(folder: Path, *changes: tuple[str, str], fake: Fake | None = None) -> list[str]:
    """Carries the edited evaluation out in the same folder; returns the runs that were carried out."""
    fake = fake or Fake()
    carry_out(folder.parent, folder, fake, edited(*changes))
    assert verify(folder).faults == []
    return [key for key, _ in fake.asked]


def counted(keys: list[str]) -> list[str]:
    """Those that are no warm-up."""
    return [key for key in keys if not key.endswith(".v00")]


def counts(folder: Path) -> dict[tuple[str, ...], int]:
    runs = Results.open(folder).runs("done").filter(~pl.col("warmup"))
    rows = runs.group_by("network", "congestion", "page", maintain_order=True).len().rows()
    return {tuple(row[:-1]): row[-1] for row in rows}


def test_results_grow_although_this_build_keeps_more_of_what_rehearsals_found(tmp_path, monkeypatch):
    found = {"verdict": "replays", "error": 0.1}
    page = lambda name, base, _: PageRef(name=name, folder=base, sha256="0" * 64, rehearsal=found)  # noqa: E731
    monkeypatch.setattr(plans, "page", page)
    carry_out(tmp_path, tmp_path / "r", Fake())
    found["others_cpu"] = 0.4
    assert len(counted(grown(tmp_path / "r", MORE_VISITS))) == 8


MORE_VISITS = ("visits = 3", "visits = 5")
MORE_PAGES = ('"one", "two"', '"one", "two", "three"')
MORE_NETWORKS = (FAST, f"{FAST}, {SLOW}")
MORE_LEVELS = ('["cubic", "reno"]', '["cubic", "reno"]\ninitial_window = [10, 32]')


@pytest.mark.parametrize(
    ("change", "new"),
    [(MORE_VISITS, 8), (MORE_PAGES, 6), (MORE_NETWORKS, 12), (MORE_LEVELS, 12)],
    ids=["visits", "pages", "networks", "levels"],
)
def test_only_what_is_new_is_carried_out(begun: Path, change: tuple[str, str], new: int):
    before = Results.open(begun).runs("done")
    carried = grown(begun, change)
    assert len(counted(carried)) == new
    after = Results.open(begun).runs()
    assert set(after["state"]) == {"done"}
    visits = before.filter(~pl.col("warmup"))
    kept = after.filter(pl.col("run_key").is_in(visits["run_key"].implode()))
    assert kept.height == visits.height
    assert (
        kept.select("run_key", "seed")
        .sort("run_key")
        .equals(visits.select("run_key", "seed").sort("run_key"))
    )
    assert grown(begun, change) == []


def test_a_level_of_a_new_axis_keeps_the_key_of_its_runs_and_takes_the_new_name(begun: Path):
    grown(begun, MORE_LEVELS)
    runs = Results.open(begun).runs().filter(pl.col("visit") == 1)
    names = dict(runs.select("run_key", "scenario").iter_rows())
    assert names["fast-cubic-h2.user.one.v01"] == "fast-cubic-h2-iw10"
    assert names["fast-cubic-h2-iw32.user.one.v01"] == "fast-cubic-h2-iw32"


def test_runs_that_are_no_longer_asked_for_stay_and_are_not_counted(begun: Path, capsys):
    fewer = ('["cubic", "reno"]', '["cubic"]'), ("visits = 3", "visits = 2")
    assert counted(grown(begun, *fewer)) == []
    assert "no longer asked for: 9 runs stay in the folder, not counted" in capsys.readouterr().err
    assert counts(begun) == {("fast", "cubic", "one"): 2, ("fast", "cubic", "two"): 2}
    assert Results.open(begun).unasked == 9
    assert len(list((begun / "runs").glob("*.v0[1-9]"))) == 2 * 2 * 3
    assert counted(grown(begun)) == [], "asked for again, they count again"
    assert sum(counts(begun).values()) == 2 * 2 * 3


def test_an_edit_that_would_change_finished_runs_is_refused_by_its_key(begun: Path):
    with pytest.raises(UsageError, match=r"networks\.fast\.down\.delay_ns was 13000000 and is 14000000"):
        grown(begun, ('rate = "25 Mbit/s", delay = "13 ms"', 'rate = "25 Mbit/s", delay = "14 ms"'))
    with pytest.raises(UsageError, match=r"found seed was 1 and is 2; accepted: what the finished runs of "):
        grown(begun, ("[scenarios]", "seed = 2\n[scenarios]"))
    assert grown(begun) == []


def test_a_changed_c_file_or_page_is_named_in_words():
    agent = {"name": "user", "page": "kit", "page_sha256": "1" * 64, "page_by_https_sha256": "2" * 64}
    levels = dict.fromkeys(growth.IDENTITY, "x") | {"user_agent": "user", "page": "kit"}
    levels |= {"congestion": "mine-gain-2", "network": "lte"}

    def evaluation(c_file: str = "3", **page: str) -> dict[str, Any]:
        control = {"name": "mine", "file": {"sha256": c_file * 64}}
        return {
            "networks": {"lte": {}},
            "congestion": {"mine-gain-2": control},
            "scenarios": {"x": levels},
            "user_agents": [agent | page],
        }

    was = evaluation()
    assert growth.renewed(was, evaluation(contents_sha256="4"), [levels]) == []
    changed = evaluation("5", page_by_https_sha256="6")
    assert growth.renewed(was, changed, [levels]) == [
        "the C file of mine has changed since these runs",
        "the page kit is another one than that of these runs",
    ]
    assert growth.renewed(was, changed, []) == [], "no run that ended depends on it"
    known = evaluation(contents_sha256="4")
    again = evaluation(contents_sha256="4", page_sha256="5")
    said = "the rehearsal of the page kit is another one than that of these runs"
    assert growth.renewed(known, again, [levels]) == [said]


def test_another_page_of_the_same_name_asks_for_a_new_folder(begun: Path, monkeypatch):
    monkeypatch.setattr(plans, "page", lambda name, base, _: PageRef(name=name, folder=base, sha256="1" * 64))
    with pytest.raises(UsageError, match=r"found the page one is another one than that of these runs; ") as e:
        grown(begun)
    assert e.value.accepted.startswith("what it was, or a new folder (-o NEW); then ")
    assert e.value.accepted.endswith(f"wirepaint compare {begun} NEW")


def test_what_no_single_run_depends_on_may_change(begun: Path):
    asked = 'title = "Again"\norder = "sequential"\nprimary = ["speed-index"]'
    assert grown(begun, ('title = "Two controls"', asked)) == []
    assert Results.open(begun).title == "Again"


def test_what_an_earlier_version_ran_is_not_changed_by_a_later_one(begun: Path):
    """The network is removed, and comes back with another delay."""
    grown(begun, (FAST, SLOW))
    other = FAST.replace("13 ms", "14 ms")
    with pytest.raises(UsageError, match=r"networks\.fast\..* was 13000000 and is 14000000"):
        grown(begun, (FAST, f"{SLOW}, {other}"))
    assert grown(begun, (FAST, f"{SLOW}, {FAST}")) == [], "with the first delay its runs count again"


def test_a_network_without_a_finished_run_may_change(tmp_path: Path):
    def with_slow(rate: str) -> tuple[str, str]:
        return FAST, f"{FAST}, {SLOW.replace('1 Mbit/s', rate)}"

    carry_out(tmp_path, tmp_path / "r", Broken(), edited(with_slow("1 Mbit/s")))
    assert counted(grown(tmp_path / "r", with_slow("2 Mbit/s")))
    assert sum(counts(tmp_path / "r").values()) == 2 * 2 * 2 * 3


def test_a_visit_that_timed_out_is_finished_too(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Slowest())
    with pytest.raises(UsageError, match="found timeout was 60000000000 and is 90000000000"):
        grown(tmp_path / "r", ("[scenarios]", 'timeout = "90 s"\n[scenarios]'))


KILLED = {
    "before the journal": ("Journal", "plan", "before"),
    "after the journal": ("Journal", "plan", "after"),
    "before the manifest": ("manifest", "_write", "before"),
    "after the evaluation file": ("durable", "write", "after"),
    "after the manifest": ("manifest", "_write", "after"),
}
COMMAND = """
import os, sys
from pathlib import Path
from typing import Any
sys.path.insert(0, os.environ["TESTS"])
from runners.plans import Fake, carry_out
from wirepaint.results import durable, journal, manifest

folder, text, owner, name, when = sys.argv[1:]
place = {"Journal": journal.Journal, "manifest": manifest, "durable": durable}[owner]
original = getattr(place, name)

def deadly(*arguments):
    if when == "after":
        original(*arguments)
    os.kill(os.getpid(), 9)

setattr(place, name, deadly)
carry_out(Path(folder).parent, Path(folder), Fake(), text)
"""


def kill(begun: Path, change: tuple[str, str], moment: str) -> None:
    where = [str(begun), edited(change), *KILLED[moment]]
    tests = str(Path(__file__).parents[1])
    killed = subprocess.run([sys.executable, "-c", COMMAND, *where], env=os.environ | {"TESTS": tests})
    assert killed.returncode == -9


@pytest.mark.parametrize("moment", KILLED)
def test_killed_while_it_grows_the_folder_is_readable_and_the_same_command_goes_on(begun: Path, moment: str):
    kill(begun, MORE_PAGES, moment)
    assert sum(counts(begun).values()) == 2 * 2 * 3
    assert len(counted(grown(begun, MORE_PAGES))) == 6
    assert sum(counts(begun).values()) == 2 * 3 * 3
    assert Results.open(begun).evaluation == edited(MORE_PAGES)


@pytest.mark.parametrize("moment", ["before the journal", "after the manifest"])
def test_killed_while_scenarios_get_other_names_the_folder_says_so_and_the_same_command_goes_on(
    begun: Path, moment: str
):
    kill(begun, MORE_LEVELS, moment)
    with pytest.raises(UsageError, match=r"found runs of fast-cubic-h2, .* the same command completes it"):
        Results.open(begun).runs()
    assert len(counted(grown(begun, MORE_LEVELS))) == 12
