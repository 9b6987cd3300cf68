"""Load graphs of the pages of a run: for the simulator and for light users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wirepaint import ordinary, pages
from wirepaint.pages import freshness
from wirepaint.pages.loading import load_graph
from wirepaint.pages.servers import servers as of_page
from wirepaint.runners import refusals
from wirepaint.runners.description import Visited, visited

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun


class Graph(NamedTuple):
    """The load graph of a page, the same for all of its visits, and the number of its servers."""

    graph: dict[str, Any]
    servers: int


Asked = tuple[Path, tuple[int, int], str, int]
"""Folder of a page, view port, ``servers`` of the run, and the number of its first server."""
Load = Callable[[Asked], Graph]

AGE_S = 10.0
"""How long ago the visit was that warmed a cache, at the most. It ends some seconds before a run."""


def needed(run: ResolvedRun, load: Load | None = None) -> Iterator[tuple[Asked, Graph]]:
    """The graphs that a run loads, each with what asks ``load`` for it; from the page's archive without."""
    first = 0
    for page in visited(run)[0]:
        asked = page.page, page.viewport, run.servers, first
        with refusals.reading(page.page):
            graph = (load or _page)(asked)
        yield asked, graph
        first += graph.servers


def load_graphs(
    run: ResolvedRun, load: Load | None = None
) -> tuple[dict[str, dict[str, Any]], list[Visited]]:
    """The load graphs of a run's pages by name, and for each visit its page.

    ``load`` gives a page's graph where the archive is elsewhere.

    A page that a browser with a warm cache visits has a graph of its own, which says what the cache holds.
    """
    pages_of_run, of_visits = visited(run)
    graphs = {
        page.name: found.graph for page, (_, found) in zip(pages_of_run, needed(run, load), strict=True)
    }
    known: dict[tuple[str, tuple[tuple[str, float], ...]], str] = {}
    """Names of the graphs that know a cache, by the page and the earlier visits that filled it."""
    found: list[Visited] = []
    for number, page in enumerate(of_visits):
        site = _site(graphs[page.name])
        # Chromium keeps what pages of other sites fetched apart.
        earlier = tuple(
            (of_visits[visit].name, age_s)
            for visit, age_s in _earlier(run, number)
            if _site(graphs[of_visits[visit].name]) == site
        )
        if earlier:
            name = known.setdefault((page.name, earlier), f"{page.name}~cached{len(known) + 1}")
            if name not in graphs:
                fetched = {
                    freshness.address(resource["url"]): age_s
                    for other, age_s in earlier
                    for resource in graphs[other]["resources"]
                }
                graphs[name] = freshness.warmed(graphs[page.name], fetched.get)
            page = replace(page, name=name)
        found.append(page)
    return {page.name: graphs[page.name] for page in found}, found


def _earlier(run: ResolvedRun, number: int) -> list[tuple[int, float]]:
    """The visits that filled the cache of a visit, the oldest first, each with its age in seconds.

    The time that pages take to load is not counted.
    """
    visit = run.visits[number]
    if visit.cache == "warm":
        return [(number, AGE_S)]
    found: list[tuple[int, float]] = []
    age_ns = 0
    while visit.cache == "shared" and visit.after is not None:
        age_ns += visit.start_ns
        found.append((visit.after, age_ns / 1e9))
        visit = run.visits[visit.after]
    return found[::-1]


def _site(graph: Mapping[str, Any]) -> str:
    """The site of a page: the last two labels of its host."""
    host = graph["origins"][graph["resources"][0]["origin"]]["host"]
    return ".".join(host.split(".")[-2:])


@lru_cache(maxsize=64)
def _page(asked: Asked) -> Graph:
    folder, viewport, servers, first = asked
    prepared = pages.prepare(folder, pages.cache_dir())

    def work(*_: object) -> dict[str, Any]:
        return load_graph(prepared, viewport, together=servers == "together", first=first, in_gzip=True)

    with ordinary.done(work, str(folder)) as (_, graph):
        return Graph(graph, 1 if servers == "together" else len(of_page(prepared)))
