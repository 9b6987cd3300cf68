"""Every figure of the folder draws, explains itself, and saves in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
import vl_convert
from report.fixture import write_results

from wirepaint import figures, metrics
from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.figures import Evidence
from wirepaint.figures._style import Style, finish
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence(Results.open(write_results(tmp_path_factory.mktemp("figures") / "results", visits=3)))


@pytest.mark.parametrize("name", figures.registry())
def test_a_figure_names_itself_its_source_and_what_it_shows(name: str) -> None:
    figure = figures.get(name)
    assert figure.title and figure.source
    assert figure.caption.endswith(".") and len(figure.caption) > 40


OF_OTHERS = {"agreement", "goodput-over-time"}
"""Figures of results that the fixture does not have; their tests are elsewhere."""


@pytest.mark.parametrize("name", sorted(set(figures.registry()) - OF_OTHERS))
def test_a_figure_shows_every_series_and_condition(name: str, evidence: Evidence) -> None:
    drawing = figures.draw(evidence, name)
    assert drawing is not None
    assert set(drawing.frame["series"]) == {"CUBIC", "FLD_TCP"}
    assert set(drawing.frame["condition"]) == {"lte", "3g"}
    text = " ".join(ElementTree.fromstring(drawing.svg()).itertext())
    assert all(word in text for word in ("CUBIC", "FLD_TCP", "lte", "3g"))


def test_a_factor_has_its_short_names(evidence):
    assert Evidence(evidence.results, "cc").factor == "congestion"
    assert Evidence(evidence.results, "Congestion-Control").factor == "congestion"


def test_a_figure_takes_as_many_values_as_there_are(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = pl.concat([evidence.table] * (6_000 // evidence.table.height + 1))
    monkeypatch.setattr(evidence, "table", many)
    drawing = figures.draw(evidence, "cdf", metric="page-load-time")
    assert drawing is not None and drawing.frame.height > 5_000
    assert drawing.svg().startswith("<svg")


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png", ".csv", ".json"])
def test_a_figure_is_saved_in_the_format_of_its_suffix(
    suffix: str, evidence: Evidence, tmp_path: Path
) -> None:
    path = figures.save(evidence, "box", tmp_path / f"figure{suffix}", metric="page-load-time")
    content = path.read_bytes()
    begins = {".svg": b"<svg", ".pdf": b"%PDF-", ".png": b"\x89PNG", ".csv": b"condition,", ".json": b"{"}
    assert content.startswith(begins[suffix])
    if suffix == ".json":
        assert json.loads(content)["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def test_the_data_of_a_box_is_every_counted_value(evidence: Evidence, tmp_path: Path) -> None:
    path = figures.save(evidence, "box", tmp_path / "box.csv", metric="page-load-time")
    expected = evidence.table["page_load_time"] / 1000
    assert sorted(pl.read_csv(path)["value"]) == pytest.approx(sorted(expected))


def test_warm_up_visits_and_runs_that_are_not_valid_are_left_out(evidence: Evidence) -> None:
    assert not evidence.table["warmup"].any()
    assert set(evidence.table["verdict"]) == {"valid"}
    assert evidence.table.height < evidence.every_run.height


def test_a_cumulative_share_ends_at_one_in_each_group(evidence: Evidence) -> None:
    drawing = figures.draw(evidence, "cdf", metric="page-load-time")
    assert drawing is not None
    groups = drawing.frame.group_by("condition", "page", "series").agg(pl.col("share").max(), pl.len())
    assert set(groups["share"]) == {1.0}
    assert groups["len"].sum() == evidence.table.height + groups.height, (
        "one more point, the start, per curve"
    )
    assert [f">{share} %<" in drawing.svg() for share in (0, 25, 50, 75, 100)] == [True] * 5


@pytest.mark.parametrize("name", [m.name for m in metrics.registry().values() if not m.label])
def test_every_metric_with_values_can_be_drawn(name: str, evidence: Evidence) -> None:
    drawing = figures.draw(evidence, "box", metric=name)
    known = evidence.table[metrics.get(name).column].count()
    assert (drawing is not None) == (known > 0)


def test_a_figure_of_one_back_end_names_it_in_picture_and_data(evidence: Evidence, tmp_path: Path) -> None:
    drawing = figures.drawn(evidence, "box")
    assert "testbed" in ElementTree.fromstring(drawing.svg()).itertext()
    assert set(pl.read_csv(drawing.save(tmp_path / "box.csv"))["backend"]) == {"testbed"}


def test_a_figure_of_two_names_each_where_it_is_drawn(
    results_folder: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(run):
        return Outcome("suspect" if (run.backend, run.congestion) == ("testbed", "fld") else "valid")

    folder = results_folder(lambda run: 1.0, 1, outcome, backend="both")
    arguments = ["figure", "box", str(folder), "--factor", "congestion", "--page", "small"]
    assert invoke([*arguments, "-o", str(tmp_path / "box.csv")]) == 0
    assert set(pl.read_csv(tmp_path / "box.csv")["condition"]) == {
        "lte / testbed", "lte / simulator", "3g / testbed", "3g / simulator",
    }  # fmt: skip
    assert capsys.readouterr().err.splitlines() == [
        "testbed: 2 of 4 visits count; 2 suspect.",
        "simulator: 4 of 4 visits count.",
        "cubic, simulator: 2 of 2 visits count.",
        "cubic, testbed: 2 of 2 visits count.",
        "fld, simulator: 2 of 2 visits count.",
        "fld, testbed: 0 of 2 visits count; 2 suspect.",
    ]


@pytest.mark.parametrize("name", ["box", "cdf", "cwnd", "connection-duration"])
def test_plots_of_the_two_back_ends_have_one_scale(name: str, evidence: Evidence) -> None:
    figure = figures.get(name)
    drawing = figures.draw(evidence, name)
    assert drawing is not None
    value = "time" if name == "cwnd" else "value"
    real = drawing.frame.with_columns(condition=pl.format("{} / testbed", "condition"))
    far = drawing.frame.with_columns(pl.col(value) * 3, condition=pl.format("{} / simulator", "condition"))
    frame = pl.concat([real, far])
    style = Style(evidence.series, frame["condition"].unique(maintain_order=True).to_list(), evidence.pages)
    svg = vl_convert.vegalite_to_svg(finish(figure.chart(frame, style)))
    ends = re.findall(r'aria-label="X-axis[^"]* with values from ([^"]+)"', svg)
    assert len(ends) >= 4
    assert all(ends.count(each) % 2 == 0 for each in ends), ends


def test_what_cannot_be_saved_is_refused_with_what_can(evidence: Evidence, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"accepted: .svg, .pdf, .png, .csv, .json"):
        figures.save(evidence, "box", tmp_path / "box.gif")
    with pytest.raises(UsageError, match=r"accepted: .*cdf"):
        figures.save(evidence, "pie", tmp_path / "pie.svg")
    with pytest.raises(UsageError, match="option 'colour'"):
        figures.save(evidence, "box", tmp_path / "box.svg", colour="red")
    with pytest.raises(UsageError, match="accepted: one of gov-guide"):
        figures.save(evidence, "cwnd", tmp_path / "cwnd.svg", page="nonsense")
