"""Load graphs of the pages of a run: for the simulator and for light users."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint import ordinary, pages
from wirepaint.pages.loading import load_graph
from wirepaint.pages.servers import servers as of_page
from wirepaint.runners import refusals
from wirepaint.runners.description import Visited, visited

if TYPE_CHECKING:
    from wirepaint.evaluation import ResolvedRun


def load_graphs(run: ResolvedRun) -> tuple[dict[str, dict[str, Any]], list[Visited]]:
    """The load graphs of a run's pages by name, and for each visit its page."""
    pages_of_run, of_visits = visited(run)
    graphs: dict[str, dict[str, Any]] = {}
    first = 0
    for page in pages_of_run:
        with refusals.reading(page.page):
            graphs[page.name], count = _page(page.page, page.viewport, run.servers, first)
        first += count
    return graphs, of_visits


@lru_cache(maxsize=64)
def _page(folder: Path, viewport: tuple[int, int], servers: str, first: int) -> tuple[dict[str, Any], int]:
    """The load graph of a page, the same for all its visits, and the number of its servers.

    ``first`` is the number of its first server.
    """
    prepared = pages.prepare(folder, pages.cache_dir())

    def work(*_: object) -> dict[str, Any]:
        return load_graph(prepared, viewport, together=servers == "together", first=first)

    with ordinary.done(work, str(folder)) as (_, graph):
        return graph, 1 if servers == "together" else len(of_page(prepared))
