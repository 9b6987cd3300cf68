"""Rules that hold for the whole project."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import metric_table
import pytest

from wirepaint import schemas
from wirepaint.metrics import registry
from wirepaint.results.trace import tables

ROOT = Path(__file__).parents[2]
UNITS = {"ms", "%", "bytes", "1", "Mbit/s", "segments"}


@pytest.mark.parametrize("name", schemas.FILES)
def test_the_committed_schema_is_that_of_the_code(name):
    committed = (schemas.FOLDER / schemas.FILES[name]).read_text("utf-8")
    assert committed == schemas.text(name), f"{schemas.FILES[name]} is not current: run `make schema`"


@pytest.mark.parametrize("metric", registry().values(), ids=registry())
def test_a_metric_says_what_it_is(metric):
    assert metric.title and metric.source
    assert metric.unit == "" if metric.label else metric.unit in UNITS
    assert re.match(r"[A-Z`].*\.$", metric.summary), "the summary is a sentence"
    assert metric.needs and set(metric.needs) <= set(tables())


def test_the_file_of_a_metric_has_its_name():
    folder = ROOT / "python/wirepaint/metrics"
    files = {path.stem for path in folder.glob("[!_]*.py")}
    assert files == {metric.column for metric in registry().values()}


def test_the_guide_lists_exactly_the_metrics_that_exist():
    guide = (ROOT / "docs/guide/metrics.md").read_text("utf-8")
    assert metric_table.table() in guide, "put the output of `python tests/house/metric_table.py` into it"


def test_the_arrows_between_the_rooms_hold():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_room_of_the_package_has_a_door_plate():
    for package in (ROOT / "python/wirepaint").rglob("__init__.py"):
        first = package.read_text("utf-8").lstrip().partition("\n")[0]
        assert first.startswith('"""') and len(first) > 20, f"{package} does not say what it is for"


def test_the_versions_agree():
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert python == rust
