"""The folder is the registry: every file here that does not begin with ``_`` is a figure."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import runpy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from wirepaint import files
from wirepaint.errors import UsageError, show
from wirepaint.evaluation import axes
from wirepaint.figures._evidence import Evidence
from wirepaint.figures._style import MUTED, Style, finish
from wirepaint.reading import LARGEST_FILE, nearest
from wirepaint.results import Results

SUFFIXES = (".svg", ".pdf", ".png", ".csv", ".json")
MM_PER_POINT = 25.4 / 72
POINTS_PER_PIXEL = 0.72
"""On paper: type of 11 pixels is then of 8 points."""
LAYOUTS = 4
"""Tries to lay a figure out for a width on paper; what then lacks is scaled."""


@dataclass(frozen=True)
class Figure:
    """One figure. ``data`` may raise UsageError for options that it does not accept.

    ``needs`` are results of which it has something to draw.
    """

    name: str
    title: str
    caption: str
    source: str
    data: Callable[..., pl.DataFrame]
    chart: Callable[[pl.DataFrame, Style], Any]
    needs: str = "results that hold such values"


@dataclass(frozen=True)
class Drawing:
    """A drawn figure: its data, and the validated Vega-Lite specification; on paper ``width_mm`` wide."""

    figure: Figure
    frame: pl.DataFrame
    spec: dict[str, Any]
    width_mm: float | None = None

    def svg(self) -> str:
        svg = vl_convert.vegalite_to_svg(self.spec)
        return svg if self.width_mm is None else sized(svg, self.width_mm, "mm")

    def _repr_svg_(self) -> str:
        """For notebooks."""
        return self.svg()

    def pdf(self) -> bytes:
        """As vectors with embedded type."""
        if self.width_mm is None:
            return vl_convert.vegalite_to_pdf(self.spec)
        # svg_to_pdf takes a pixel as a point.
        svg = vl_convert.vegalite_to_svg(self.spec)
        return vl_convert.svg_to_pdf(sized(svg, self.width_mm / MM_PER_POINT, "px"))

    def save(self, path: Path | str) -> Path:
        """Saves in the format of the suffix: .svg, .pdf, .png, .csv (the data) or .json (Vega-Lite)."""
        path = Path(path)
        match path.suffix:
            case ".svg":
                path.write_text(self.svg(), encoding="utf-8")
            case ".pdf":
                path.write_bytes(self.pdf())
            case ".png":
                points = None if self.width_mm is None else self.width_mm / MM_PER_POINT
                path.write_bytes(png(self.spec, points))
            case ".csv":
                self.frame.drop("label", strict=False).write_csv(path)
            case ".json":
                path.write_text(json.dumps(self.spec, indent=1), encoding="utf-8")
            case suffix:
                raise UsageError(str(path), f"suffix {suffix!r}", ", ".join(SUFFIXES))
        return path


def png(spec: dict[str, Any], points: float | None = None) -> bytes:
    """A specification as a picture with a white background, readable on a dark page too.

    With ``points``, the width on paper, it has 300 pixels to the inch.
    """
    white = spec | {"config": spec["config"] | {"background": "white"}}
    if points is None:
        return vl_convert.vegalite_to_png(white, scale=2)
    return vl_convert.svg_to_png(sized(vl_convert.vegalite_to_svg(white), points, "px"), ppi=300)


def sized(svg: str, width: float, unit: str) -> str:
    """An SVG of Vega's with another width, its height in proportion."""
    old, high = _size(svg)
    instead = f'width="{width:.6g}{unit}" height="{width * high / old:.6g}{unit}"'
    return re.sub(r'width="[\d.]+" height="[\d.]+"', instead, svg, count=1)


def _size(svg: str) -> tuple[float, float]:
    """Width and height of an SVG of Vega's."""
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    assert found, "Vega gives each SVG a width and a height"
    return float(found[1]), float(found[2])


@cache
def registry() -> dict[str, Figure]:
    """All figures by name, in order of name."""
    names = sorted(file.name for file in pkgutil.iter_modules([str(Path(__file__).parent)]))
    figures = {}
    for name in (name for name in names if not name.startswith("_")):
        module = importlib.import_module(f"{__package__}.{name}")
        caption = " ".join((inspect.getdoc(module) or "").split())
        key = name.replace("_", "-")
        needs = getattr(module, "NEEDS", Figure.needs)
        figures[key] = Figure(key, module.TITLE, caption, module.SOURCE, module.data, module.chart, needs)
    return figures


def get(name: str) -> Figure:
    """A figure by its name, or that of a user's own Python file, which is executed."""
    if name.endswith(".py"):
        return _of_file(Path(name))
    try:
        return registry()[name.replace("_", "-")]
    except KeyError:
        accepted = f"{nearest(name, registry())}, or a Python file"
        raise UsageError("figure", show(name), accepted) from None


def _of_file(path: Path) -> Figure:
    """A figure of a user's own, in a file such as those of this folder."""
    accepted = (
        "a Python file with TITLE, data(evidence, ...) and chart(frame, style), as docs/guide/report.md says"
    )
    files.content(path, LARGEST_FILE, accepted)
    try:
        module = runpy.run_path(str(path))
        parts = module["TITLE"], module["data"], module["chart"]
    except KeyError as error:
        raise UsageError(str(path), f"no {error.args[0]}", accepted) from None
    except (Exception, SystemExit) as error:
        raise UsageError(str(path), f"{type(error).__name__}: {error}", accepted) from None
    caption = " ".join((module.get("__doc__") or "").split())
    title, data, chart = parts
    return Figure(path.stem.replace("_", "-"), title, caption, module.get("SOURCE", ""), data, chart)


def draw(evidence: Evidence, name: str, width_mm: float | None = None, /, **options: Any) -> Drawing | None:
    """Draws a figure; None if the evidence has nothing to draw.

    With ``width_mm`` it is laid out anew for that width on paper, with type of about 8 points.
    """
    figure = get(name)
    frame = figure.data(evidence, **options)
    if frame.is_empty():
        return None
    style = Style(evidence.series, evidence.conditions, evidence.pages)
    if width_mm is None:
        return Drawing(figure, frame, finish(figure.chart(frame, style)))
    wanted = width_mm / MM_PER_POINT / POINTS_PER_PIXEL
    width, spec = wanted, {}
    for _ in range(LAYOUTS):
        spec = finish(figure.chart(frame, replace(style, width=round(width))))
        # Labels and titles stand beside the plots: the plots get what these leave.
        beyond = _size(vl_convert.vegalite_to_svg(spec))[0] - wanted
        if abs(beyond) < 1:
            break
        width = max(width - beyond, wanted / 4)
    return Drawing(figure, frame, spec, width_mm)


def drawn(
    results: Results | Evidence,
    name: str,
    *,
    factor: str | None = None,
    of_page: str | None = None,
    suspect: bool = False,
    width_mm: float | None = None,
    **options: Any,
) -> Drawing:
    """Draws a figure of results: of all pages or ``of_page``, ``width_mm`` wide on paper.

    ``options`` are the figure's own, such as ``metric="page-load-time"``; raises UsageError if
    one is unknown or the results have nothing to draw.
    """
    drawing_of = get(name)
    accepted = list(inspect.signature(drawing_of.data).parameters)[1:]
    for option in options:
        if option not in accepted:
            raise UsageError(f"figure {name}", f"option {option!r}", ", ".join(accepted) or "no option")
    if not isinstance(results, Evidence):
        verdicts = ("valid", "suspect") if suspect else ("valid",)
        results = Evidence(results, factor, verdicts, of_page)
    drawing = draw(results, name, width_mm, **options)
    if drawing is None:
        raise UsageError(f"figure {name}", "no value in the counted runs", drawing_of.needs)
    backends = results.levels["backend"]
    # Of both, condition or series say it.
    return drawing if len(backends) > 1 else _labelled(drawing, backends[0])


def _labelled(drawing: Drawing, backend: str) -> Drawing:
    """The drawing with its back end above it, and as a column of its data."""
    title = {"text": axes.words("backend", backend), "anchor": "start", "color": MUTED}
    title |= {"fontSize": 11, "fontWeight": "normal"}
    frame = drawing.frame.with_columns(backend=pl.lit(backend))
    return replace(drawing, frame=frame, spec=drawing.spec | {"title": title})


def save(results: Results | Evidence, name: str, path: Path, **options: Any) -> Path:
    """Saves a figure in the format of the suffix: .svg, .pdf, .png, .csv (the data) or .json (Vega-Lite).

    ``options`` are those of :func:`drawn`; raises UsageError as it does, and for an unknown suffix.
    """
    path = Path(path)
    check_suffix(path)
    return drawn(results, name, **options).save(path)


def check_suffix(path: Path) -> None:
    """Raises UsageError for a file whose suffix names no format."""
    if path.suffix not in SUFFIXES:
        raise UsageError(str(path), f"suffix {path.suffix!r}", ", ".join(SUFFIXES))
