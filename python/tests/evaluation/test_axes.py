"""An axis is declared once: three lines more, and a copy of the package has another."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import wirepaint
from wirepaint.evaluation.axes import axes, factors

DECLARED = """\
    shape: Annotated[
        Literal["round", "square"], Axis("shape of packets", Literal["round", "square"], ("round",))
    ]
"""
EVALUATION = """
title = "Two shapes"
backend = "both"
[scenarios]
network = [{title = "fast", down = {delay = "13 ms"}, up = {delay = "13 ms"}}]
shape = ["round", "square"]
[[user_agents]]
pages = ["one", "two", "three"]
visits = 6
"""
RUN = """
import sys
from pathlib import Path
from wirepaint.evaluation import plan
from wirepaint.evaluation.pages import PageRef
from wirepaint.results import trace
from wirepaint.results.outcome import Outcome
from wirepaint.results.store import Store

def page(name, base, place):
    return PageRef(name=name, folder=base / name, sha256="0" * 64)

folder = Path(sys.argv[1])
planned = plan(folder / "shapes.toml", page_resolver=page)
with Store(folder / "results", planned, {}) as store:
    for run in planned.runs:
        attempt, target = store.begin(run.key)
        ms = (100 if run.shape == "round" else 200) + 10 * len(run.page_name) + run.visit
        row = {"page": run.page_name, "navigation_start": 0, "load_event": ms * 10**6}
        trace.write_table(target, "page", [row])
        store.done(run.key, attempt, Outcome("valid", [], 10**9))
"""
VERB = "import sys; from wirepaint.cli import invoke; sys.exit(invoke(sys.argv[1:]))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which one more axis is declared, and its ``results``."""
    folder = tmp_path_factory.mktemp("copied")
    source = Path(wirepaint.__file__).parent
    shutil.copytree(source, folder / "wirepaint", ignore=shutil.ignore_patterns("__pycache__"))
    declaration = folder / "wirepaint/evaluation/axes.py"
    text = declaration.read_text()
    before = "\n\n@cache\ndef axes()"
    assert text.count(before) == 1
    declaration.write_text(text.replace(before, DECLARED + before))
    (folder / "shapes.toml").write_text(EVALUATION)
    python(folder, RUN, str(folder))
    return folder


def python(folder: Path, program: str, *arguments: str) -> str:
    """The output of a program that runs on the copy."""
    argv = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_axis_is_in_names_and_journal(folder: Path) -> None:
    db = sqlite3.connect(folder / "results/journal.sqlite")
    rows = set(db.execute("SELECT scenario, shape, proxy FROM run"))
    db.close()
    names = {
        f"fast-cubic-h2-{shape}-{back}" for shape in ("round", "square") for back in ("testbed", "simulator")
    }
    assert {scenario for scenario, _, _ in rows} == names
    assert {(scenario.split("-")[3], shape) for scenario, shape, _ in rows} == {
        (s, s) for s in ("round", "square")
    }


def test_a_new_axis_is_compared(folder: Path) -> None:
    table = json.loads(
        python(
            folder, VERB, "compare", "results", "--factor", "shape", "--metric", "page-load-time", "--json"
        )
    )
    rows = [row for row in table["comparisons"] if len(row["pages"]) == 3]
    assert rows and {(row["baseline"]["level"], row["candidate"]["level"]) for row in rows} == {
        ("round", "square")
    }
    assert {round(row["shift"]["value"]) for row in rows} == {100}


def test_a_new_axis_is_what_a_report_compares(folder: Path) -> None:
    python(folder, VERB, "report", "results", "-o", "report.html")
    assert "Does square load these pages faster than round?" in (folder / "report.html").read_text()


def test_differences_of_a_new_axis_count_for_the_agreement(folder: Path) -> None:
    [of] = json.loads(python(folder, VERB, "agree", "results", "--metric", "page-load-time", "--json"))[
        "agreement"
    ]
    assert (of["points"], of["decided"], of["same_sign"]) == (6, 3, 3)


def test_factors_begin_with_the_use_of_a_path() -> None:
    assert list(factors()) == [
        "congestion",
        "http",
        "initial_window",
        "proxy",
        "network",
        "background",
        "backend",
    ]
    assert list(axes()) == ["network", "congestion", "http", "initial_window", "background", "proxy"]
