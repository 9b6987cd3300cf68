"""Generates the schemas in schema/ from their declarations; they are committed, and a test checks them."""

from __future__ import annotations

import json
from pathlib import Path

from wirepaint import dataplane
from wirepaint.evaluation.model import json_schema
from wirepaint.results import durable

FOLDER = Path(__file__).parent / "schema"
FILES = {"evaluation": "evaluation.schema.json", "run": "run.schema.json", "trace": "trace.json"}


def text(name: str) -> str:
    """The newly generated schema of evaluation files, run descriptions or the trace."""
    if name == "evaluation":
        return json_schema()
    return json.dumps(dataplane.call("schema")[name], indent=2, ensure_ascii=False) + "\n"


def write() -> list[Path]:
    """Writes all schemas into the package; returns the files."""
    for name, file in FILES.items():
        durable.write(FOLDER / file, text(name).encode())
    return [FOLDER / file for file in FILES.values()]
