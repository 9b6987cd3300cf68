"""One figure for a paper: ``wirepaint figure``."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
import vl_convert

from wirepaint import figures
from wirepaint.cli import invoke
from wirepaint.figures._registry import MM_PER_POINT, POINTS_PER_PIXEL
from wirepaint.results import Results

OWN = '''\
"""The median of each series."""

import altair as alt
import polars as pl

TITLE = "Medians"


def data(evidence, metric: str = "page-load-time"):
    value = pl.col(metric.replace("-", "_")).median()
    return evidence.table.group_by("series", maintain_order=True).agg(value=value)


def chart(frame, style):
    return alt.Chart(frame).mark_bar().encode(x="value:Q", y="series:N", color=style.colour())
'''


@pytest.mark.parametrize("name", ["box", "cdf", "cwnd", "idle-share"])
def test_a_pdf_has_the_width_that_was_asked_for_and_its_type_is_text(
    name: str, simulated: Path, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.pdf"
    assert invoke(["figure", name, str(simulated), "-o", str(path), "--width", "85mm"]) == 0
    content = path.read_bytes()
    [box] = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert float(box[0]) * 25.4 / 72 == pytest.approx(85, abs=0.01)
    assert b"/FontFile" in content and b"/Subtype /Image" not in content


def test_it_is_laid_out_for_the_width_not_only_scaled(simulated: Path) -> None:
    results = Results.open(simulated)
    small = figures.drawn(results, "box", width_mm=85)
    pixels = 85 / MM_PER_POINT / POINTS_PER_PIXEL
    drawn = float(ElementTree.fromstring(vl_convert.vegalite_to_svg(small.spec)).get("width", ""))
    assert drawn == pytest.approx(pixels, rel=0.02)


def test_a_picture_has_300_pixels_to_the_inch(simulated: Path, tmp_path: Path) -> None:
    assert invoke(["figure", "box", str(simulated), "-o", str(tmp_path / "x.png"), "--width", "3in"]) == 0
    width, _ = struct.unpack(">II", (tmp_path / "x.png").read_bytes()[16:24])
    assert width == pytest.approx(900, abs=1)


def test_a_figure_of_ones_own_is_drawn_from_its_file(simulated: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    arguments = ["figure", str(tmp_path / "mine.py"), str(simulated), "--factor", "http"]
    assert invoke([*arguments, "-o", str(tmp_path / "x.csv")]) == 0
    assert pl.read_csv(tmp_path / "x.csv")["series"].to_list() == ["HTTP/1.1", "HTTP/2"]
    assert invoke([*arguments, "-o", str(tmp_path / "x.svg"), "--metric", "idle-time"]) == 0
    assert {"HTTP/1.1", "HTTP/2"} <= set(ElementTree.parse(tmp_path / "x.svg").getroot().itertext())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["box", "--width", "1mm"], '--width: found "1mm"; accepted: 30mm to 1000mm'),
        (["box", "--page", "nowhere"], 'page: found "nowhere"; accepted: one of agency'),
        (["cwnd", "--metric", "objects"], "figure cwnd: found option 'metric'; accepted: page, host"),
        (["none.py"], "none.py: found no such file"),
        (
            ["agreement"],
            'no value in the counted runs; accepted: results of both back ends (backend = "both")',
        ),
        (["goodput-over-time"], "accepted: runs of several users, or of flows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    arguments: list[str], words: str, simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        invoke(["figure", arguments[0], str(simulated), "-o", str(tmp_path / "x.pdf"), *arguments[1:]]) == 2
    )
    assert words in capsys.readouterr().err


def test_a_file_that_is_no_figure_is_refused(
    simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("TITLE = 'x'")
    assert invoke(["figure", str(tmp_path / "mine.py"), str(simulated), "-o", str(tmp_path / "x.pdf")]) == 2
    assert "mine.py: found no data; accepted: a Python file with TITLE" in capsys.readouterr().err


def test_windows_name_the_page_that_they_are_of(simulated: Path, tmp_path: Path) -> None:
    assert invoke(["figure", "cwnd", str(simulated), "-o", str(tmp_path / "x.svg")]) == 0
    texts = set(ElementTree.parse(tmp_path / "x.svg").getroot().itertext())
    assert any(
        text.endswith("busiest connection of the first visit of agency; thin lines: ssthresh")
        for text in texts
        if text
    )
