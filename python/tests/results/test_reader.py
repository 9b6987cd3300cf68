"""Reading a results folder."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint.errors import PageFailed, PageTimeout, UsageError
from wirepaint.results import Results, contents, trace

sys.path.insert(0, str(Path(__file__).parents[1]))
from runners.plans import EVALUATION, KEYS, Fake, carry_out

from wirepaint.results.outcome import Outcome


class Mixed(Fake):
    """Every run of reno is invalid."""

    def outcome(self, run):
        reason = {"check": "congestion", "severity": "invalid", "found": "bbr", "expected": "reno"}
        return Outcome("invalid", [reason]) if run.congestion.name == "reno" else Outcome("valid")


@pytest.fixture
def results(tmp_path: Path) -> Results:
    carry_out(tmp_path, tmp_path / "r", Mixed())
    return Results.open(tmp_path / "r")


def test_runs_have_a_row_each_with_the_axes_in_columns(results: Results):
    runs = results.runs()
    assert runs.height == KEYS
    row = runs.row(by_predicate=pl.col("run_key") == "fast-reno-h2.user.two.v03", named=True)
    assert row["network"] == "fast"
    assert (row["congestion"], row["http"], row["initial_window"], row["proxy"]) == ("reno", "h2", 10, "none")
    assert (row["user_agent"], row["page"], row["visit"], row["warmup"]) == ("user", "two", 3, False)
    assert (row["state"], row["verdict"], row["attempts"]) == ("done", "invalid", 1)
    assert results.runs("failed").height == 0
    assert results.title == "Two controls"


def test_compact_runs_are_the_same_runs(results: Results):
    runs, compact = results.runs(), results.compact()
    assert compact["scenario"].dtype == pl.Categorical
    assert compact.cast(dict(runs.schema)).equals(runs)
    assert results.compact("done")["run_key"].to_list() == results.runs("done")["run_key"].to_list()


def test_all_takes_counted_visits_of_the_verdicts_asked_for(results: Results):
    assert set(results.all("page")["congestion"]) == {"cubic"}
    assert results.all("page").height == 2 * 3
    assert results.all("page", ("valid", "invalid")).height == 2 * 2 * 3
    assert results.all("page", ("valid", "invalid"), warmup=True).height == KEYS
    frame = results.all("page")
    assert frame.columns[0] == "run_key"
    assert frame.columns.count("page") == 1
    assert frame["load_event"].to_list() == [10**9] * 6


def test_a_table_that_no_run_has_is_empty_with_all_columns(results: Results):
    key = results.runs("done")["run_key"][0]
    for frame in (results.all("chunk"), results.all("chunk", ()), results.trace(key, "chunk")):
        assert frame.height == 0
        assert set(trace.polars_schema("chunk")) <= set(frame.columns)
    assert results.all("chunk").schema == results.all("chunk", ()).schema


def test_results_are_read_where_nothing_may_be_written(results: Results):
    folder = results.folder
    before = sorted(path.name for path in folder.iterdir())
    folder.chmod(0o555)
    try:
        assert Results.open(folder).runs().height == KEYS
        assert sorted(path.name for path in folder.iterdir()) == before
    finally:
        folder.chmod(0o755)


def flip(path: Path, at: int = 40) -> None:
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1
    path.write_bytes(content)


def test_a_flipped_bit_of_a_table_is_named_and_gives_no_number(results: Results):
    key = results.runs("done")["run_key"][0]
    flip(results.path(key) / "page.parquet")
    with pytest.raises(
        UsageError, match=rf"{key}/page.parquet: found a damaged file \(SHA-256 .*\); accepted"
    ):
        results.trace(key, "page")
    with pytest.raises(UsageError, match=r"page.parquet: found a damaged file"):
        results.all("page", warmup=True)


def test_a_file_is_hashed_once_by_a_reader(results: Results, monkeypatch: pytest.MonkeyPatch):
    hashed: list[str] = []
    real = contents.digest
    monkeypatch.setattr(contents, "digest", lambda path: hashed.append(Path(path).name) or real(path))
    key = results.runs("done")["run_key"][0]
    for _ in range(3):
        assert results.trace(key, "page").height == 1
    assert hashed == ["page.parquet"]


def test_a_table_that_the_run_had_is_missed_and_one_that_it_never_had_is_empty(results: Results):
    key = results.runs("done")["run_key"][0]
    assert results.trace(key, "chunk").is_empty()
    (results.path(key) / "page.parquet").unlink()
    for table in ("page", "chunk"):
        with pytest.raises(UsageError, match=rf"{key}/page.parquet: found no such file"):
            Results.open(results.folder).trace(key, table)


def test_a_file_too_many_is_named(results: Results):
    key = results.runs("done")["run_key"][0]
    trace.write_table(results.path(key), "chunk", [])
    with pytest.raises(UsageError, match=rf"{key}/chunk.parquet: found a file that the run did not have"):
        results.trace(key, "page")


def test_a_link_in_place_of_a_file_is_not_followed(results: Results):
    key = results.runs("done")["run_key"][0]
    path = results.path(key) / "page.parquet"
    path.rename(results.folder / "elsewhere")
    path.symlink_to(results.folder / "elsewhere")
    with pytest.raises(UsageError, match=r"page.parquet: found a symbolic link"):
        results.trace(key, "page")


def test_a_key_that_no_run_has_is_refused(results: Results):
    for key in ("fast-cubic-h2.user.one.v99", "../../etc", "/etc"):
        with pytest.raises(UsageError, match="found no run"):
            results.trace(key, "page")
    with pytest.raises(UsageError, match="found the run key"):
        results.path("../../etc")


def test_a_failed_run_has_its_kind(tmp_path: Path):
    class Bad(Fake):
        def outcome(self, run):
            raise PageTimeout("no load event within 60 s") if run.page_name == "one" else PageFailed("404")

    carry_out(tmp_path, tmp_path / "bad", Bad())
    failed = Results.open(tmp_path / "bad").runs("failed")
    assert set(failed.select("page", "kind").rows()) == {("one", "timeout"), ("two", "page")}


def test_what_is_no_results_folder_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="nowhere: found no such folder; accepted: a results folder"):
        Results.open(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="found no such file or directory"):
        Results.open(tmp_path)


def test_the_evaluation_and_what_made_the_results_are_kept(results: Results):
    assert (results.folder / "evaluation.toml").read_text() == EVALUATION
    kept = results.manifest
    assert kept["versions"]["browser"] == "none"
    assert {"wirepaint", "kernel", "python"} <= set(kept["versions"])
    assert kept["machine"]["cores"] >= 1
    assert kept["evaluation"]["networks"]["fast"]["down"]["delay_ns"] == 13_000_000
    assert len(kept["sessions"]) == 1


def test_tables_of_several_files_are_told_apart(tmp_path: Path):
    """Also one without rows, and one that is asked for twice."""
    paths = []
    for rows in (2, 0, 1):
        (tmp_path / str(rows)).mkdir()
        times = [{"time": 10 * rows + at} for at in range(rows)]
        paths.append(trace.write_table(tmp_path / str(rows), "chunk", times))
    paths.append(paths[0])
    assert [table["time"].to_list() for table in trace.read_files({"chunk": paths})["chunk"]] == [
        [20, 21], [], [10], [20, 21]
    ]  # fmt: skip
