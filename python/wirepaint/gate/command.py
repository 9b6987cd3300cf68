"""``wirepaint check``: the gate."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic_core import PydanticCustomError

from wirepaint import metrics as measured
from wirepaint.errors import Breach, Incomplete, UsageError
from wirepaint.evaluation.quantities import share
from wirepaint.gate import budget as budgets
from wirepaint.gate import outputs
from wirepaint.gate.checks import check
from wirepaint.printing import print_json, say
from wirepaint.results import Results, examined
from wirepaint.statistics import folders, losses
from wirepaint.statistics.compare import MARGIN, primary

OnUndecided = Literal["pass", "fail", "more"]
OnMissing = Literal["fail", "pass"]


def command(
    results: Path,
    candidate: Path | None = None,
    *,
    budget: Path | None = None,
    margin: str | None = None,
    metric: Sequence[str] | None = None,
    on_undecided: OnUndecided = "pass",
    on_missing: OnMissing = "fail",
    suspect: bool = False,
    json: bool = False,
    junit: Path | None = None,
    markdown: Path | None = None,
    github: bool = False,
) -> None:
    """Prints and writes what the gate found; raises Breach (exit code 99) or Incomplete."""
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    base = examined(results)
    measured.own(base)  # a budget may name them
    rules = [] if budget is None else budgets.load(budget).rules
    if margin is not None:
        if candidate is None:
            raise UsageError("--margin", "one results folder", "a base and a candidate")
        rules = [*rules, *budgets.within(_share(margin), tuple(metric or primary(base))).rules]
    elif metric:
        raise UsageError(
            "--metric", ", ".join(metric), "--margin beside it; a budget names the metrics of its rules"
        )
    if not rules:
        raise UsageError("check", "no rule", "--budget FILE, or --margin 3% with a base and a candidate")
    limits = [rule.worse_by for rule in rules if rule.worse_by is not None]
    margins = min(limits, default=MARGIN)
    visits, asked, of, notes = read(base, candidate, [rule.metric for rule in rules], verdicts, margins)
    for note in notes:
        say(note)
    found = check(visits, asked, of, budgets.Budget(rules=rules))
    if junit is not None:
        junit.write_text(outputs.junit(found), "utf-8")
    if markdown is not None:
        # The summary of a job may have parts of other commands.
        mode = "a" if str(markdown) == os.environ.get("GITHUB_STEP_SUMMARY") else "w"
        with markdown.open(mode, encoding="utf-8") as file:
            file.write(outputs.markdown(found, notes))
    if json:
        print_json(outputs.as_json(found, notes))
    else:
        print(outputs.text(found))
    if github:
        # GitHub reads both; JSON on stdout stays JSON.
        for line in outputs.of_github(found):
            print(line, file=sys.stderr if json else sys.stdout)
    outcomes = {one.outcome for one in found}
    failing = {"breach"} | ({"missing"} if on_missing == "fail" else set())
    # Text has the summary on stdout; so stderr only says how the command ends.
    summary = outputs.summary(found) if json else ""
    if outcomes & failing or ("undecided" in outcomes and on_undecided == "fail"):
        raise Breach(summary or f"the gate is not passed (exit code {Breach.exit_code})")
    if "undecided" in outcomes and on_undecided == "more":
        raise Incomplete(summary or f"the gate is undecided (exit code {Incomplete.exit_code})")


def read(
    base: Results,
    candidate: Path | None,
    metrics: Sequence[str],
    verdicts: Sequence[str],
    margin: float = MARGIN,
) -> tuple[pl.DataFrame, pl.DataFrame, str | None, list[str]]:
    """The visits of one folder or two, those asked for, the name of the base of two, and what else differs
    between them."""
    names = list(dict.fromkeys(map(measured.full, metrics)))
    if candidate is None:
        table = losses.with_timeouts(base, measured.table(base, verdicts, names))
        return table, losses.asked(base, verdicts), None, []
    other = examined(candidate)
    pair = folders.read(base, other, names, verdicts, margin)
    asked = [
        losses.asked(of, verdicts).with_columns(pl.lit(name).alias(folders.FOLDER))
        for of, name in ((base, pair.base), (other, pair.candidate))
    ]
    return pair.every, pl.concat(asked), pair.base, pair.notes


def _share(text: str) -> float:
    try:
        return share(float(text) if text.replace(".", "", 1).isdigit() else text)
    except PydanticCustomError as error:
        raise UsageError("--margin", text, error.message().removeprefix("not ")) from None
