"""An evaluation that is edited after it began: which edits leave the finished runs as they are.

More visits, pages, user agents, networks and levels of any axis may be asked for, or fewer. What finished
runs depend on may not differ between two versions of the evaluation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirepaint.results.journal_tables import AXES

FREE = frozenset(
    {"title", "summary", "order", "warmup", "stop", "until", "repeats", "backend", "primary", "metrics"}
    | {"results"}
)
"""Keys of an evaluation that no single run depends on."""
IDENTITY = (*(axis for axis in AXES if axis != "scenario"), "visit")
"""Columns that tell runs apart. The name of a scenario does not: it depends on which axes vary."""
_LEVELS = [axis for axis in IDENTITY if axis not in ("user_agent", "page", "visit")]

_FOR_READERS = {"visits", "rehearsal", "rehearsal_by_https", "contents_sha256"}
"""Keys of a user agent that no run depends on: the page's hash includes its rehearsal and its contents."""
_DIGESTS = ("page_sha256", "page_by_https_sha256")

Evaluation = Mapping[str, Any]
"""An evaluation as the manifest has it."""


def identity(row: Mapping[str, Any]) -> bytes:
    """A digest of what a run is asked for: the same for a run whose scenario got another name."""
    asked = "\0".join(str(row[column]) for column in IDENTITY)
    return hashlib.blake2b(asked.encode(), digest_size=16).digest()


def conditions(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a run has in common with its repetitions."""
    return tuple(row[column] for column in IDENTITY if column != "visit")


def changes(was: Evaluation, now: Evaluation, finished: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The differences that would change one of the ``finished`` rows of the journal, one sentence each."""
    before, after = _parts(was), _parts(now)
    needed = {part for row in finished for part in _parts_of(row)}
    for name in before.keys() & after.keys() & needed:
        yield from differences(before[name], after[name], name)
    if needed:
        apart = FREE | {"networks", "congestion", "scenarios", "user_agents"}
        before, after = ({key: of[key] for key in of if key not in apart} for of in (was, now))
        yield from differences(before, after)


def renewed(was: Evaluation, now: Evaluation, finished: Iterable[Mapping[str, Any]]) -> list[str]:
    """The C files and pages of finished runs that are other ones now, in words: digests tell nobody."""
    before, after = _parts(was), _parts(now)
    needed = {part for row in finished for part in _parts_of(row)}
    found: list[str] = []
    for name in before.keys() & after.keys() & needed:
        old_ones, new_ones = (
            of[name] if isinstance(of[name], list) else [of[name]] for of in (before, after)
        )
        for old, new in zip(old_ones, new_ones, strict=False):
            if old.get("file") and new.get("file") and old["file"] != new["file"]:
                found.append(f"the C file of {new['name']} has changed since these runs")
            same_page = "page" in old and old["page"] == new["page"]
            if same_page and any(old.get(key) != new.get(key) for key in _DIGESTS):
                contents = [_contents(of, new["page"]) for of in (was, now)]
                again = contents[0] is not None and contents[0] == contents[1]
                what = f"the rehearsal of the page {new['page']}" if again else f"the page {new['page']}"
                found.append(f"{what} is another one than that of these runs")
    return sorted(set(found))


def _contents(evaluation: Evaluation, page: str) -> str | None:
    """SHA-256 of what the servers of a page answer; None in results of an earlier build."""
    of_page = (agent for agent in evaluation["user_agents"] if agent["page"] == page)
    return next((agent.get("contents_sha256") for agent in of_page), None)


def is_within(was: Evaluation, now: Evaluation) -> bool:
    """Whether ``now`` has every network, level and page of ``was``."""
    return _parts(was).keys() <= _parts(now).keys()


def _parts(evaluation: Evaluation) -> dict[str, Any]:
    """What may be added or removed, by a name that does not depend on the rest of the evaluation."""
    parts: dict[str, Any] = {f"networks.{name}": of for name, of in evaluation["networks"].items()}
    parts |= {f"congestion.{name}": of for name, of in evaluation["congestion"].items()}
    parts |= {_scenario(scenario): scenario for scenario in evaluation["scenarios"].values()}
    groups: dict[str, list[Any]] = {}
    for agent in evaluation["user_agents"]:
        of_run = {key: value for key, value in agent.items() if key not in _FOR_READERS}
        if agent.get("group") is None:
            parts[_visitor(agent["name"], agent["page"])] = of_run
        else:
            groups.setdefault(agent["group"], []).append(of_run)
    return parts | {_visitor(group, group): members for group, members in groups.items()}


def _parts_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the parts that a run depends on."""
    visitor = _visitor(row["user_agent"], row["page"])
    return f"networks.{row['network']}", f"congestion.{row['congestion']}", _scenario(row), visitor


def _scenario(levels: Mapping[str, Any]) -> str:
    return f"scenarios, {' / '.join(str(levels[axis]) for axis in _LEVELS)}"


def _visitor(user_agent: str, page: str) -> str:
    return f"user_agents, {user_agent}, page {page}"


def differences(was: Any, now: Any, path: str = "") -> list[str]:
    """The differences of two JSON values, one sentence each."""
    if isinstance(was, dict) and isinstance(now, dict):
        found = []
        for key in dict.fromkeys([*was, *now]):
            inner = f"{path}.{key}" if path else key
            if key not in now:
                found.append(f"{inner} is gone")
            elif key not in was:
                found.append(f"{inner} is new")
            else:
                found += differences(was[key], now[key], inner)
        return found
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{path}[{i}]")]
    if was != now:
        return [f"{path} was {_short(was)} and is {_short(now)}"]
    return []


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
