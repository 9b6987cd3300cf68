"""The verbs of ``wirepaint study``."""

from __future__ import annotations

import json as jsonlib
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wirepaint.columns import aligned
from wirepaint.errors import UsageError

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
    settings: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    json: Json = False,
) -> None:
    """Carry a study out in the simulator and write its page: figures, claims, verdicts.

    Parameters
    ----------
    name
        Name of the study, or the path of a study's file.
    output
        Folder to write; results/<name of the study> when left out.
    quick
        Fewer seeds: wider intervals, a fraction of the time.
    settings
        Another option of a parameter, NAME=OPTION; may be given again.
    """
    from wirepaint.studies import model, page, running, verdicts

    own_name, loaded = model.load(name)
    folder = output or Path("results") / own_name
    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is said before the work
    parameters = loaded.chosen(_settings(settings or []))
    planned = running.jobs(loaded, quick)
    began = time.monotonic()
    sweeps = running.carry_out(loaded, parameters, planned, _progress)
    chosen = "".join(f" --set {shlex.quote(setting)}" for setting in settings or [])
    finding = page.Finding(
        own_name,
        loaded,
        parameters,
        sweeps,
        verdicts.judge(loaded, sweeps),
        len(planned),
        max(job.seed for job in planned),
        time.monotonic() - began,
        f"wirepaint study run {shlex.quote(name)}{' --quick' if quick else ''}{chosen}",
    )
    written = page.write(finding, folder)
    if json:
        print(jsonlib.dumps(page.as_json(finding), indent=1, ensure_ascii=False))
    else:
        for line in aligned([(one.word, one.item, one.says) for one in finding.verdicts]):
            print(line)
        print(written)
    print(f"{finding.answer} {finding.runs} runs, {finding.seconds:.0f} s.", file=sys.stderr)


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
