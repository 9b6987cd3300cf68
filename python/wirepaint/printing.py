"""Output functions of all commands, and options that several have."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from wirepaint.columns import aligned

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def say(text: str) -> None:
    print(text, file=sys.stderr)


def print_json(value: Any) -> None:
    print(jsonlib.dumps(value, indent=1, ensure_ascii=False))


def print_rows(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        print_json(rows)
        return
    for line in aligned([list(rows[0]), *(list(row.values()) for row in rows)] if rows else []):
        print(line)
