"""Users who share a link, through the user's commands, on the simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from wirepaint import figures, metrics
from wirepaint.dataplane.description import FORMAT
from wirepaint.report import visits
from wirepaint.results import Results
from wirepaint.runners.description import client_address

WIREPAINT = Path(sys.executable).with_name("wirepaint")
EVALUATION = """
title = "Users of one cell"
backend = "simulator"
[scenarios]
congestion = ["cubic", "fld"]
[[scenarios.network]]
title = "cell"
up = { rate = "20 Mbit/s", delay = "20 ms" }
[scenarios.network.down]
rate = "20 Mbit/s"
delay = "20 ms"
queue.kind = "classes"
queue.classes = [{ dscp = [46], weight = 4, packets = 100 }, { weight = 1, packets = 100 }]
[[user_agents]]
name = "gold"
pages = ["agency", "kit"]
visits = 5
together = true
think = "1 s"
dscp = 46
[[user_agents]]
name = "bronze"
pages = ["agency"]
visits = 5
together = true
count = 4
[[flows]]
name = "download"
bulk = "endless"
"""


def wirepaint(*arguments: object) -> str:
    return subprocess.run(
        [WIREPAINT, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("users")
    (folder / "users.toml").write_text(EVALUATION)
    wirepaint("run", folder / "users.toml", "--no-rehearse", "-o", folder / "results")
    return folder / "results"


def test_each_user_has_its_visits_its_packets_and_its_service(results: Path) -> None:
    key = "cell-fld-h2.together.v01"
    trace = Results.open(results).trace
    page = trace(key, "page").sort("visit")
    names = ["gold", "gold", "bronze.1", "bronze.2", "bronze.3", "bronze.4"]
    assert page["user_agent"].to_list() == names
    gold = page.filter(pl.col("user_agent") == "gold").rows(named=True)
    assert 0 <= gold[1]["navigation_start"] - gold[0]["load_event"] - 1e9 < 50e6  # thinks for 1 s
    clients = trace(key, "client")
    assert clients["host"].to_list() == [*dict.fromkeys(names), "client"]
    assert clients["address"].to_list() == [client_address(number) for number in range(6)]
    assert clients["dscp"].to_list() == [46, None, None, None, None, None]
    # What clients received is what the link delivered, but for 14 bytes of a frame that IP does not count.
    link = trace(key, "link").filter(pl.col("direction") == "down").sort("time").row(-1, named=True)
    assert clients["received_packets"].sum() == link["delivered_packets"]
    assert clients["received_bytes"].sum() == link["delivered_bytes"] - 14 * link["delivered_packets"]


def test_the_table_has_a_row_for_each_user_agent_and_page_with_means_over_equal_users(results: Path) -> None:
    opened = Results.open(results)
    table = metrics.table(opened).filter(~pl.col("warmup"))
    of_users = table.filter(~pl.col("of_flows"))
    assert set(of_users.select("user_agent", "page").rows()) == {
        ("gold", "agency"),
        ("gold", "kit"),
        ("bronze", "agency"),
    }
    assert of_users.height == 2 * 5 * 3
    row = of_users.filter(pl.col("user_agent") == "bronze").row(0, named=True)
    page = opened.trace(row["run_key"], "page").filter(pl.col("user_agent").str.starts_with("bronze"))
    loads = (page["load_event"] - page["navigation_start"]) / 1e6
    assert row["page_load_time"] == pytest.approx(loads.mean())
    middle = of_users.group_by("user_agent").agg(pl.col("load_goodput").median()).sort("load_goodput")
    assert middle["user_agent"].to_list() == ["bronze", "gold"]  # four fifths of the link are gold's


def test_the_users_who_gain_and_those_who_pay_are_told(results: Path) -> None:
    told = json.loads(wirepaint("users", results, "--json"))["users"]
    assert [(row["user_agent"], row["users"], row["runs"], row["visits"]) for row in told] == 2 * [
        ("gold", 1, 5, 10),
        ("bronze", 4, 5, 20),
    ]
    assert all(0.02 < row["overhead"] < 0.1 for row in told)
    assert "bronze x 4" in wirepaint("users", results)
    compared = wirepaint("compare", results)
    [line] = [line for line in compared.splitlines() if line.startswith("fld in place of cubic")]
    for who in ("gold load time", "bronze load time", "flow download goodput"):
        assert who in compared[compared.index(line) :]


def test_the_report_shows_the_users_and_their_shares_over_time(results: Path, tmp_path: Path) -> None:
    page = wirepaint("report", results, "-o", tmp_path / "report.html")
    text = Path(page.strip()).read_text()
    assert 'id="users"' in text
    assert "Who gained, who paid." in text
    frame = figures.draw(figures.Evidence(Results.open(results)), "goodput-over-time")
    assert frame is not None
    of_classes = frame.frame.filter(pl.col("condition").str.contains("by class"))["flow"]
    assert set(of_classes) == {"DSCP 0", "DSCP 46"}
    assert {"gold", "bronze", "download"} <= set(frame.frame["flow"])
    # A second shows what the link carries, and a little that a browser read late.
    summed = frame.frame.group_by("condition", "time").agg(pl.col("value").sum())["value"]
    assert 10 < summed.max() <= 22  # type: ignore[operator]


def test_exports_keep_users_and_pages_apart(results: Path, tmp_path: Path) -> None:
    wirepaint("export", results, "--to", "csv", "-o", tmp_path)
    page = pl.read_csv(tmp_path / "page.csv").filter(~pl.col("of_flows"))
    opened = Results.open(results)
    table = metrics.table(opened, None).filter(~pl.col("of_flows"))
    assert page.height == table.height == table.unique(["run_key", "user_agent", "page"]).height
    # Instants are those of one visit: a user that has equals has none.
    none = page.group_by("user_agent").agg(pl.col("load_event").null_count() == pl.len()).rows()
    assert dict(none) == {"gold": False, "bronze": True}
    load = (pl.col("load_event") - pl.col("navigation_start")) / 1e6
    gold = page.filter(pl.col("user_agent") == "gold").select(load, "page_load_time").rows()
    assert [first for first, _ in gold] == pytest.approx([second for _, second in gold])
    objects = pl.read_csv(tmp_path / "object.csv", infer_schema_length=None)
    assert set(objects["user_agent"]) == {"gold", *(f"bronze.{number}" for number in range(1, 5))}


def test_values_inside_visits_are_those_of_their_user_and_page(results: Path) -> None:
    opened = Results.open(results)
    items = metrics.distribution("bytes-per-connection", opened)
    assert set(items.select("user_agent", "page").rows()) == {
        ("gold", "agency"),
        ("gold", "kit"),
        ("bronze", "agency"),
    }
    of_gold = items.filter(pl.col("user_agent") == "gold", pl.col("page") == "kit")
    key = str(of_gold["run_key"][0])
    page = opened.trace(key, "page").filter(pl.col("page") == "kit")["visit"][0]
    carried = opened.trace(key, "object").filter(pl.col("visit") == page)["encoded_bytes"].sum()
    assert of_gold.filter(pl.col("run_key") == key)["value"].sum() == carried


def test_the_waterfall_of_each_user_and_page_is_its_own(results: Path) -> None:
    opened = Results.open(results)
    chosen = visits.choose(metrics.table(opened, None), ("valid",), "page_load_time")
    medians = [choice for choice in chosen if choice.role == "median"]
    assert len(medians) == 2 * 3
    for choice in medians:
        shown = visits.visit(opened, choice)
        assert shown is not None
        assert str(choice.levels["page"]) in shown["url"] or choice.levels["page"] == "agency"
        requests = opened.trace(choice.run_key, "object").group_by("visit").len()
        page = opened.trace(choice.run_key, "page").filter(pl.col("url") == shown["url"])
        sizes = requests.join(page, on="visit")["len"].unique().to_list()
        assert [len(shown["objects"])] == sizes
        assert set(shown["tcp"]) <= {str(row["connection"]) for row in shown["connections"]}


def test_a_page_of_a_group_that_cannot_be_read_fails_its_runs_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "page.json").write_text('{"format": 1}')
    text = EVALUATION.replace('pages = ["agency"]', f'pages = ["{folder}"]')
    (tmp_path / "users.toml").write_text(text)
    command = [WIREPAINT, "run", tmp_path / "users.toml", "--no-rehearse", "-o", tmp_path / "r"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "page.json" in ended.stderr


def test_the_description_names_each_page_once(results: Path) -> None:
    run = json.loads((results / "runs" / "cell-fld-h2.together.v01" / "run.json").read_text())
    assert run["format"] == FORMAT
    assert sorted(run["pages"]) == ["agency", "kit"]
    assert [visit["page"] for visit in run["visits"]] == ["agency", "kit", *["agency"] * 4]


def test_a_user_alone_beside_flows_is_charged_its_own_packets_only(tmp_path: Path) -> None:
    text = EVALUATION.partition("[[user_agents]]")[0].replace('"cubic", "fld"', '"cubic"')
    flows = '[[flows]]\nname = "download"\nbulk = "endless"\n'
    alone = '[[user_agents]]\nname = "ann"\npages = ["agency"]\nvisits = 1\n'
    file = tmp_path / "alone.toml"
    file.write_text(text + alone + flows)
    wirepaint("run", file, "--no-rehearse", "-o", tmp_path / "results")
    [row] = json.loads(wirepaint("users", tmp_path / "results", "--json"))["users"]
    results = Results.open(tmp_path / "results")
    key = "cell-cubic-h2.ann.agency.v01"
    page = results.trace(key, "page").row(0, named=True)
    clients = {one["host"]: one for one in results.trace(key, "client").rows(named=True)}
    assert set(clients) == {"ann", "client"}
    assert page["encoded_bytes"] < row["received_bytes"] == clients["ann"]["received_bytes"]
    # Headers, TLS and segments sent again; the download beside it takes more than half of the link.
    assert row["received_bytes"] < 1.2 * page["encoded_bytes"] < clients["client"]["received_bytes"]
