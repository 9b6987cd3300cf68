"""Service classes: what each gets of a saturated link, and what an evaluation says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wirepaint import metrics
from wirepaint.errors import UsageError
from wirepaint.evaluation import network, plan
from wirepaint.evaluation.classes import rates
from wirepaint.results import Results
from wirepaint.runners import backends, pool
from wirepaint.runners.progress import Lines

EXAMPLE = Path(__file__).parents[3] / "examples/classes.toml"
NETWORK = """
title = "Classes"
[down]
rate = "10 Mbit/s"
queue = {{kind = "classes", classes = [{{dscp = [46], {first}}}, {{weight = 3}}]}}
[up]
rate = "10 Mbit/s"
"""


def written(folder: Path, first: str) -> network.Network:
    (folder / "classes.toml").write_text(NETWORK.format(first=first))
    return network.load(str(folder / "classes.toml"))


def test_what_a_ceiling_leaves_goes_to_the_level_and_then_to_the_next():
    capped = {"weight": 50, "ceiling_bit_per_s": 10}
    assert rates([{"weight": 50}, {"weight": 30}, {"weight": 20}], 100) == [50, 30, 20]
    assert rates([capped, {"weight": 30}, {"weight": 20}], 100) == pytest.approx([10, 54, 36])
    assert rates([capped, {"priority": 1}], 100) == [10, 90]
    assert rates([{"weight": 1}, {"priority": 1}], 100) == [100, 0]


def test_a_class_has_a_ceiling_and_a_discipline(tmp_path: Path):
    first = 'ceiling = "2 Mbit/s", queue = {kind = "codel", target = "3 ms"}'
    [voice, rest] = written(tmp_path, first).direction("down")["queue"]["classes"]
    assert (voice["ceiling_bit_per_s"], voice["queue"]["kind"], voice["queue"]["target_ns"]) == (
        2_000_000, "codel", 3_000_000,
    )  # fmt: skip
    assert "queue" not in rest and "ceiling_bit_per_s" not in rest
    with pytest.raises(UsageError, match="found both; accepted: packets and bytes, or a queue; not both"):
        written(tmp_path, 'packets = 5, queue = {kind = "pie"}')
    (tmp_path / "classes.toml").write_text(
        NETWORK.format(first='ceiling = "1 Mbit/s"').replace('rate = "10 Mbit/s"', "")
    )
    with pytest.raises(UsageError, match="a ceiling without a capacity"):
        network.load(str(tmp_path / "classes.toml"))


@pytest.mark.parametrize("ceiling", [None, "2 Mbit/s"])
def test_flows_in_classes_get_their_shares_on_the_simulator(tmp_path: Path, ceiling: str | None):
    text = (
        EXAMPLE.read_text()
        .replace('backend = "both"', 'backend = "simulator"')
        .replace("repeats = 3", "repeats = 1")
    )
    expected = {"gold": 50.0, "silver": 30.0, "bronze": 20.0}
    if ceiling:
        text = text.replace("weight = 20,", f'weight = 20, ceiling = "{ceiling}",')
        expected = {"gold": 56.25, "silver": 33.75, "bronze": 10.0}
    (tmp_path / "classes.toml").write_text(text)
    pool.carry_out(plan(tmp_path / "classes.toml"), tmp_path / "results", [backends.simulator()], Lines())
    table = metrics.table(Results.open(tmp_path / "results"))
    found = dict(table.select("page", "flow_share").iter_rows())
    assert found == pytest.approx(expected, abs=1.0), json.dumps(found)
