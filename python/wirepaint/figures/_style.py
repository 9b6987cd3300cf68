"""Colours, marks and type, the same in every figure.

The series colours are those of Okabe and Ito, distinct for colour-blind readers. Each series
also has its own point shape and dash, so nothing depends on colour alone. The report maps these
colours to its own by style sheet, so each colour serves only one purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b58900")
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (1, 3))
MOST_SERIES = len(SERIES)

INK, MUTED, RULE = "#20262d", "#5b6570", "#dde1e6"
FONT = "Helvetica Neue, Helvetica, Liberation Sans, Arial, sans-serif"


@dataclass(frozen=True)
class Style:
    """Colour, shape and dash of each series, and the order of all items, by position in the lists."""

    series: Sequence[str]
    conditions: Sequence[str]
    pages: Sequence[str]
    width: int = 1010
    """Width of a row of plots in pixels."""

    def colour(self, legend: bool = True) -> alt.Color:
        return alt.Color("series:N", scale=self._scale(SERIES), legend=self._legend(legend), title=None)

    def shape(self, legend: bool = True) -> alt.Shape:
        return alt.Shape("series:N", scale=self._scale(SHAPES), legend=self._legend(legend), title=None)

    def dash(self, legend: bool = True) -> alt.StrokeDash:
        # Wide enough to show a dash; around a filled point it would be a blot.
        shown = alt.Legend(orient="top", symbolStrokeWidth=2) if legend else None
        return alt.StrokeDash("series:N", scale=self._scale(DASHES), legend=shown, title=None)

    def rows(self) -> alt.Row:
        """One row of plots per condition."""
        header = alt.Header(labelAngle=0, labelAlign="left", labelAnchor="middle", labelOrient="left")
        return alt.Row("condition:N", title=None, sort=list(self.conditions), header=header)

    def page_columns(self) -> alt.Column:
        """One column of plots per page."""
        return alt.Column("page:N", title=None, sort=list(self.pages))

    def _scale(self, values: Sequence[Any]) -> alt.Scale:
        count = len(self.series)
        return alt.Scale(domain=list(self.series), range=[values[n % len(values)] for n in range(count)])

    @staticmethod
    def _legend(legend: bool) -> alt.Legend | None:
        return alt.Legend(orient="top") if legend else None


def finish(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification, with the common type, grid and spacing and all its rows."""
    finished = (
        chart.configure(font=FONT, background="transparent", padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED, titleColor=INK, gridColor=RULE, domainColor=MUTED, tickColor=MUTED,
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", tickSize=4, labelLimit=190,
            labelOverlap=True, labelSeparation=4,
        )
        .configure_header(
            labelColor=INK, labelFontSize=13, labelFontWeight="bold", labelLimit=220, labelAnchor="start",
            title=None,
        )
        .configure_legend(labelColor=INK, labelFontSize=12, labelLimit=260)
    )  # fmt: skip
    with alt.data_transformers.disable_max_rows():
        return finished.to_dict()
