"""Simulates a rehearsal: the same page, the same delays, the same path."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint import browsers
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion, Run, Transport, Visit, one_path
from wirepaint.errors import RunFailed
from wirepaint.results import trace

_PATH = {"capacity": {"kind": "unlimited"}, "delay_ns": 30_000, "queue": {"kind": "droptail"}, "changes": []}
"""Loopback, with the delay that the hosts add to one direction."""
_UNTIL_NS = 60_000_000_000


@dataclass
class Predicted:
    """A simulated rehearsal; times in ms since the navigation."""

    start: dict[str, float]
    """By method and address."""
    end: dict[str, float]
    load: float | None
    first_contentful_paint: float | None
    largest_contentful_paint: float | None


def predict(graph: dict[str, Any], delays: Sequence[dict[str, float]], http: str) -> list[Predicted]:
    """The graph loaded once for each of ``delays``: by method and address (:func:`key`), in ms."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / str(number) for number in range(len(delays))]

        def described() -> Iterator[tuple[int, Path]]:
            for number, (folder, late) in enumerate(zip(folders, delays, strict=True)):
                folder.mkdir()
                yield number, _description(graph, late, http, folder, number).write()

        for _, said in simulate.ends(described()):
            if "error" in said:
                raise RunFailed(f"the simulator does not take the page: {said['error']}")
        return [_read(folder) for folder in folders]


def key(method: str, url: str) -> str:
    """The key of a request: method and address."""
    return f"{method} {url}"


def _description(graph: dict[str, Any], late: dict[str, float], http: str, folder: Path, seed: int) -> Run:
    resources = [
        resource | {"think_ns": round(late.get(key(resource["method"], resource["url"]), 0.0) * 1e6)}
        for resource in graph["resources"]
    ]
    page = graph | {"resources": resources}
    return Run(
        id="stage",
        seed=seed,
        trace_dir=folder,
        work_dir=folder,
        **one_path(_PATH, _PATH, client="std", server="std"),
        congestion=[Congestion(algorithm="std", name="std")],
        transport=Transport(http=http),
        browsers={browsers.USUAL: browsers.numbers(browsers.USUAL)},
        pages={"rehearsal": page},
        visits=[
            Visit(
                user_agent="rehearsal",
                name="rehearsal",
                timeout_ns=_UNTIL_NS,
                page="rehearsal",
                browser=browsers.USUAL,
            )
        ],
        until_ns=_UNTIL_NS,
        tables=["page", "object"],
    )


def _read(folder: Path) -> Predicted:
    (page,) = trace.read_table(folder, "page").to_dicts()
    start = page["navigation_start"]

    def ms(time: int | None) -> float | None:
        return None if time is None else (time - start) / 1e6

    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for row in trace.read_table(folder, "object").to_dicts():
        name = key(row["method"], row["url"])
        if row["discovered"] is not None:
            starts[name] = (row["discovered"] - start) / 1e6
        if row["last_byte"] is not None:
            ends[name] = (row["last_byte"] - start) / 1e6
    paints = ms(page["first_contentful_paint"]), ms(page["largest_contentful_paint"])
    return Predicted(starts, ends, ms(page["load_event"]), *paints)
