"""Results in a notebook or a script: ``wirepaint.open(RESULTS)`` (docs/guide/notebook.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint import figures, metrics
from wirepaint.errors import UsageError, show
from wirepaint.metrics import Explanation
from wirepaint.reading import nearest
from wirepaint.results import Results
from wirepaint.statistics.compare import MARGIN, compare_results, factors
from wirepaint.statistics.comparison import Comparison


class Opened:
    """The results of an evaluation. Its tables are Polars frames."""

    def __init__(self, folder: Path | str) -> None:
        self.results = Results.open(folder)
        """Access to everything else: files, calibrations, attempts."""

    def __repr__(self) -> str:
        states = self.runs["verdict"].fill_null(self.runs["state"]).value_counts(sort=True)
        counts = ", ".join(f"{number} {state}" for state, number in states.iter_rows())
        backends = " and ".join(f"the {name}" for name in self.runs["backend"].unique(maintain_order=True))
        return f"<{self.results.title}, on {backends}: {counts}>"

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run, in the order of the plan: ``run_key``, axes, visit, state, verdict, reasons."""
        return self.results.runs()

    def metrics(self, verdicts: Sequence[str] | None = ("valid",)) -> pl.DataFrame:
        """One row per visit: axes, visit, verdict, and a column for every metric, as ``compare`` takes them.

        ``verdicts`` None takes every run that ended, with null metrics for those that failed. ``missing``
        says why a metric is null.
        """
        return metrics.table(self.results, verdicts)

    def table(self, name: str, run: str | None = None) -> pl.DataFrame:
        """A table of the trace of one run, or of all valid runs after the warm-up, with their axes.

        Times are nanoseconds from the run's beginning. ``schema/trace.json`` describes the columns.
        """
        if name not in (known := self.tables):
            raise UsageError("table", show(name), nearest(name, known))
        return self.results.all(name) if run is None else self.results.trace(run, name)

    @property
    def tables(self) -> list[str]:
        """Names of the tables of a trace."""
        from wirepaint.results import trace

        return list(trace.tables())

    def compare(
        self,
        factor: str | None = None,
        metric: Sequence[str] | None = None,
        baseline: str | None = None,
        *,
        margin: float = MARGIN,
        by_page: bool = False,
        suspect: bool = False,
    ) -> pl.DataFrame:
        """``wirepaint compare`` as a frame: a row per metric, candidate and conditions.

        ``factor`` is the axis that is compared; the first that has several values if None. ``primary`` is
        true for the rows that answer the evaluation, over all pages; the others are exploratory.
        ``difference``, ``low`` and ``high`` are in the metric's unit; ``share``, ``share_low`` and
        ``share_high`` of the baseline. ``p`` is corrected by Holm; ``sentence`` says all of it.
        """
        factor = factor or next(iter(factors(self.results)), "congestion")
        rows = compare_results(
            self.results, factor, metric, baseline, margin=margin, by_page=by_page, suspect=suspect
        )
        backend = self.results.manifest["backend"]
        return pl.DataFrame([_row(row, backend) for row in rows], infer_schema_length=None)

    def explain(self, metric: str, run: str, visit: int = 0, flows: str | None = None) -> Explanation:
        """The rows of the trace from which a metric of a run was computed."""
        return metrics.explain(self.results, metric, run, visit, flows)

    def figure(self, name: str, **options: Any) -> figures.Drawing:
        """A figure with its data; a notebook shows it, ``save(path)`` writes it.

        ``options`` are the figure's own, such as ``metric="page-load-time"``, and those of ``figures.drawn``:
        ``factor``, ``of_page``, ``suspect``, ``width_mm``.
        """
        return figures.drawn(self.results, name, **options)


def _row(row: Comparison, backend: str) -> dict[str, Any]:
    share = row.shift_rel
    return {
        "backend": row.conditions.get("backend", backend),
        "factor": row.factor,
        "metric": row.metric,
        "primary": row.is_primary,
        "unit": row.unit,
        "conditions": row.stratum,
        "page": row.page,
        "baseline": row.baseline.level,
        "candidate": row.candidate.level,
        "baseline_median": row.baseline.median and row.baseline.median.value,
        "candidate_median": row.candidate.median and row.candidate.median.value,
        "difference": row.shift.value,
        "low": row.shift.low,
        "high": row.shift.high,
        "share": share and share.value,
        "share_low": share and share.low,
        "share_high": share and share.high,
        "p": row.p_holm,
        "verdict": row.verdict,
        "sentence": row.sentence,
    }
