"""Metrics are computed once and kept."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint import cli, metrics
from wirepaint.metrics import _kept, page_load_time
from wirepaint.results import Results, contents, journal, measured, trace

RUNS = 4 + 2 * 2 * 2 * 2
"""Warm-ups and visits of the folder."""


KILLED = """
import os, sys
from pathlib import Path
from wirepaint import metrics
from wirepaint.results import Results

results = Results.open(Path(sys.argv[1]))
with metrics.Keeper(results.folder) as keeper:
    for key in results.runs("done")["run_key"]:
        keeper.add(key, results.digests(key), results.path(key))
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def folder(results_folder) -> Path:
    return results_folder(lambda run: 1 + 0.1 * run.visit, visits=2)


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """The keys of the runs whose metrics are computed, as they are."""
    keys: list[str] = []
    original = _kept.computed

    def counted(runs, of):
        keys.extend(run.key for run in runs)
        return original(runs, of)

    monkeypatch.setattr(_kept, "computed", counted)
    return keys


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "metrics").glob("*"))


def keep(folder: Path, keys: list[str]) -> None:
    """Keeps the metrics of runs as the command does that carries them out."""
    results = Results.open(folder)
    with metrics.Keeper(folder) as keeper:
        for key in keys:
            keeper.add(key, results.digests(key), results.path(key))


def test_results_without_metrics_get_them_at_the_first_reading(folder, computed):
    first = metrics.table(Results.open(folder))
    assert len(computed) == RUNS
    assert metrics.table(Results.open(folder)).equals(first)
    assert len(computed) == RUNS
    assert len(parts(folder)) == 1


def test_a_reading_has_the_metrics_that_were_asked(folder):
    every = metrics.table(Results.open(folder))
    one = metrics.table(Results.open(folder), metrics=["page-load-time"])
    assert one["page_load_time"].equals(every["page_load_time"])
    assert set(every.columns) - set(one.columns) == {
        "missing", *(each.column for each in metrics.registry().values() if each.name != "page-load-time")
    }  # fmt: skip


def test_the_command_keeps_what_readers_take(folder, computed):
    keys = Results.open(folder).runs("done")["run_key"].to_list()
    keep(folder, keys)
    assert sorted(computed) == sorted(keys)
    metrics.table(Results.open(folder))
    assert len(computed) == RUNS


def test_a_reader_computes_what_a_killed_command_did_not_write(folder, computed):
    keys = Results.open(folder).runs("done")["run_key"].to_list()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert killed.returncode == -9
    assert parts(folder) == [], "a batch is larger than these results"
    keep(folder, keys[:5])
    computed.clear()
    table = metrics.table(Results.open(folder))
    assert sorted(computed) == sorted(keys[5:])
    assert table.height == RUNS
    assert len(parts(folder)) == 1, "the files are joined"


def test_a_run_with_another_trace_is_computed_again(folder, computed):
    """As after its folder was removed and the run was carried out again."""
    before = metrics.table(Results.open(folder))
    key = before["run_key"][0]
    table = folder / "runs" / key / "page.parquet"
    pl.read_parquet(table).with_columns(pl.col("load_event") + 100_000_000).write_parquet(table)
    book = journal.Journal(folder)
    with book._transaction() as db:
        journal._change(db, key, files=json.dumps(contents.record(table.parent)))
    book.close()
    computed.clear()
    after = metrics.table(Results.open(folder))
    assert computed == [key]
    later = after["page_load_time"] - before["page_load_time"]
    assert later.to_list() == [100.0] + [0.0] * (RUNS - 1)


def test_a_changed_definition_is_computed_again(folder, computed, monkeypatch):
    before = metrics.table(Results.open(folder))
    computed.clear()
    monkeypatch.setattr(_kept, "definition", lambda metric: "0" * 16)
    assert metrics.table(Results.open(folder)).equals(before)
    assert len(computed) == RUNS


def test_a_change_of_a_metric_of_ones_own_leaves_the_others(folder, monkeypatch, tmp_path):
    metrics.table(Results.open(folder))
    original = _kept.definition
    own = page_load_time.page_load_time
    monkeypatch.setattr(_kept, "definition", lambda each: "own" if each is own else original(each))
    metrics.table(Results.open(folder), metrics=["speed-index"])
    assert len(parts(folder)) == 1, "nothing was computed for a metric that was not asked"
    loaded = metrics.table(Results.open(folder), metrics=["page-load-time", "objects"])
    assert loaded["page_load_time"].null_count() == 0
    assert sorted(path.name.partition("-")[0] for path in parts(folder)) == sorted(
        ["own", original(metrics.get("objects"))]
    )


@pytest.mark.parametrize("of", ["polars", "reading"])
def test_metrics_of_another_reading_or_of_other_programs_are_not_the_same(monkeypatch, tmp_path, of):
    before = _kept._room.__wrapped__()
    assert _kept._room.__wrapped__() == before
    if of == "polars":
        monkeypatch.setattr(pl, "__version__", "0.1")
    else:
        (tmp_path / "trace.py").write_bytes(Path(trace.__file__).read_bytes() + b"\n")
        monkeypatch.setattr(trace, "__file__", str(tmp_path / "trace.py"))
    assert _kept._room.__wrapped__() != before


def test_a_command_keeps_metrics_as_those_of_the_source_it_began_with(folder, monkeypatch):
    """Another version may be installed over it while runs last."""
    results = Results.open(folder)
    key = results.runs("done")["run_key"][0]
    with metrics.Keeper(folder) as keeper:
        monkeypatch.setattr(_kept, "definition", lambda metric: "0" * 16)
        keeper.add(key, results.digests(key), results.path(key))
    assert parts(folder) and not any(path.name.startswith("0" * 16) for path in parts(folder))


def test_a_file_without_the_columns_is_computed_again(folder, computed):
    before = metrics.table(Results.open(folder))
    (path,) = parts(folder)
    less = io.BytesIO()
    pl.read_parquet(path).drop("page_load_time").write_parquet(less)
    path.unlink()
    measured.write(folder, path.name.partition("-")[0], less.getvalue())
    computed.clear()
    for _ in range(2):
        assert metrics.table(Results.open(folder)).equals(before)
    assert len(computed) == RUNS


@pytest.mark.parametrize("harm", ["flipped", "empty", "link"])
def test_a_damaged_file_is_computed_again_and_never_read(folder, computed, harm):
    before = metrics.table(Results.open(folder))
    (path,) = parts(folder)
    content = bytearray(path.read_bytes())
    path.unlink()
    if harm == "link":
        other = folder.parent / "elsewhere"
        other.write_bytes(content)
        path.symlink_to(other)
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content if harm == "flipped" else b"")
    computed.clear()
    assert metrics.table(Results.open(folder)).equals(before)
    assert len(computed) == RUNS


def test_a_folder_that_takes_no_file_is_read_all_the_same(folder, computed):
    (folder / "metrics").write_text("in the way")
    assert metrics.table(Results.open(folder)).height == RUNS
    assert metrics.table(Results.open(folder)).height == RUNS
    assert len(computed) == 2 * RUNS


def test_verify_names_a_damaged_file(folder, capsys):
    metrics.table(Results.open(folder))
    assert cli.invoke(["verify", str(folder)]) == 0
    (path,) = parts(folder)
    path.write_bytes(path.read_bytes()[:-1])
    assert cli.invoke(["verify", str(folder)]) == 2
    assert f"damaged  metrics/{path.name}: a damaged file" in capsys.readouterr().out


def test_metrics_of_runs_that_are_gone_are_not_read(folder, results_folder):
    before = metrics.table(Results.open(folder))
    small = results_folder(lambda run: 1 + 0.1 * run.visit, visits=1, name="small")
    shutil.copytree(folder / "metrics", small / "metrics")
    fewer = metrics.table(Results.open(small))
    assert fewer.height == 4 + 8
    assert set(fewer["run_key"]) < set(before["run_key"])
    kept = pl.read_parquet(parts(small)[0])
    assert kept["run_key"].n_unique() == RUNS
