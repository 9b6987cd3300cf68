"""The simulator computes what it computed before: the traces of 48 runs, column by column.

``pytest python/tests/runners/test_same_traces.py --rewrite-traces`` takes the present traces as the right
ones, with the columns that the trace has now. A change of what the simulator computes does that, and says so.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from wirepaint.evaluation import plan
from wirepaint.pages import shipped
from wirepaint.results import trace
from wirepaint.runners import backends, pool
from wirepaint.runners.progress import Lines

KEPT = Path(__file__).with_name("same_traces.json")
TABLES = ("page", "object", "chunk", "connection", "tcp", "group", "link")
EVALUATION = f"""
title = "Same traces"
backend = "simulator"
seed = 7
warmup = false
[scenarios]
network = ["lte"]
congestion = ["cubic", "heracles", "bbr"]
http = ["h1", "h2"]
[[user_agents]]
pages = {json.dumps(sorted(shipped()))}
visits = 1
"""


def digest(frame: pl.DataFrame, columns: list[str]) -> str:
    """Number of rows, and a hash of the columns with their names."""
    text = frame.select(columns).write_csv()
    return f"{frame.height} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def test_traces_are_the_same_but_for_new_columns(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "same.toml"
    file.write_text(EVALUATION)
    pool.carry_out(plan(file), tmp_path / "results", [backends.simulator()], Lines())
    runs = {folder.name: folder for folder in sorted((tmp_path / "results/runs").iterdir())}
    rewrite = request.config.getoption("--rewrite-traces")
    kept = {"columns": {table: list(trace.polars_schema(table)) for table in TABLES}}
    if not rewrite:
        kept = json.loads(KEPT.read_text())
    found = {
        key: {
            table: digest(trace.read_table(folder, table), kept["columns"][table])
            for table in TABLES
            if (folder / f"{table}.parquet").exists()
        }
        for key, folder in runs.items()
    }
    if rewrite:
        kept |= {"runs": found}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    assert len(found) >= 40
    differing = {key: tables for key, tables in found.items() if tables != kept["runs"].get(key)}
    assert not differing and found.keys() == kept["runs"].keys()
