"""The report on several factors and back ends: an overview of all, a section for each, nothing unlabelled."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wirepaint import report
from wirepaint.figures import Evidence
from wirepaint.report import factors, render
from wirepaint.report.factors import Bar
from wirepaint.results import Results, sealed
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import Interval
from wirepaint.statistics.compare import compare_results

FACTORS = """
http = ["h1", "h2"]
initial_window = [10, 30]
"""
INTERNAL = re.compile(r"\b(h1|h2|initial_window|iw10|iw30|cubic|fld)\b")


class Tables(HTMLParser):
    """The sections of a report: headings, and tables as rows of cells' texts, in order."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.sections: dict[str, SimpleNamespace] = {}
        self._here = SimpleNamespace(headings=[], tables=[], captions=[], text="")
        self._open: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self._here = self.sections[dict(attrs)["id"] or ""] = SimpleNamespace(
                headings=[], tables=[], captions=[], text=""
            )
        elif tag in ("h2", "h3"):
            self._here.headings.append("")
        elif tag == "table":
            self._here.tables.append([])
        elif tag == "caption":
            self._here.captions.append("")
        elif tag == "tr":
            self._here.tables[-1].append([])
        elif tag in ("th", "td"):
            self._here.tables[-1][-1].append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self._open):
            return
        self._here.text += data
        said = " ".join(data.split())
        for tags, kept in ((("h2", "h3"), self._here.headings), (("caption",), self._here.captions)):
            if set(tags) & set(self._open):
                kept[-1] = f"{kept[-1]} {said}".strip()
        if {"th", "td"} & set(self._open):
            row = self._here.tables[-1][-1]
            row[-1] = f"{row[-1]} {said}".strip()


@pytest.fixture
def several(results_folder: Callable[..., Path], tmp_path: Path) -> Tables:
    """h2 is 20 % faster everywhere, IW 30 changes nothing, fld helps on 3g only."""

    def stretch(run: SimpleNamespace) -> float:
        helped = 0.9 if run.congestion == "fld" and run.network == "3g" else 1.0
        return (0.8 if run.http == "h2" else 1.0) * helped * (1 + 0.002 * run.visit)

    folder = results_folder(stretch, 6, more_axes=FACTORS)
    return Tables(report.build(folder, tmp_path / "report.html").read_text("utf-8"))


def test_the_overview_has_a_row_for_each_change_and_a_cell_for_each_network(several: Tables) -> None:
    overview = several.sections["overview"]
    first = overview.tables[0]
    assert [cell.split()[0] for cell in first[0][1:]] == ["lte", "3g"]
    rows = {row[0]: row[1:] for row in first[1:] if len(row) > 1}
    assert list(rows) == ["FLD_TCP against CUBIC", "HTTP/2 against HTTP/1.1", "IW 30 against IW 10"]
    assert [cell.split()[0] for cell in rows["HTTP/2 against HTTP/1.1"]] == ["faster", "faster"]
    assert [cell.split()[0] for cell in rows["IW 30 against IW 10"]] == ["same", "same"]
    assert [cell.split()[0] for cell in rows["FLD_TCP against CUBIC"]] == ["same", "faster"]
    assert all(re.search(r"[\u2212+±][\d.]+ %", cell) for row in rows.values() for cell in row), (
        "each with its figure"
    )


def test_where_only_networks_differ_the_overview_says_so(
    results_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder = results_folder(lambda run: 2.0 if run.network == "3g" else 1.0, 6, controls=["cubic"])
    made = Tables(report.build(folder, tmp_path / "report.html").read_text("utf-8"))
    assert "Only the networks differ" in made.sections["overview"].text
    assert "factor-network" in made.sections


def test_main_metrics_stand_first_and_each_has_its_map(several: Tables) -> None:
    titles = [caption.split(" · ")[0] for caption in several.sections["overview"].captions]
    assert titles[:3] == ["Page load time", "Fully loaded", "First contentful paint"]
    assert "Time to first byte" in titles and "Idle time" not in titles
    section = several.sections["factor-http"]
    assert any("exploratory" in caption for caption in section.captions)


def test_each_primary_metric_has_its_sentence_and_its_map_unfolded(
    results_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder = results_folder(lambda run: 1.0 if run.congestion == "cubic" else 1.2, 6)
    results = Results.open(folder)
    results.manifest["evaluation"]["primary"] = ["page-load-time", "largest-contentful-paint"]
    (folder / "manifest.json").write_bytes(sealed.dumps(results.manifest))
    html = report.build(folder, tmp_path / "report.html").read_text("utf-8")
    overview = html[html.index('id="overview"') :]
    unfolded = overview[: overview.index("The same for")]
    assert [
        name for name in ("Page load time", "Largest contentful paint") if f"<b>{name}</b>" in unfolded
    ] == [
        "Page load time",
        "Largest contentful paint",
    ]
    head = " ".join(re.sub(r"<[^>]*>", " ", html[: html.index('id="overview"')]).split())
    assert re.search(r"loads these pages 20 % slower .* with a largest contentful paint 20 % slower", head)


def test_each_factor_has_a_section_with_its_answer(several: Tables) -> None:
    assert {"factor-congestion", "factor-http", "factor-initial_window", "factor-network"} <= set(
        several.sections
    )
    text = " ".join(several.sections["factor-http"].text.split())
    assert re.search(r"HTTP/2 loads these pages 20 % faster than HTTP/1\.1 on lte", text), text[:600]
    assert "under each set of conditions" in text


def test_conditions_have_their_names_everywhere_but_in_run_keys_and_the_evaluation(several: Tables) -> None:
    for name, section in several.sections.items():
        if name not in ("runs", "provenance", "reading"):
            assert not INTERNAL.search(re.sub(r"--factor \w+", "", section.text)), name


def test_every_table_of_verdicts_says_its_back_end(several: Tables) -> None:
    for section in several.sections.values():
        for caption in section.captions:
            assert "testbed" in caption or "simulator" in caption, caption


def test_results_of_both_back_ends_never_stand_together_unlabelled(
    results_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder = results_folder(lambda run: 0.8 if run.congestion == "fld" else 1.0, 5, backend="both")
    tables = Tables(report.build(folder, tmp_path / "report.html").read_text("utf-8"))
    for name in ("overview", "factor-congestion"):
        heads = [head for head in tables.sections[name].headings if head]
        assert "Measured on the testbed" in heads and "Simulated, nothing was measured" in heads


def test_a_back_end_without_a_visit_that_counts_is_said_so_and_nothing_is_side_by_side(
    results_folder: Callable[..., Path], tmp_path: Path
) -> None:
    def outcome(run: SimpleNamespace) -> Outcome:
        return Outcome("suspect" if run.backend == "testbed" else "valid")

    folder = results_folder(lambda run: 0.8 if run.congestion == "fld" else 1.0, 5, outcome, backend="both")
    page = report.build(folder, tmp_path / "report.html").read_text("utf-8")
    brand = page.partition('<p class="brand">')[2].partition("</p>")[0]
    assert "nothing was measured. No visit on the testbed counts" in brand
    assert "side by side" not in page.partition("</header>")[0]
    overview = " ".join(Tables(page).sections["overview"].text.split())
    assert "0 of 40 visits count; left out: 40 suspect." in overview
    assert "40 suspect visits would count with --suspect" in overview
    assert all("simulator" in caption for caption in Tables(page).sections["overview"].captions)
    answer = page.partition('<p class="answer">')[2].partition("</p>")[0]
    assert "simulator" in answer


def test_what_was_left_out_is_told_by_level(results_folder: Callable[..., Path], tmp_path: Path) -> None:
    def outcome(run: SimpleNamespace) -> Outcome | None:
        if run.congestion == "fld" and run.visit == 1:
            return None
        return Outcome("invalid" if run.congestion == "fld" and run.visit == 2 else "valid")

    folder = results_folder(lambda run: 1.0, 6, outcome)
    overview = Tables(report.build(folder, tmp_path / "report.html").read_text("utf-8")).sections["overview"]
    rows = [row for row in overview.tables[-1] if row[0] == "testbed"]
    assert ["testbed", "congestion control", "CUBIC", "24 of 24", "none"] in rows
    assert ["testbed", "congestion control", "FLD_TCP", "16 of 24", "4 failed, 4 invalid"] in rows


def test_the_row_over_all_conditions_is_that_of_compare_and_of_run(
    results_folder: Callable[..., Path],
) -> None:
    def stretch(run: SimpleNamespace) -> float:
        return (0.97 if run.http == "h2" else 1.0) * (1 + 0.01 * ((run.visit * 7 + run.initial_window) % 5))

    results = Results.open(results_folder(stretch, 6, more_axes=FACTORS))
    compared = compare_results(results, "http", ["page-load-time"], by_page=False)
    whole = next(row for row in compared if not row.conditions)
    [candidate] = factors.section(Evidence(results, "http")).sides[0].candidates
    assert candidate.primary is not None
    shown = candidate.primary.conditions[-1]
    assert not shown.conditions
    assert (shown.interval, shown.p_holm, shown.verdict) == (whole.interval, whole.p_holm, whole.verdict)
    assert shown.family == len(compared) == 9


def test_of_one_network_its_row_is_the_one_over_all_conditions() -> None:
    def row(network: str | None, family: int) -> Any:
        conditions = {"network": network} if network else {}
        level = SimpleNamespace(level="h2")
        return Row("page-load-time", level, conditions, network, family)

    [shown] = factors.as_compared([row("lte", 1)], [row(None, 5)])
    assert (shown.family, shown.conditions, shown.network) == (5, {"network": "lte"}, "lte")
    kept = factors.as_compared([row("lte", 1), row("3g", 1), row(None, 1)], [row(None, 5)])
    assert [each.family for each in kept] == [1, 1, 5]


@dataclass(frozen=True)
class Row:
    """What ``as_compared`` reads of a comparison."""

    metric: str
    candidate: Any
    conditions: dict[str, str]
    network: str | None
    family: int


@pytest.mark.parametrize(
    ("shift", "drawn"),
    [
        (
            Interval(0.01, -0.02, 0.05),
            Bar(low=77.0, high=140.0, value=104.0, goes_on=(False, False), band=18.0),
        ),
        (Interval(0.3, 0.05, 0.5), Bar(low=140.0, high=185.0, value=None, goes_on=(False, True), band=18.0)),
        (Interval(-0.09), Bar(low=14.0, high=14.0, value=14.0, goes_on=(False, False), band=18.0)),
    ],
)
def test_an_interval_is_drawn_to_the_scale_of_its_section(shift: Interval, drawn: Bar) -> None:
    row: Any = SimpleNamespace(shift_rel=shift, margin=0.02)
    assert Bar.of(row, 0.1) == drawn


@pytest.mark.parametrize("name", ["flows", "users"])
def test_rows_of_flows_and_users_say_their_back_end_where_there_are_two(name: str) -> None:
    template = render._environment().get_template(f"{name}.html.j2")
    of_users = dict.fromkeys(
        ("received_bytes", "packets", "connections", "retransmitted_segments", "overhead")
    )

    def rows(*backends: str) -> list[list[str]]:
        shown = [
            SimpleNamespace(
                backend=of, scenario="lte", flow="a", user_agent="a", users=1, runs=3, values={}, **of_users
            )
            for of in backends
        ]
        report = SimpleNamespace(made_by="x", scenarios={}, flow_metrics=[], user_metrics=[])
        setattr(report, name, shown)
        [table] = Tables(template.render(report=report)).sections[name].tables
        return table

    assert [row[:2] for row in rows("testbed", "simulator")[1:]] == [["lte", "testbed"], ["lte", "simulator"]]
    assert [row[:2] for row in rows("testbed")[1:]] == [["lte", "a"]]
