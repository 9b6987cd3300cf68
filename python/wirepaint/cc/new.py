"""Writes a starting file for a congestion control and its first script; they load and pass unchanged."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from wirepaint.cc import catalogue
from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion
from wirepaint.reading import show

NAME_MAX = 9
"""Characters; the kernel takes 15, and a run adds a dot and five characters."""


def write(name: str, folder: Path) -> list[Path]:
    """Writes NAME.c and NAME-1.ack into ``folder`` and returns them; overwrites nothing."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{NAME_MAX - 1}}}", name):
        raise UsageError(
            "NAME", show(name), f"at most {NAME_MAX} characters of a-z, 0-9 and _, a letter first"
        )
    if name in catalogue.ours() or name in congestion.of_kernel():
        raise UsageError("NAME", f"{show(name)}, which exists", "a name of its own (wirepaint cc list)")
    made = {
        folder / f"{name}.c": _template("start.c.txt", name),
        folder / f"{name}-1.ack": _template("start.ack.txt", name),
    }
    for path in made:
        if path.exists():
            raise UsageError(str(path), "a file that exists", "another name, or another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text)
    return list(made)


def _template(file: str, name: str) -> str:
    text = resources.files("wirepaint.cc").joinpath(file).read_text("utf-8")
    return text.replace("NAME", name)
