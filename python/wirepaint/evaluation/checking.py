"""Reads the data of an evaluation and finds its faults, all at once: keys, values, names that nothing has.

Values that are right but do not go together, such as a light browser behind squid, are found later, by
``planning``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from wirepaint import catalogue, files
from wirepaint.errors import Faults
from wirepaint.evaluation import congestion, network, pages
from wirepaint.evaluation.model import BACKENDS, EvaluationFile
from wirepaint.reading import located, validate

BackendName = Literal["testbed", "simulator"]


def read(
    data: dict[str, Any], base: Path, place: str, find_pages: bool = True, *, own_controls: bool = True
) -> EvaluationFile:
    """The evaluation; raises UsageError for every fault.

    ``base`` is the folder of relative paths. Pages are looked for with ``find_pages``, not imported yet.
    Without ``own_controls`` others replace its congestion controls, and theirs are not looked up.
    """
    faults = Faults()
    file = None
    with faults.kept():
        file = validate(EvaluationFile, data, place, every=True)
    scenarios = data.get("scenarios")
    for index, name in _names(scenarios, "network"):
        with faults.kept():
            network.load(name, base, f"{place}: scenarios.network[{index}]")
    named = catalogue.called("backend", str(data.get("backend") or ""), BACKENDS)
    for index, name in _names(scenarios, "congestion") if own_controls else ():
        where = f"{place}: scenarios.congestion[{index}]"
        with faults.kept():
            if name.endswith(".c"):
                _there(name, base, where, congestion.C_FILE)
            else:
                congestion.find(name, where, backends(named))
    for index, name in _names(data, "metrics"):
        with faults.kept():
            if name.endswith(".py"):
                _there(name, base, f"{place}: metrics[{index}]", "a Python file that can be read")
    agents = data.get("user_agents")
    for number, agent in enumerate(agents if find_pages and isinstance(agents, list) else ()):
        for index, name in _names(agent, "pages"):
            with faults.kept():
                pages.find(name, base, f"{place}: user_agents[{number}].pages[{index}]")
    faults.end()
    assert file is not None
    return file


def _there(name: str, base: Path, place: str, accepted: str) -> None:
    """Raises UsageError for a file that is not there, before somebody is asked to trust it."""
    path = located(name, base, place)
    files.opened(path, accepted, f"{place}: {path}").close()


def backends(named: str | None) -> list[BackendName]:
    """The back ends of an evaluation; where it names none, the testbed for root and else the simulator."""
    match named:
        case "both":
            return ["testbed", "simulator"]
        case "testbed" | "simulator":
            return [named]
        case _:
            return ["testbed" if os.geteuid() == 0 else "simulator"]


def _names(table: Any, key: str) -> Iterator[tuple[int, str]]:
    """The names in a list of a table that may be anything."""
    values = table.get(key) if isinstance(table, dict) else None
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, str) and value:
            yield index, value
