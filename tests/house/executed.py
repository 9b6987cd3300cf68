"""Guides whose examples are carried out, block by block, in one folder.

- A block after a comment ``<!-- file: NAME -->`` is written to that file.
- In a block ``console``, each line ``$ COMMAND`` is run by a shell; the lines below it are what it must
  print. A line ``...`` stands for any lines. After a comment ``<!-- root -->`` it is left to root.
- A block ``pycon`` is a session of Python, run as doctests are.

``python tests/house/executed.py GUIDE...`` writes what the commands print now into the guides.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(
    r"(?:<!-- (?:file: (?P<file>\S+)|(?P<root>root)) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL
)
LONGEST_S = 300
PACKAGE = Path(__file__).parents[2] / "python"


def blocks(guide: str) -> Iterator[re.Match[str]]:
    """The blocks of a guide that are carried out."""
    return (
        found for found in BLOCK.finditer(guide) if found["file"] or found["kind"] in ("console", "pycon")
    )


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a block ``console``, each with what it must print."""
    parts = re.split(r"^\$ (.*(?:\\\n.*)*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def printed(command: str, folder: Path) -> str:
    """What a command prints; with its errors, if it fails."""
    program = f"{shlex.quote(sys.executable)} -c 'from wirepaint.cli import main; main()'"
    script = f'wirepaint() {{ {program} "$@"; }}\n{command}'
    at_home = {"XDG_CACHE_HOME": str(folder / ".cache"), "PYTHONPATH": str(PACKAGE), "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder, env=os.environ | at_home, capture_output=True, text=True, timeout=LONGEST_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = done.stdout + (done.stderr if done.returncode else "")
    return "".join(f"{line.rstrip()}\n" for line in lines.splitlines())


def matches(wanted: str, found: str) -> bool:
    """Whether an output is the wanted one."""
    pattern = "(?:.*\n)*".join(re.escape(part) for part in re.split(r"^\.\.\.\n", wanted, flags=re.MULTILINE))
    return re.fullmatch(pattern, found) is not None


def carry_out(guide: Path, folder: Path, *, root: bool = False) -> list[str]:
    """Carries a guide out in an empty folder, or with ``root`` what needs root; returns what differs."""
    wrong = []
    names: dict[str, object] = {}
    for block in blocks(guide.read_text()):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"])
        elif bool(block["root"]) != root:
            continue
        elif block["kind"] == "console":
            for command, wanted in commands(block["text"]):
                if not matches(wanted, found := printed(command, folder)):
                    wrong.append(f"$ {command}\n{found}instead of\n{wanted}")
        else:
            wrong += _session(block["text"], names, guide.name, folder)
    return wrong


def _session(text: str, names: dict[str, object], name: str, folder: Path) -> list[str]:
    """Runs a block ``pycon`` with the ``names`` of those before it, and adds its own."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    with contextlib.chdir(folder):
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
            test, out=said.append, clear_globs=False
        )
    names.update(test.globs)
    return ["".join(said)] if said else []


def rewritten(guide: Path, folder: Path) -> str:
    """The guide with what its commands print now; an output with a line ``...`` stays."""

    def now(block: re.Match[str]) -> str:
        if block["file"]:
            (folder / block["file"]).write_text(block["text"])
        if block["file"] or block["kind"] != "console":
            return block[0]
        text = ""
        for command, wanted in commands(block["text"]):
            found = "" if block["root"] else printed(command, folder)
            text += f"$ {command}\n{wanted if block['root'] or '...' in wanted.splitlines() else found}"
        return f"{block[0].partition('```')[0]}```console\n{text}```"

    return BLOCK.sub(now, guide.read_text())


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as new:
            path.write_text(rewritten(path, Path(new)))
