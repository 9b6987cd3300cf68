"""The folder is the registry: every file here that does not begin with ``_`` is a figure."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from wirepaint.errors import UsageError, show
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import Style, finish
from wirepaint.reading import nearest
from wirepaint.results import Results

SUFFIXES = (".svg", ".pdf", ".png", ".csv", ".json")


@dataclass(frozen=True)
class Figure:
    """One figure. ``data`` may raise UsageError for options that it does not accept."""

    name: str
    title: str
    caption: str
    source: str
    data: Callable[..., pl.DataFrame]
    chart: Callable[[pl.DataFrame, Style], Any]


@dataclass(frozen=True)
class Drawing:
    """A drawn figure: its data, and the validated Vega-Lite specification."""

    figure: Figure
    frame: pl.DataFrame
    spec: dict[str, Any]

    def svg(self) -> str:
        return vl_convert.vegalite_to_svg(self.spec)

    def save(self, path: Path) -> Path:
        """Saves in the format of the suffix: .svg, .pdf, .png, .csv (the data) or .json (Vega-Lite)."""
        match path.suffix:
            case ".svg":
                path.write_text(self.svg(), encoding="utf-8")
            case ".pdf":
                path.write_bytes(vl_convert.vegalite_to_pdf(self.spec))
            case ".png":
                path.write_bytes(png(self.spec))
            case ".csv":
                self.frame.drop("label", strict=False).write_csv(path)
            case ".json":
                path.write_text(json.dumps(self.spec, indent=1), encoding="utf-8")
            case suffix:
                raise UsageError(str(path), f"suffix {suffix!r}", ", ".join(SUFFIXES))
        return path


def png(spec: dict[str, Any]) -> bytes:
    """A specification as a picture with a white background, readable on a dark page too."""
    return vl_convert.vegalite_to_png(spec | {"config": spec["config"] | {"background": "white"}}, scale=2)


@cache
def registry() -> dict[str, Figure]:
    """All figures by name, in order of name."""
    names = sorted(file.name for file in pkgutil.iter_modules([str(Path(__file__).parent)]))
    figures = {}
    for name in (name for name in names if not name.startswith("_")):
        module = importlib.import_module(f"{__package__}.{name}")
        caption = " ".join((inspect.getdoc(module) or "").split())
        key = name.replace("_", "-")
        figures[key] = Figure(key, module.TITLE, caption, module.SOURCE, module.data, module.chart)
    return figures


def get(name: str) -> Figure:
    try:
        return registry()[name.replace("_", "-")]
    except KeyError:
        raise UsageError("figure", show(name), nearest(name, registry())) from None


def draw(evidence: Evidence, name: str, **options: Any) -> Drawing | None:
    """Draws a figure; None if the evidence has nothing to draw."""
    figure = get(name)
    frame = figure.data(evidence, **options)
    if frame.is_empty():
        return None
    style = Style(evidence.series, evidence.conditions, evidence.pages)
    return Drawing(figure, frame, finish(figure.chart(frame, style)))


def save(results: Results | Evidence, name: str, path: Path, **options: Any) -> Path:
    """Saves a figure in the format of the suffix: .svg, .pdf, .png, .csv (the data) or .json (Vega-Lite).

    ``options`` are the figure's own, such as ``metric="page-load-time"``; raises UsageError if
    the suffix or an option is unknown or the results have nothing to draw.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise UsageError(str(path), f"suffix {path.suffix!r}", ", ".join(SUFFIXES))
    accepted = list(inspect.signature(get(name).data).parameters)[1:]
    for option in options:
        if option not in accepted:
            raise UsageError(f"figure {name}", f"option {option!r}", ", ".join(accepted) or "no option")
    drawing = draw(results if isinstance(results, Evidence) else Evidence(results), name, **options)
    if drawing is None:
        raise UsageError(f"figure {name}", "no value in the counted runs", "results that hold such values")
    return drawing.save(path)
