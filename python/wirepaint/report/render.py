"""Renders the report: templates, style sheet, scripts and data become one file that loads nothing."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wirepaint.report import words
from wirepaint.report.gather import gather
from wirepaint.results import Results

SCRIPTS = ("draw.js", "waterfall.js", "report.js")


def build(results_dir: Path, out: Path) -> Path:
    """Writes the report of a results folder to ``out`` and returns it.

    Works for results that are incomplete too: it says what is missing. Raises UsageError when the
    folder holds no results.
    """
    page = _environment().get_template("report.html.j2").render(report=gather(Results.open(results_dir)))
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    return out


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wirepaint.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "style": _static("report.css"),
        "scripts": [_static(name) for name in SCRIPTS],
        "words": words,
    }
    return environment


def _static(name: str) -> Markup:
    """One of our own files, put into the page as it is."""
    return Markup(resources.files("wirepaint.report").joinpath("static", name).read_text("utf-8"))
