"""Output functions of all commands, and options that several have."""

from __future__ import annotations

import json as jsonlib
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from wirepaint.columns import aligned

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def say(text: str) -> None:
    print(text, file=sys.stderr)


def counted(count: int, noun: str) -> str:
    """A number of things: "1 run", "2 runs"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def command_line(*arguments: str, root: bool = False) -> str:
    """A command of this program as a shell takes it, as ``root`` or as it was begun; by name if on PATH."""
    name = "wirepaint"
    program = sys.argv[0] if Path(sys.argv[0]).name == name else name
    sudo = "SUDO_UID" in os.environ if os.geteuid() == 0 else root
    if not sudo and shutil.which(name) == program:  # sudo has a PATH of its own
        program = name
    return shlex.join([*(["sudo", "-E"] if sudo else []), program, *arguments])


def print_json(value: Any) -> None:
    print(jsonlib.dumps(value, indent=1, ensure_ascii=False))


def print_rows(rows: list[dict[str, Any]], json: bool) -> None:
    if json:
        print_json(rows)
        return
    for line in aligned([list(rows[0]), *(list(row.values()) for row in rows)] if rows else []):
        print(line)
