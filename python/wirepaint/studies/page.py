"""Writes the output of a study: one HTML page, figures as SVG, data as CSV, verdicts as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wirepaint.printing import counted
from wirepaint.report import svg
from wirepaint.results import provenance
from wirepaint.studies import drawing
from wirepaint.studies.model import Point, Study
from wirepaint.studies.verdicts import Verdict, select

CLASSES = {"reproduced": "ok", "not reproduced": "off", "undecided": "undecided", "not comparable": "not"}
"""Style class of the report for each verdict."""


@dataclass(frozen=True)
class Finding:
    """The result of a study."""

    name: str
    study: Study
    parameters: Mapping[str, str]
    sweeps: Mapping[str, pl.DataFrame]
    verdicts: list[Verdict]
    today: list[Verdict]
    """Of the paper's questions asked of today."""
    backend: str
    runs: int
    uncounted: int
    """Runs that failed or are not valid."""
    empty: list[tuple[str, Point]]
    """Points of which no run counts, each with its sweep."""
    seeds: int
    """Most repetitions of a point."""
    seconds: float
    command: str
    part: str = ""
    """The sweeps that were carried out, if not all."""

    @property
    def answer(self) -> str:
        """A sentence on how many claims were reproduced; each fact counts once."""
        own = [verdict for verdict in self.verdicts if verdict.is_counted]
        if not own:
            return "No claim of the paper is about these sweeps."
        counts = {word: sum(one.word == word for one in own) for word in CLASSES}
        parts = [f"{count} {word}" for word, count in counts.items() if count]
        return f"Of {counted(len(own), 'claim')} {', '.join(parts)}."


def write(finding: Finding, folder: Path) -> Path:
    """Writes everything into ``folder`` and returns the page."""
    for part in ("figures", "data"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    drawings = []
    for figure in finding.study.figures:
        if select(figure, finding.sweeps).is_empty():
            continue
        frame = drawing.data(figure, finding.sweeps)
        picture = vl_convert.vegalite_to_svg(drawing.chart(figure, frame))
        (folder / "figures" / f"figure-{figure.id}.svg").write_text(picture, encoding="utf-8")
        frame.write_csv(folder / "figures" / f"figure-{figure.id}.csv")
        prefix = f"figure-{figure.id}-"
        drawings.append({"figure": figure, "svg": Markup(svg.inline(picture, figure.title, prefix))})
    for name, rows in finding.sweeps.items():
        rows.write_csv(folder / "data" / f"{name}.csv")
    (folder / "verdicts.json").write_text(json.dumps(as_json(finding), indent=1, ensure_ascii=False))
    page = folder / "index.html"
    page.write_text(_render(finding, drawings), encoding="utf-8")
    return page


def as_json(finding: Finding) -> dict[str, Any]:
    """The verdicts and everything that they depend on."""
    return {
        "study": finding.name,
        "command": finding.command,
        "parameters": dict(finding.parameters),
        "backend": finding.backend,
        "runs": finding.runs,
        "uncounted": finding.uncounted,
        "empty": finding.empty,
        "seeds": finding.seeds,
        "sweeps": list(finding.study.sweeps),
        "versions": provenance.versions(),
        "verdicts": [asdict(verdict) for verdict in finding.verdicts],
        "today": [asdict(verdict) for verdict in finding.today],
    }


def _render(finding: Finding, drawings: list[dict[str, Any]]) -> str:
    environment = Environment(
        loader=PackageLoader("wirepaint.studies"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("wirepaint.report").joinpath("static", "report.css").read_text("utf-8")
    return environment.get_template("study.html.j2").render(
        finding=finding,
        study=finding.study,
        drawings=drawings,
        repetitions="visits" if finding.study.is_evaluated else "seeds",
        classes=CLASSES,
        versions=provenance.versions(),
        style=Markup(style),
    )
