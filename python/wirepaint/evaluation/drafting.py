"""Writes an evaluation file from pages and options: what ``wirepaint run page.har --http h1,h2`` carries out.

The file has comments that say what else each key takes. It is complete: carried out again, also by another
user, it asks for the same runs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint import catalogue
from wirepaint.errors import UsageError
from wirepaint.evaluation import checking, congestion, pages
from wirepaint.evaluation.axes import HTTP_VERSIONS, axes, factors
from wirepaint.evaluation.congestion import slug
from wirepaint.evaluation.model import BACKENDS
from wirepaint.evaluation.options import AGENTS, Setting, applied

NETWORK = "lte"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100
"""Characters from which on a list has a line for each value."""

_COMMENTS: dict[tuple[str, ...], str] = {
    ("backend",): "testbed (as root), simulator, or both",
    ("scenarios",): "Each combination of these values is a scenario. Several values of a key are compared.",
    ("scenarios", "network"): "`wirepaint network list`, or the path of a .toml file",
    ("scenarios", "congestion"): "`wirepaint cc list`, or the path of a C file of your own",
    ("scenarios", "http"): "h1, h2",
    (AGENTS,): "Who visits what.",
    (AGENTS, "pages"): "`wirepaint page list`, or paths: a HAR, web archive, site or imported page",
}
_MORE: dict[str, tuple[str, ...]] = {
    "": (
        'timeout = "60 s"            # longest visit',
        "seed = 1                   # of loss, jitter and order",
    ),
    "scenarios": (
        "initial_window = [10, 30]  # segments",
        'proxy = ["none", "split"]  # docs/guide/proxies.md',
    ),
    AGENTS: (
        "visits = 20                # of each page in each scenario; enough to decide without this key",
        "viewport = [412, 823]      # CSS pixels",
        'cache = "warm"             # cold without this key',
    ),
}
"""Keys that a file may have, too, by table."""


@dataclass(frozen=True)
class Draft:
    """An evaluation file that is not written yet."""

    data: dict[str, Any]
    notes: list[str]
    """What was chosen without being asked for."""

    @property
    def text(self) -> str:
        """The content of the file."""
        return text(self.data)

    @property
    def name(self) -> str:
        """A name for its results, by the first page, what is compared, and the back end."""
        agent = self.data[AGENTS][0]
        compared = [axis for axis in _varying(self.data) if axis != "network"]
        page = pages.name_of(agent["pages"][0])
        return slug("-".join([page, *compared, self.data["backend"]]).replace("_", "-"))


def draft(given: Sequence[str], settings: Sequence[Setting], beside: Path | None = None) -> Draft:
    """The evaluation of pages and settings, which is not checked yet.

    Paths of pages are absolute, or relative to the folder ``beside``.
    """
    notes: list[str] = []
    named = [_reference(one, beside) for one in given]
    data = applied({"scenarios": {}, AGENTS: [{"pages": named}]}, settings)
    scenarios = data["scenarios"] = {key: plainly(key, value) for key, value in data["scenarios"].items()}
    if "network" not in scenarios:
        scenarios["network"] = [NETWORK]
        notes.append(f"No --network was given: {NETWORK}. `wirepaint network list` has more.")
    if not any(axis != "network" for axis in _varying(data)) and "http" not in scenarios:
        scenarios["http"] = ["h1", "h2"]
        notes.append("Nothing was given to compare: HTTP/1.1 and HTTP/2 are.")
    backend = data.get("backend") or checking.backends(None)[0]
    data["backend"] = catalogue.called("backend", backend, BACKENDS)
    data.setdefault("title", title(data))
    order = [*axes(), *(key for key in scenarios if key not in axes())]
    data["scenarios"] = {key: scenarios[key] for key in order if key in scenarios}
    return Draft(data, notes)


def _reference(given: str, beside: Path | None) -> str:
    """A page of the command line as an evaluation file names it; what nothing has stays as it is."""
    try:
        found = pages.find(given, Path.cwd(), "page")
    except UsageError:
        return str(Path(given).absolute()) if given and Path(given).exists() else given
    path = str(found) if beside is None else os.path.relpath(found, beside)
    return pages.shipped_name(found) or (path if "/" in path else f"./{path}")


def plainly(axis: str, values: Any) -> Any:
    """The values of an axis with the names that the catalogue has for them."""
    known = {
        "network": lambda: catalogue.names("network"),
        "http": lambda: list(HTTP_VERSIONS),
        "congestion": congestion.known,
    }
    if axis not in known or not isinstance(values, list):
        return values
    return [catalogue.called(axis, each, known[axis]()) if isinstance(each, str) else each for each in values]


def _varying(data: Mapping[str, Any]) -> list[str]:
    """The axes with several values, first those that are compared by default."""
    return [axis for axis in factors() if len(data["scenarios"].get(axis, ())) > 1]


def title(data: Mapping[str, Any]) -> str:
    """The title of an evaluation that has none, such as "photos: h1 or h2, on lte"."""
    loaded = [pages.name_of(page) for page in data[AGENTS][0]["pages"]]
    asked = [
        _either([axes()[axis].tag(_level(each)) for each in data["scenarios"][axis]])
        for axis in _varying(data)
        if axis != "network"
    ]
    on = ", ".join(map(_level, data["scenarios"]["network"]))
    what = loaded[0] if len(loaded) == 1 else f"{loaded[0]} and {len(loaded) - 1} more"
    return f"{what}: {'; '.join(asked) or 'load times'}, on {on}"[:200]


def _either(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _level(value: Any) -> str:
    name = value.get("title") or value.get("name") if isinstance(value, dict) else value
    return Path(str(name)).stem if "/" in str(name) else str(name)


def text(data: Mapping[str, Any]) -> str:
    """The content of an evaluation file."""
    written = ["# Each key: docs/guide/evaluation.md"]
    tables = {"scenarios", AGENTS}
    order = [
        "title",
        "summary",
        "backend",
        *(key for key in data if key not in ("title", "summary", "backend")),
    ]
    written += lines({key: data[key] for key in order if key in data and key not in tables}, ())
    written += _hints("", data)
    written += ["", f"# {_COMMENTS[('scenarios',)]}", "[scenarios]"]
    written += [*lines(data["scenarios"], ("scenarios",)), *_hints("scenarios", data["scenarios"])]
    for agent in data.get(AGENTS, ()):
        written += ["", f"# {_COMMENTS[(AGENTS,)]}", f"[[{AGENTS}]]"]
        written += [*lines(agent, (AGENTS,)), *_hints(AGENTS, agent)]
    return "\n".join(written) + "\n"


def lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterable[str]:
    """Statements of the keys of the table at a path."""
    for key, value in table.items():
        line = f"{_key(key)} = {_value(value)}"
        if isinstance(value, list) and len(line) > _WIDTH:
            line = f"{_key(key)} = [\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
        comment = _COMMENTS.get((*path, key))
        yield f"{line}  # {comment}" if comment else line


def _hints(table: str, given: Mapping[str, Any]) -> list[str]:
    return [f"# {line}" for line in _MORE[table] if line.partition(" ")[0] not in given]


def _key(key: str) -> str:
    return key if _NAME.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    # A string of JSON is one of TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
