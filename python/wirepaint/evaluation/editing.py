"""Writes the options of a command line into the text of an evaluation file; the rest of it stays."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wirepaint import files
from wirepaint.evaluation import checking, drafting
from wirepaint.evaluation.options import AGENTS, Setting, applied
from wirepaint.reading import LARGEST_FILE, parsed

_HEADER = re.compile(r"\s*\[")
_CLOSES = re.compile(r"""[\]}]|\"{3}|'{3}""")
_Table = tuple[str, int] | None
"""A table by its name, and which of several it is; None for the keys before all tables."""


def edited(
    path: Path, settings: Sequence[Setting], until: str | None = None, base: Path | None = None
) -> str:
    """The text of the evaluation file at ``path`` with the settings; raises UsageError for every fault.

    Paths in it start from ``base``, by default its folder.
    ``until`` (``decided``) adds the table where the file has none. A title that wirepaint made is made anew.
    Where the text cannot be edited line by line, such as a key within a table of its own, all of it is
    written anew, without the user's comments.
    """
    text = files.text(path, LARGEST_FILE, "a TOML file")
    data = parsed(text, path)
    wanted = applied(data, map(_plain, settings))
    if until is not None:
        wanted.setdefault("until", {"verdict": until})
    if wanted == data:
        return text
    checking.read(wanted, base or path.absolute().parent, str(path))
    if _has_title_of_ours(data):
        wanted["title"] = drafting.title(wanted)
    lines = text.splitlines()
    for table, key, value in _changes(data, wanted):
        lines = _with(lines, table, key, value)
    text = "\n".join(lines) + "\n"
    return text if _data(text) == wanted else drafting.text(wanted)


def _plain(setting: Setting) -> Setting:
    """The setting with the names that the catalogue has for its values."""
    if setting.path[:-1] != ("scenarios",):
        return setting
    return replace(setting, value=drafting.plainly(setting.path[-1], setting.value))


def _has_title_of_ours(data: dict[str, Any]) -> bool:
    try:
        return data["title"] == drafting.title(data)
    except (LookupError, TypeError, AttributeError, ValueError):  # what options replace may be anything
        return False


def _changes(was: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[_Table, str, Any]]:
    """The keys with other values, each with its table and its value."""
    for name, value in now.items():
        if value == was.get(name):
            continue
        if name not in ("scenarios", AGENTS):
            yield None, name, value
            continue
        before, after = (was.get(name) or [{}], value) if name == AGENTS else ([was.get(name)], [value])
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            known = old if isinstance(old, dict) else {}
            yield from (((name, number), key, each) for key, each in new.items() if each != known.get(key))


def _with(lines: list[str], table: _Table, key: str, value: Any) -> list[str]:
    """The lines with a key of a table."""
    begin = 0
    if table is not None:
        header = re.compile(rf"\s*\[+\s*{table[0]}\s*\]")
        begins = [place for place, line in enumerate(lines, 1) if header.match(line)]
        begin = begins[table[1]] if table[1] < len(begins) else len(lines)
    place, end = begin, begin
    while place < len(lines) and not _HEADER.match(lines[place]):
        end = _end(lines, place)
        if re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", lines[place]):
            break
        place = end
    else:
        # Not there yet: after the header, or after the title, which each file has.
        place = end = begin if table is not None else _after_title(lines)
    path = () if table is None else (table[0],)
    return [*lines[:place], *drafting.lines({key: value}, path), *lines[end:]]


def _after_title(lines: Sequence[str]) -> int:
    titles = (place for place, line in enumerate(lines) if re.match(r"\s*title\s*=", line))
    return next((_end(lines, place) for place in titles), 0)


def _end(lines: Sequence[str], begin: int) -> int:
    """Where the statement that begins at a line ends: a list may have several lines."""
    for end in range(begin + 1, len(lines) + 1):
        if (end == begin + 1 or _CLOSES.search(lines[end - 1])) and _data(
            "\n".join(lines[begin:end])
        ) is not None:
            return end
    return begin + 1


def _data(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None
