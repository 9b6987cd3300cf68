"""Renders the report: templates, style sheet, scripts and data become one self-contained file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from wirepaint.errors import UsageError, show
from wirepaint.figures import Evidence
from wirepaint.report import factors, words
from wirepaint.report.gather import drawings, gather, of_metrics
from wirepaint.results import examined, names

STYLES = ("report.css", "visits.css")
SCRIPTS = (
    "draw.js",
    "visit.js",
    "timeline.js",
    "rows.js",
    "plots.js",
    "details.js",
    "pane.js",
    "difference.js",
    "waterfall.js",
    "film.js",
    "distributions.js",
    "report.js",
)
"""In the order of their use: each one uses only those before it."""


def build(results_dir: Path, out: Path, *, factor: str | None = None, suspect: bool = False) -> Path:
    """Writes the report of a results folder to ``out`` and returns it.

    Compares the levels of ``factor``, by default the first axis that varies. ``suspect`` also counts suspect
    runs, and the report says so. Incomplete results are accepted:
    the report says what is missing. Raises UsageError if the folder holds no results, or one level of
    ``factor``.
    """
    report = gather(_evidence(results_dir, factor, suspect))
    page = _environment().get_template("report.html.j2").render(report=report)
    out = Path(out)
    if out.parent.absolute() == results_dir.absolute():
        names.inside(results_dir, out.name)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(str(out), str(error.strerror).lower(), "a file that can be written") from None
    return out


def save_figures(
    results_dir: Path, folder: Path, *, factor: str | None = None, suspect: bool = False
) -> list[Path]:
    """Saves the report's figures as SVG, PDF and PNG with their data as CSV, and returns the files."""
    evidence = _evidence(results_dir, factor, suspect)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        drawing.save(folder / f"{name}{suffix}")
        for name, drawing in (of_metrics(evidence) | drawings(evidence)).items()
        for suffix in (".svg", ".pdf", ".png", ".csv")
    ]


def _evidence(results_dir: Path, factor: str | None, suspect: bool) -> Evidence:
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    evidence = Evidence(examined(results_dir), factor, verdicts)
    if factor is not None and factor not in evidence.varying:
        others = f", or --factor {' or '.join(evidence.varying)}" if evidence.varying else ""
        accepted = f"results with two levels or more{others}"
        raise UsageError(f"factor {factor}", f"the one level {show(evidence.levels[factor][0])}", accepted)
    return evidence


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wirepaint.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"lower_first": words.lower_first, "unbroken": unbroken}
    environment.globals |= {
        "style": Markup("\n").join(_static(name) for name in STYLES),
        "scripts": [_static(name) for name in SCRIPTS],
        "words": words,
        "note": factors.note,
        "bar_of": factors.Bar.of,
    }
    return environment


def unbroken(text: str, names: Iterable[str]) -> Markup:
    """A sentence that no line ends in within one of ``names``, or between a number and its unit."""
    escaped = str(escape(re.sub(r"(?<=\d) (?=(%|ms|s|kB|MB)\b|%)", words.NO_BREAK, words.thinned(text))))
    known = "|".join(re.escape(str(escape(name))) for name in sorted(names, key=len, reverse=True))
    if known:
        escaped = re.sub(rf"(?<![\w-])({known})(?![\w-])", r'<span class="name">\1</span>', escaped)
    return Markup(escaped)


def _static(name: str) -> Markup:
    """One of our own files, included in the page unchanged."""
    return Markup(resources.files("wirepaint.report").joinpath("static", name).read_text("utf-8"))
