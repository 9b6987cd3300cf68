"""A batch gives the same numbers whether its runs have traces or are collected."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import TracebackType

import polars as pl
import pytest
from distributed.core import error_message

from wirepaint import dataplane
from wirepaint.cli import invoke
from wirepaint.cluster import batch
from wirepaint.dataplane import simulate
from wirepaint.errors import PageTimeout
from wirepaint.evaluation import plan
from wirepaint.runners.contract import Job, Thin

SATELLITE = """\
title = "Split proxy and PEP"
backend = "simulator"
timeout = "6 s"
warmup = false
[scenarios]
network = ["geo-satellite"]
congestion = ["cubic", "./own/own.c"]
proxy = ["none", "pep"]
[[proxies]]
name = "pep"
kind = "pep"
[[user_agents]]
pages = ["agency", "photos"]
visits = 2
"""
"""The page `photos` takes longer than that."""
FLOWS = """\
title = "Flows beside users"
backend = "simulator"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["cubic"]
[[flows]]
name = "bulk"
count = 2
bulk = "300 kB"
[[user_agents]]
pages = ["blog-small"]
visits = 2
together = true
count = 3
"""


def rows(content: bytes) -> pl.DataFrame:
    return pl.read_ipc_stream(content).sort("run_key")


def returned(file: Path, *, traces: bool) -> tuple[list[Job], batch.Returned]:
    runs = plan(file, trust=lambda _: True).runs
    packer = batch.Packer()
    packed, needed = packer.pack(runs, traces=traces)
    jobs = [Job(run, file.parent / run.key, whole=traces) for run in runs]
    return jobs, batch.carry_out(packed, {digest: packer.shared[digest] for digest in needed})


@pytest.mark.parametrize(("evaluation", "timeouts"), [(SATELLITE, 8), (FLOWS, 0)])
def test_collected_runs_end_as_runs_with_traces_do(tmp_path: Path, evaluation: str, timeouts: int) -> None:
    assert invoke(["cc", "new", "own", "-o", str(tmp_path / "own")]) == 0
    file = tmp_path / "sweep.toml"
    file.write_text(evaluation)
    (jobs, whole), (thin_jobs, thin) = returned(file, traces=True), returned(file, traces=False)
    assert rows(thin.metrics).equals(rows(whole.metrics))
    assert pl.read_ipc_stream(thin.files).is_empty()
    ends = {run.key: end for run, end in batch.ends(thin, thin_jobs)}
    assert len(ends) == len(jobs)
    for run, end in batch.ends(whole, jobs):
        found = ends[run.key]
        if isinstance(end, PageTimeout):
            assert isinstance(found, PageTimeout)
            assert str(found) == str(end)
            timeouts -= 1
        else:
            assert isinstance(found, Thin)
            assert found.outcome == end
            assert end.trace is not None
    assert timeouts == 0


def test_runs_that_are_described_when_the_simulator_dies_go_on_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(FLOWS.replace("visits = 2", "visits = 5"))
    _, expected = returned(file, traces=False)
    program = tmp_path / "program"
    # The first one gets the pages, carries out a run, and dies of the second.
    program.write_text(f"""#!/bin/sh
if mkdir "{tmp_path}/died" 2> /dev/null; then
    head -n 2 | {dataplane.program()} "$@"
    read -r second
    kill -9 $$
fi
exec {dataplane.program()} "$@"
""")
    program.chmod(0o755)
    monkeypatch.setenv("WIREPAINT_DATAPLANE", str(program))
    jobs, found = returned(file, traces=False)
    assert (tmp_path / "died").exists()
    assert rows(found.metrics).equals(rows(expected.metrics))
    assert len(batch.ends(found, jobs)) == 5


def test_a_simulator_with_room_for_the_pages_of_one_run_gets_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SATELLITE.replace(', "./own/own.c"', "").replace('"none", ', "").replace("photos", "kit"))
    _, expected = returned(file, traces=False)
    monkeypatch.setattr(simulate, "_PAGES", 1)
    _, found = returned(file, traces=False)
    assert rows(found.metrics).equals(rows(expected.metrics))
    assert rows(found.metrics)["visited"].unique().sort().to_list() == ["agency", "kit"]


def test_any_error_on_a_worker_can_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*_: object) -> None:
        deep()

    (tmp_path / "e.toml").write_text(FLOWS)
    packer = batch.Packer()
    packed, needed = packer.pack(plan(tmp_path / "e.toml").runs[:1], traces=False)
    monkeypatch.setattr(batch, "_simulated", deep)
    try:
        batch.carry_out(packed, {digest: packer.shared[digest] for digest in needed})
    except batch.Broken as error:
        sent = error_message(error)  # as Dask's worker does
    back = [pickle.loads(sent[name].data) for name in ("exception", "traceback")]
    assert list(map(type, back)) == [batch.Broken, TracebackType]
    assert str(back[0]).startswith("RecursionError on a worker: maximum recursion")
