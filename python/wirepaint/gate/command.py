"""``wirepaint check``: the gate."""

from __future__ import annotations

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
from wirepaint.results import Results
from wirepaint.statistics import folders, losses
from wirepaint.statistics.compare import primary

OnUndecided = Literal["pass", "fail", "more"]


def command(
    results: Path,
    candidate: Path | None = None,
    *,
    budget: Path | None = None,
    margin: str | None = None,
    metric: Sequence[str] | None = None,
    on_undecided: OnUndecided = "pass",
    suspect: bool = False,
    json: bool = False,
    junit: Path | None = None,
    markdown: Path | None = None,
    github: bool = False,
) -> None:
    """Prints and writes what the gate found; raises Breach (exit code 99) or Incomplete."""
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    base = Results.open(results)
    rules = [] if budget is None else budgets.load(budget).rules
    if margin is not None:
        if candidate is None:
            raise UsageError("--margin", "one results folder", "a base and a candidate")
        rules = [*rules, *budgets.within(_share(margin), tuple(metric or primary(base))).rules]
    if not rules:
        raise UsageError(
            "wirepaint check", "no rule", "--budget FILE, or --margin 3% with a base and a candidate"
        )
    frame, name = _read(base, candidate, [rule.metric for rule in rules], verdicts)
    found = check(frame, budgets.Budget(rules=rules), name)
    if junit is not None:
        junit.write_text(outputs.junit(found), "utf-8")
    if markdown is not None:
        markdown.write_text(outputs.markdown(found), "utf-8")
    if json:
        print_json(outputs.as_json(found))
    else:
        print(outputs.text(found))
    if github and not json:
        print("\n".join(outputs.of_github(found)))
    outcome = outputs.outcome(found)
    if outcome == "breach" or (outcome == "undecided" and on_undecided == "fail"):
        raise Breach(outputs.summary(found))
    if outcome == "undecided" and on_undecided == "more":
        raise Incomplete(outputs.summary(found))


def _read(
    base: Results, candidate: Path | None, metrics: Sequence[str], verdicts: Sequence[str]
) -> tuple[pl.DataFrame, str | None]:
    """The visits of one folder or two, and the name of the base of two; says what only one of them has."""
    asked = list(dict.fromkeys(metrics))
    if candidate is None:
        return losses.with_timeouts(base, measured.table(base, verdicts, asked)), None
    pair = folders.read(base, Results.open(candidate), asked, verdicts)
    for note in pair.notes:
        say(note)
    return pair.table, pair.base


def _share(text: str) -> float:
    try:
        return share(float(text) if text.replace(".", "", 1).isdigit() else text)
    except PydanticCustomError as error:
        raise UsageError("--margin", text, error.message().removeprefix("not ")) from None
