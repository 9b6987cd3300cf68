"""Load graphs of a run whose browsers have warm caches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from wirepaint.evaluation import plan
from wirepaint.runners.graphs import load_graphs

EVALUATION = """
title = "Caches"
backend = "simulator"
warmup = false
[scenarios]
network = ["lte"]
[[user_agents]]
name = "cold"
pages = ["photos"]
visits = 1
together = true
[[user_agents]]
name = "reader"
pages = ["agency", "kit", "photos"]
visits = 1
together = true
count = 2
cache = "shared"
[[user_agents]]
name = "warm"
pages = ["agency"]
visits = 1
together = true
cache = "warm"
"""


def test_a_page_has_a_graph_for_each_cache_that_it_is_visited_with(tmp_path: Path) -> None:
    file = tmp_path / "evaluation.toml"
    file.write_text(EVALUATION)
    [run] = plan(file).runs
    graphs, of_visits = load_graphs(run)
    names = [page.name for page in of_visits]
    assert names == ["photos", *["agency", "kit", "photos~cached1"] * 2, "agency~cached2"]
    assert set(graphs) == set(names)
    held = {
        name: Counter(resource.get("cached") for resource in graph["resources"])
        for name, graph in graphs.items()
    }
    assert held["photos"].keys() == held["agency"].keys() == held["kit"].keys() == {None}
    # photos and agency are of one site and have one script in common; kit is of another site.
    assert held["photos~cached1"]["fresh"] == 1 and held["photos~cached1"]["stale"] == 0
    assert (held["agency~cached2"]["stale"], held["agency~cached2"][None]) == (1, 0)
