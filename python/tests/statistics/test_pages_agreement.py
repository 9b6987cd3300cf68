"""The guide of the agreement, from results made by hand."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.pages.model import BODIES, Cause, Page, Recorded, Resource, save_index
from wirepaint.results import Results

BENCHES = Path(__file__).parents[3] / "benches"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    return importlib.import_module("pages_agreement")


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Two pages: `small` with bodies, `large` a shape."""
    for name, body in (("small", "a" * 64), ("large", None)):
        url = f"https://{name}.example/"
        navigation = Cause(by=None, kind="navigation")
        document = Resource(
            id=0, url=url, type="html", headers=[], body=body, synthetic=body is None, wire_bytes=9,
            decoded_bytes=9, cause=navigation, recorded=Recorded(),
        )  # fmt: skip
        (tmp_path / "judged" / name / BODIES).mkdir(parents=True)
        save_index(Page(name=name, url=url, resources=[document]), tmp_path / "judged" / name)
    return tmp_path / "judged"


def stretch(run) -> float:
    """fld is 20 % slower on the large page on both back ends; the simulator is 10 % slow on the small one."""
    slow = 1.2 if run.congestion == "fld" and run.page == "large" else 1.0
    slow *= 1.1 if run.backend == "simulator" and run.page == "small" else 1.0
    return slow * (1 + run.visit / 1000)


def test_the_guide_has_both_tables_the_judged_one_first_and_the_sentence_to_quote(
    bench, judged, results_folder
):
    results = Results.open(results_folder(stretch, backend="both"))
    text = bench.text(results, results, judged)
    assert text.index("## Judged pages") < text.index("## Fitted pages")
    before, fitted = text.split("## Fitted pages")
    table = [line for line in before.splitlines() if line.startswith("| page load time")]
    assert [line.split("|")[1].strip() for line in table] == [
        "page load time", "page load time, bodies", "page load time, shapes"
    ]  # fmt: skip
    assert table[1].split("|")[2].strip() == "4" and "0.0 %" in table[2]
    assert table[0].split("|")[-2].strip() == "2 of 2"
    assert fitted.count("| page load time") == 1
    assert "2 pages; 40 visits on the testbed and 40 in the simulator count." in before
    assert "> On 2 pages that no constant was found on (8 points)" in before
    assert "kernel 6.18.44" in before


def test_a_judged_result_of_a_page_that_is_not_judged_is_refused(bench, tmp_path, results_folder):
    results = Results.open(results_folder(stretch, backend="both"))
    with pytest.raises(UsageError, match="large, small"):
        bench.text(results, results, tmp_path / "empty")


def test_the_testbeds_visits_that_are_kept_give_the_same_agreement(bench, tmp_path, results_folder):
    results = Results.open(results_folder(stretch, backend="both"))
    frame = bench.read(results, metrics=bench.METRICS)
    bench.keep(frame, tmp_path / "kept.csv")
    found = bench.agree(bench.beside_kept(results, tmp_path / "kept.csv"), bench.METRICS)
    expected = bench.agree(frame, bench.METRICS)
    assert [row.cells for row in found] == [row.cells for row in expected]
