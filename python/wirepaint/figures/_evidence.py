"""The runs behind a figure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import polars as pl

from wirepaint import catalogue, metrics
from wirepaint.errors import UsageError, show
from wirepaint.evaluation import axes
from wirepaint.reading import nearest
from wirepaint.results import Results
from wirepaint.statistics import losses
from wirepaint.statistics.losses import Losses


class Evidence:
    """An evaluation's counted runs, split by one factor.

    ``series`` is the level of the compared factor in words (``CUBIC``, ``FLD_TCP``), ``condition`` the levels
    of all other axes that vary, except the page (``lte``, or ``lte / HTTP/2``). Warm-up visits and runs with
    other verdicts than ``verdicts`` are left out, and with ``page`` those of other pages. Tables are computed
    once.
    """

    def __init__(
        self,
        results: Results,
        factor: str | None = None,
        verdicts: Sequence[str] = ("valid",),
        page: str | None = None,
    ) -> None:
        factors = axes.factors()
        factor = factor and catalogue.called("key", factor, factors)
        if factor is not None and factor not in factors:
            raise UsageError("factor", show(factor), nearest(factor, factors))
        self.results, self.verdicts = results, tuple(verdicts)
        self.levels = {axis: metrics.levels(results, axis) for axis in factors}
        varying = [axis for axis in factors if len(self.levels[axis]) > 1]
        self.factor = factor or next(iter(varying or factors))
        self.varying = tuple(varying)
        if len(metrics.levels(results, "user_agent")) > 1:
            varying.append("user_agent")
        ordered = ("network", *(axis for axis in factors if axis != "network"), "user_agent")
        conditions = [axis for axis in ordered if axis in varying and axis != self.factor]
        self.condition_axes = conditions or (["network"] if self.factor != "network" else [])
        self.series = [axes.words(self.factor, level) for level in self.levels[self.factor]]
        self.pages = metrics.levels(results, "page")
        self.page = page
        if page is not None:
            if page not in self.pages:
                raise UsageError("page", show(page), nearest(page, self.pages))
            self.pages = [page]

    def by(self, factor: str) -> Evidence:
        """The same runs, split by another factor."""
        other = Evidence(self.results, factor, self.verdicts, self.page)
        other.every_run = self.every_run
        return other

    @cached_property
    def every_run(self) -> pl.DataFrame:
        """One row per run that ended, counted or not: its axes and every metric."""
        return metrics.table(self.results, None, compact=True, reasons=False)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per counted run: its axes, every metric, ``series``, ``condition``."""
        return self.split(self.every_run.filter(pl.col("verdict").is_in(list(self.verdicts))))

    @property
    def conditions(self) -> list[str]:
        """Conditions in the order of the evaluation file."""
        return self.table["condition"].unique(maintain_order=True).to_list()

    @cached_property
    def losses(self) -> list[Losses]:
        """How the visits of each back end ended, and those of each level of the factor."""
        ends = losses.visits(self.results, self.verdicts)
        ends = ends if self.page is None else ends.filter(pl.col("page") == self.page)
        factors = dict.fromkeys(("backend", self.factor))
        return [each for factor in factors for each in losses.by_level(ends, factor, self.levels[factor])]

    def distribution(self, metric: str) -> pl.DataFrame:
        """Values inside the counted runs (connections, objects) that a metric summarises."""
        items = metrics.distribution(metric, self.results, self.verdicts)
        return self.split(items) if items.width else items

    def split(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Counted rows with ``series`` and ``condition``."""
        conditions = [self.worded(axis) for axis in self.condition_axes]
        condition = pl.concat_str(conditions, separator=" / ") if conditions else pl.lit("all visits")
        counted = (
            ~pl.col("warmup") if self.page is None else ~pl.col("warmup") & (pl.col("page") == self.page)
        )
        few = pl.Categorical()
        return frame.filter(counted).with_columns(
            self.worded(self.factor).cast(few).alias("series"), condition.cast(few).alias("condition")
        )

    def worded(self, axis: str) -> pl.Expr:
        """The column of an axis with its levels in words."""
        shown = {level: axes.words(axis, level) for level in self.levels.get(axis, ())}
        return pl.col(axis).cast(pl.String).replace(shown)

    def in_words(self, frame: pl.DataFrame) -> pl.DataFrame:
        """``frame`` with the levels of every factor in words."""
        worded = (self.worded(axis).cast(pl.Categorical()) for axis in self.levels if axis in frame.columns)
        return frame.with_columns(worded)
