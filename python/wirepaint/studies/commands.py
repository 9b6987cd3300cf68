"""The verbs of ``wirepaint study``."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from wirepaint.columns import aligned
from wirepaint.errors import UsageError
from wirepaint.printing import counted, print_json

if TYPE_CHECKING:
    from wirepaint.studies.evaluations import Carried
    from wirepaint.studies.model import Study

BackEnd = Literal["testbed", "simulator"]

study = App(name="study", help="Published experiments, repeated: list them, run them.")

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]


@study.command(name="list")
def list_(*, json: Json = False) -> None:
    """List the studies that ship with wirepaint."""
    from wirepaint import catalogue
    from wirepaint.studies import model

    loaded = {name: model.load(name)[1] for name in catalogue.names("study")}
    if json:
        rows = [{"name": name, "title": one.title, "source": one.source} for name, one in loaded.items()]
        print(jsonlib.dumps(rows, indent=1, ensure_ascii=False))
        return
    for line in aligned([(name, one.title, one.summary) for name, one in loaded.items()]):
        print(line)


@study.command
def run(
    name: str,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    quick: Annotated[bool, Parameter(negative="")] = False,
    backend: BackEnd | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    sweep: Annotated[list[str] | None, Parameter(negative="")] = None,
    seeds: int | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Carry a study out and write its page: figures, claims, verdicts.

    Parameters
    ----------
    name
        Name of the study, or the path of a study's file.
    output
        Folder to write; results/<name of the study> when left out, with -quick for the quick form.
    quick
        Fewer repetitions, in the simulator: wider intervals, a fraction of the time.
    backend
        Of a study whose runs are evaluations: testbed or simulator. When left out, the testbed for root, else
        the simulator.
    settings
        Another option of a parameter, NAME=OPTION; may be given again.
    sweep
        Only this sweep, with its figures and claims; may be given again. A later command adds others.
    seeds
        Repetitions of each point, in place of the study's.
    dry_run
        Only say how many runs each sweep has and how long they take.
    """
    from wirepaint.studies import model, page, verdicts

    own_name, whole = model.load(name)
    loaded = whole.part(sweep, seeds)
    chosen_backend = _backend(loaded.is_evaluated, quick, backend)
    folder = output or Path("results") / f"{own_name}{'-quick' if quick else ''}"
    parameters = loaded.chosen(_settings(settings or []))
    if dry_run:
        _foretell(loaded, parameters, folder, chosen_backend, quick, json)
        return
    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is said before the work
    began = time.monotonic()
    carried = _carried(loaded, parameters, folder, chosen_backend, quick)
    chosen = "".join(f" --set {shlex.quote(setting)}" for setting in settings or [])
    chosen += "".join(f" --sweep {shlex.quote(each)}" for each in sweep or [])
    chosen += f" --seeds {seeds}" if seeds else ""
    chosen += f" --backend {backend}" if backend else ""
    finding = page.Finding(
        name=own_name,
        study=loaded,
        parameters=parameters,
        sweeps=carried.sweeps,
        verdicts=verdicts.judge(loaded, carried.sweeps, carried.lost),
        today=verdicts.judge_today(loaded, carried.sweeps, carried.lost),
        backend=chosen_backend,
        runs=carried.runs,
        uncounted=sum(lost.height for lost in carried.lost.values()),
        empty=carried.empty,
        seeds=max(loaded.seeds_of(sweep, quick) for sweep in loaded.sweeps.values()),
        seconds=time.monotonic() - began,
        command=f"wirepaint study run {shlex.quote(name)}{' --quick' if quick else ''}{chosen}",
        part=", ".join(loaded.sweeps) if len(loaded.sweeps) < len(whole.sweeps) else "",
    )
    written = page.write(finding, folder)
    if json:
        print(jsonlib.dumps(page.as_json(finding), indent=1, ensure_ascii=False))
    else:
        for line in aligned([(one.word, one.item, one.says) for one in (*finding.verdicts, *finding.today)]):
            print(line)
        print(written)
    print(f"{finding.answer} {finding.runs} runs, {finding.seconds:.0f} s.", file=sys.stderr)


def _backend(is_evaluated: bool, quick: bool, asked: BackEnd | None) -> BackEnd:
    if asked == "testbed" and not is_evaluated:
        accepted = "simulator: this study simulates run descriptions of its own"
        raise UsageError("--backend", '"testbed"', accepted)
    if asked == "testbed" and quick:
        raise UsageError("--backend", '"testbed" with --quick', "simulator: the quick form is simulated")
    if asked is not None:
        return asked
    return "testbed" if is_evaluated and not quick and os.geteuid() == 0 else "simulator"


def _carried(
    study: Study, parameters: dict[str, str], folder: Path, backend: BackEnd, quick: bool
) -> Carried:
    from wirepaint.studies import evaluations, running

    if study.is_evaluated:
        return evaluations.carry_out(study, parameters, folder, backend, quick, _progress)
    planned = running.jobs(study, quick)
    return evaluations.Carried(running.carry_out(study, parameters, planned, _progress), len(planned))


def _foretell(
    study: Study, parameters: dict[str, str], folder: Path, backend: BackEnd, quick: bool, json: bool
) -> None:
    """Prints the points and seeds of each sweep, and of evaluations the time of the runs that are open."""
    from wirepaint.runners import pace
    from wirepaint.runners.progress import duration
    from wirepaint.studies import evaluations

    sweeps = {
        name: {"points": len(sweep.points()), "seeds": study.seeds_of(sweep, quick)}
        for name, sweep in study.sweeps.items()
    }
    expected = None
    of_sweeps: dict[str, pace.Expected] = {}
    if study.is_evaluated:
        with tempfile.TemporaryDirectory() as place:
            planned = evaluations.plans(study, parameters, Path(place), backend, quick)
            of_sweeps = {
                name: pace.together(pace.expected(one.runs, folder / "runs" / name))
                for name, one in planned.items()
            }
        expected = pace.together(of_sweeps.values())
    if json:
        print_json({"sweeps": sweeps, "expected": expected and vars(expected)})
        return
    rows = [
        (
            name,
            counted(one["points"], "point"),
            counted(one["seeds"], "seed"),
            duration(of_sweeps[name].seconds) if name in of_sweeps else "",
        )
        for name, one in sweeps.items()
    ]
    for line in aligned(rows):
        print(line.rstrip())
    if expected:
        print(expected.sentence)


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError("--set", repr(pair), "NAME=OPTION")
        settings[name] = value
    return settings


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} runs", end="\n" if done == total else "", file=sys.stderr, flush=True)
