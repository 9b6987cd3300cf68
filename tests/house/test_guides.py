"""Lists in the guides and in the report's words name what the code has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from wirepaint import figures, metrics
from wirepaint.report import words

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guide"


def _of_the_testbed() -> set[str]:
    """Checks that the testbed's Python names: the first argument of each Reason."""
    found = set()
    for path in (ROOT / "python/wirepaint/runners").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Reason":
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else set()
    return found


def _of_the_data_plane(crate: str, pattern: str) -> set[str]:
    found = re.findall(pattern, (ROOT / "crates" / crate / "src/summary.rs").read_text())
    assert found, f"the pattern finds no check in {crate}"
    return {name.replace(" ", "_") for name in found}


EMULATOR = _of_the_data_plane("emulator", r'\("([^"]+)", self\.')
SIMULATOR = _of_the_data_plane("simulator", r'check: "([^"]+)"')


def test_every_check_has_words():
    assert len(_of_the_testbed()) > 20
    assert _of_the_testbed() | EMULATOR | SIMULATOR <= set(words.CHECKS)


def test_the_guide_lists_every_check_of_a_visit():
    table = (GUIDE / "measurement.md").read_text().partition("## What makes a run count")[2]
    listed = {name for row in re.findall(r"^\|(.+?)\|", table, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert listed == _of_the_testbed() | EMULATOR


def test_the_guide_lists_every_figure():
    table = (GUIDE / "report.md").read_text().partition("## Figures")[2]
    assert set(re.findall(r"^\| `([\w-]+)`", table, re.M)) == set(figures.registry())


def test_the_sources_of_metrics_and_figures_have_a_full_reference():
    table = (GUIDE / "metrics.md").read_text().partition("## Sources")[2]
    known = set(re.findall(r"^\| ([\w-]+) \|", table, re.M))
    shorts = {metric.source.split()[0] for metric in metrics.registry().values()}
    assert shorts - {"RFC", "W3C", "WebPageTest"} <= known
    assert {"FLD", "HTTP-AE", "CWV", "Heracles"} <= known


def test_no_document_calls_the_program_by_a_name_that_sudo_does_not_find():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert not [path for path in documents if re.search(r"sudo (-E )?wirepaint", path.read_text())]
