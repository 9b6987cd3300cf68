"""The folder that the pool resumes: what is not as its command left it is refused or carried out again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.results.journal import Journal, _change

from . import plans
from .plans import EVALUATION, KEYS, Fake, assert_complete, carry_out, identities


def test_another_evaluation_in_the_folder_is_refused_with_what_differs(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    changed = EVALUATION.replace("25 Mbit/s", "2 Mbit/s").replace("visits = 3", "visits = 4")
    with pytest.raises(UsageError) as refused:
        carry_out(tmp_path, tmp_path / "r", Fake(), changed)
    assert "networks.fast.down.capacity.bit_per_s was 25000000 and is 2000000" in refused.value.found
    assert "visits" not in refused.value.found, "more visits are no difference"


def test_a_comment_in_the_evaluation_does_not_matter(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    assert carry_out(tmp_path, tmp_path / "r", Fake(), "# again\n" + EVALUATION).counts == {"valid": KEYS}


def test_another_browser_is_refused(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    newer = [Fake().backend(browser="Chromium 999")]
    with pytest.raises(UsageError, match="found browser Chromium 999; accepted: browser none"):
        plans.pool.carry_out(plans.planned(tmp_path), tmp_path / "r", newer, plans.Lines())


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(tmp_path: Path):
    results = tmp_path / "r"
    results.mkdir()
    (results / "thesis.tex").write_text("...")
    with pytest.raises(UsageError, match=r"found thesis.tex in it; accepted: a new or empty folder"):
        carry_out(tmp_path, results, Fake())
    assert [entry.name for entry in results.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: (r / "manifest.json").write_text("{"), "manifest.json: found a damaged file"),
        (lambda r: (r / "manifest.json").write_text('{"format": 9}'), "manifest.json: found format 9"),
        (
            lambda r: (r / "journal.sqlite").write_bytes(b"x" * 9000),
            "journal.sqlite: found a journal that cannot",
        ),
        (lambda r: (r / "journal.sqlite").unlink(), "journal.sqlite: found no such file"),
        (lambda r: (r / "journal.sqlite").write_bytes(b""), "journal.sqlite: found format 0"),
        (
            lambda r: shutil.rmtree(r / "runs"),
            f"runs: found no folder; accepted: the folder of the {KEYS} runs",
        ),
    ],
    ids=["manifest", "format", "journal", "no journal", "empty journal", "all runs"],
)
def test_a_damaged_store_stops_with_a_sentence(tmp_path: Path, damage, message: str):
    results = tmp_path / "r"
    carry_out(tmp_path, results, Fake())
    damage(results)
    with pytest.raises(UsageError) as refused:
        carry_out(tmp_path, results, Fake())
    assert message in str(refused.value)


def test_an_empty_folder_of_runs_says_that_all_are_made_anew(tmp_path: Path):
    results = tmp_path / "r"
    carry_out(tmp_path, results, Fake())
    shutil.rmtree(results / "runs")
    again = Fake()
    with pytest.raises(
        UsageError, match=rf"or an empty one to carry them out again \(mkdir {results}/runs\)"
    ):
        carry_out(tmp_path, results, again)
    (results / "runs").mkdir()
    carry_out(tmp_path, results, again)
    assert len(again.asked) == KEYS


def test_a_run_whose_folder_was_removed_is_carried_out_again_and_named(tmp_path: Path, capsys):
    results, key = tmp_path / "r", "fast-cubic-h2.user.one.v01"
    carry_out(tmp_path, results, Fake())
    before = identities(results)
    shutil.rmtree(results / "runs" / key)
    again = Fake()
    tally = carry_out(tmp_path, results, again)
    assert again.asked == [(key, 2)]
    assert (tally.counts, tally.repeats) == ({"valid": KEYS}, 0)
    assert f"{key}: its folder is gone, so it is carried out again\n" in capsys.readouterr().err
    before.pop(key)
    assert before.items() <= identities(results).items()
    assert_complete(results)


FOREIGN = [
    "../../x",
    "/etc/x",
    "..",
    ".hidden.v01",
    "a/b.v01",
    "a\nb.v01",
    "x" * 300 + ".v01",
    "",
    "no-visit",
]


def foreign_key(results: Path, key: str) -> None:
    """Gives a run of the journal another key, as somebody would who knows how it is sealed."""
    book = Journal(results)
    book._db.execute("PRAGMA foreign_keys = OFF")
    book._db.execute(
        "UPDATE run SET key = ?, state = 'planned', verdict = NULL, files = NULL WHERE position = 0", (key,)
    )
    _change(book._db, key)
    book.close()


@pytest.mark.parametrize("key", FOREIGN)
def test_a_foreign_key_leads_to_nothing_outside_the_folder(tmp_path: Path, key: str):
    results = tmp_path / "a/r"
    results.parent.mkdir()
    carry_out(tmp_path, results, Fake())
    (tmp_path / "a/x").mkdir()
    (tmp_path / "x").mkdir()
    foreign_key(results, key)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if "journal" not in path.name}
    with pytest.raises(
        UsageError, match=r"journal.sqlite: found the run key .*accepted: a run key: at most 230"
    ):
        carry_out(tmp_path, results, Fake())
    now = {path: path.stat().st_mtime_ns for path in before}
    changed = {path.name for path in before if now[path] != before[path]}
    assert changed <= {".lock", "r", "manifest.json", "evaluation.toml"}


def test_another_run_than_those_of_the_evaluation_is_refused(tmp_path: Path):
    carry_out(tmp_path, tmp_path / "r", Fake())
    foreign_key(tmp_path / "r", "fast-cubic-h2.user.other.v01")
    with pytest.raises(UsageError, match=r"journal.sqlite: found other runs than those of the manifest"):
        carry_out(tmp_path, tmp_path / "r", Fake())


@pytest.mark.parametrize(
    "name", ["runs", "set-aside", "calibration", "metrics", ".lock", "journal.sqlite", "manifest.json"]
)
def test_a_link_in_the_folder_that_may_lead_elsewhere_is_refused(tmp_path: Path, name: str):
    results = tmp_path / "r"
    carry_out(tmp_path, results, Fake())
    if (results / name).exists():
        (results / name).rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").mkdir()
    (results / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"r/{name}: found a symbolic link"):
        carry_out(tmp_path, results, Fake())


def test_the_folder_of_a_run_may_be_no_link(tmp_path: Path):
    results, key = tmp_path / "r", "fast-cubic-h2.user.one.v01"
    carry_out(tmp_path, results, Fake())
    (results / "runs" / key).rename(tmp_path / "elsewhere")
    (results / "runs" / key).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{key}: found a symbolic link"):
        carry_out(tmp_path, results, Fake())
    assert (tmp_path / "elsewhere/page.parquet").is_file()


def test_a_network_with_a_name_that_no_file_can_have_is_refused_before_anything_is_written(tmp_path: Path):
    plan = plans.planned(tmp_path)
    network = plan.runs[0].network.model_copy(update={"name": "../up"})
    plan = plans.changed(plan, network=network)
    with pytest.raises(UsageError, match=r'found the network "\.\./up"; accepted: a name of at most'):
        plans.pool.carry_out(plan, tmp_path / "r", [Fake().backend()], plans.Lines())
    assert not (tmp_path / "r").exists()


def test_a_table_that_a_resumed_command_reads_is_checked(tmp_path: Path):
    text = EVALUATION.replace("[scenarios]", '[stop]\nvisits = 3\ninterval = "5 %"\n[scenarios]')
    carry_out(tmp_path, tmp_path / "r", Fake(), text)
    (tmp_path / "r/runs/fast-cubic-h2.user.one.v01/page.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"one.v01/page.parquet: found a damaged file"):
        carry_out(tmp_path, tmp_path / "r", Fake(), text)
