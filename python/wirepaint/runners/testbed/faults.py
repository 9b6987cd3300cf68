"""Faults planted in a run to show that its checks find them.

```
{"at": "run", "set": {"segments.0.down.delay_ns": 1}}     the parts get another description than was asked
{"at": "path", "in": "server", "do": "ip link ..."}    once the path is built
{"at": "load", "in": "cell", "do": "kill ..."}         in the background, from the navigation on
```
A key of ``set`` may have ``*`` for every element of a list or table. Its value may be ``{"times": FACTOR}``,
``{"plus": NUMBER}`` or ``{"as": KEY}``.
``do`` is a shell command. It runs as root in the namespaces of "client", "user 0" (behind an edge), "wire",
"server" or of the "cell" (where the processes are). The variables EMULATOR, SERVER, PROBE hold process ids.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from wirepaint import linux
from wirepaint.runners.testbed.namespaces import Namespaces

Fault = Mapping[str, Any]
PATIENCE_S = 10.0


def described(run: dict[str, Any], faults: Sequence[Fault]) -> dict[str, Any]:
    """The run description for the parts, changed by the faults."""
    changes = [change for fault in faults if fault["at"] == "run" for change in fault["set"].items()]
    if not changes:
        return run
    told = copy.deepcopy(run)
    for path, value in changes:
        *steps, last = path.split(".")
        places: list[Any] = [told]
        for step in steps:
            places = [
                inner for place in places for inner in (_each(place) if step == "*" else [_at(place, step)])
            ]
        for place in places:
            key = int(last) if isinstance(place, list) else last
            if isinstance(value, Mapping) and value.keys() == {"times"}:
                place[key] = round(place[key] * value["times"])
            elif isinstance(value, Mapping) and value.keys() == {"plus"}:
                place[key] += value["plus"]
            elif isinstance(value, Mapping) and value.keys() == {"as"}:
                place[key] = functools.reduce(_at, value["as"].split("."), run)
            else:
                place[key] = value
    return told


def _each(place: Any) -> list[Any]:
    return list(place.values() if isinstance(place, dict) else place)


def _at(place: Any, step: str) -> Any:
    if step == "*":
        return _each(place)[0]
    return place[int(step) if isinstance(place, list) else step]


def plant(
    when: str, faults: Sequence[Fault], paths: Namespaces, pids: Mapping[str, int] | None = None
) -> list[subprocess.Popen[bytes]]:
    """Plants the faults of a moment: those of "path" are done on return, those of "load" still run."""
    going = []
    for fault in faults:
        if fault["at"] != when:
            continue
        where, _, number = fault["in"].partition(" ")
        place = paths.users[int(number)] if number else None if where == "cell" else getattr(paths, where)
        process = subprocess.Popen(
            ["/bin/sh", "-ec", fault["do"]],
            env=dict(os.environ) | {name.upper(): str(pid) for name, pid in (pids or {}).items()},
            start_new_session=True,
            preexec_fn=None if place is None else lambda place=place: linux.setns(place),
        )
        if when == "path" and process.wait(PATIENCE_S):
            raise OSError(f"the fault could not be planted: {fault['do']}")
        going.append(process)
    return going


def end(going: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ends the commands that still run."""
    for process in going:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
