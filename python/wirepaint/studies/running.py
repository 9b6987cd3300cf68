"""Simulates the points of a study: every seed, on all cores; measures each run as it ends."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Run
from wirepaint.errors import RunFailed
from wirepaint.studies.model import Point, Study

REMOVE_AT_END = 'cat >/dev/null; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$0" && exit; sleep 1; done'
"""Shell command that removes the folder ``$0`` when its input ends; it retries while a simulator writes."""
Rows = pl.DataFrame
Progress = Callable[[int, int], None]
"""Called with the number of finished runs and of all runs."""


@dataclass(frozen=True)
class Measure:
    """A measure of a run's trace.

    The trace must have ``tables`` and ``packet_links``. ``read`` takes the scene (the point in
    numbers, made by the study's code) and the trace's folder, and gives rows with the column ``series``.
    """

    tables: tuple[str, ...]
    read: Callable[[Any, Path], Rows]
    packet_links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One run: a point of a sweep with a seed."""

    sweep: str
    point: Point
    seed: int


def jobs(study: Study, quick: bool) -> list[Job]:
    """All runs of a study; every point has the same seeds, for paired comparisons."""
    planned = []
    for name, sweep in study.sweeps.items():
        seeds = study.seeds_of(sweep, quick)
        planned += [Job(name, point, seed) for point in sweep.points() for seed in range(1, seeds + 1)]
    return planned


def carry_out(
    study: Study, parameters: Mapping[str, str], planned: list[Job], progress: Progress
) -> dict[str, Rows]:
    """The measured rows of every sweep, with the columns of its points and ``seed``.

    The rows do not depend on the number of cores. Raises RunFailed if a run fails or violates a
    check of the simulator.
    """
    code = study.module()
    scenes = [code.scene(study, parameters, job.point, job.seed) for job in planned]
    measures: list[Measure] = [code.MEASURES[study.sweeps[job.sweep].measure] for job in planned]
    measured: dict[int, Rows] = {}
    with _scratch() as folder:

        def described() -> Iterator[tuple[int, Path]]:
            for number, (scene, measure) in enumerate(zip(scenes, measures, strict=True)):
                where = folder / str(number)
                where.mkdir()
                run: Run = code.describe(study, parameters, scene, where)
                run = replace(run, tables=measure.tables, packet_links=measure.packet_links)
                yield number, run.write()

        for number, said in simulate.ends(described()):
            job, trace = planned[number], folder / str(number)
            if problem := said.get("error") or said["faults"]:
                raise RunFailed(f"sweep {job.sweep}, {job.point}, seed {job.seed}: {problem}")
            rows = measures[number].read(scenes[number], trace)
            point = [pl.Series(key, [value] * rows.height) for key, value in job.point.items()]
            measured[number] = rows.hstack([*point, pl.Series("seed", [job.seed] * rows.height)])
            shutil.rmtree(trace)
            progress(len(measured), len(planned))
    sweeps: dict[str, list[Rows]] = {name: [] for name in study.sweeps}
    for number, job in enumerate(planned):
        sweeps[job.sweep].append(measured[number])
    return {name: pl.concat(frames) for name, frames in sweeps.items() if frames}


@contextmanager
def _scratch() -> Iterator[Path]:
    """A temporary folder that is removed when this process ends, even by kill -9."""
    folder = Path(tempfile.mkdtemp(prefix="wirepaint-study-"))
    argv = ["sh", "-c", REMOVE_AT_END, folder]
    # A session of its own: Ctrl-C and a closed terminal do not reach it.
    remover = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    assert remover.stdin is not None
    try:
        yield folder
    finally:
        remover.stdin.close()
    # Not awaited after an interruption: if it comes while the simulator starts, the simulator runs until this
    # process ends.
    remover.wait()
