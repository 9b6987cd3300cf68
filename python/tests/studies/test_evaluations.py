"""A study whose runs are evaluations: what becomes of its points, and of its runs."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from wirepaint.errors import MachineLacks
from wirepaint.evaluation import plan
from wirepaint.runners.testbed import at_once
from wirepaint.studies import evaluations, http_ae_2011, model, photo_pages
from wirepaint.studies.evaluations import Conditions, in_toml

NAME, STUDY = model.load("http-ae-2011")
DEFAULTS = STUDY.chosen({})


def test_an_evaluation_file_holds_what_was_written() -> None:
    document = {
        "title": 'a "title"',
        "warmup": False,
        "scenarios": {"network": [{"title": "n", "down": {"rate": "1 Mbit/s"}}], "initial_window": [3]},
        "user_agents": [{"name": "a", "pages": ["../x"]}, {"name": "b", "pages": []}],
        "sysctls": {"net.ipv4.tcp_sack": 0},
    }
    assert tomllib.loads(in_toml(document)) == document


@pytest.mark.parametrize("sweep", STUDY.sweeps)
def test_the_points_of_a_sweep_are_the_runs_of_its_evaluation(sweep: str, tmp_path: Path) -> None:
    http_ae_2011.prepare(STUDY, DEFAULTS, tmp_path)
    path = tmp_path / "evaluations" / "e.toml"
    path.parent.mkdir()
    path.write_text(in_toml(evaluations.evaluation(STUDY, DEFAULTS, sweep, True, "simulator")))
    runs = plan(path).runs
    points = STUDY.sweeps[sweep].points()
    assert len(runs) == len(points) * STUDY.quick_seeds
    asked = {http_ae_2011.conditions(STUDY, DEFAULTS, point).key for point in points}
    made = {
        (run.network.name, run.congestion.label, run.http, run.proxy.name, run.user_agent, run.page_name)
        for run in runs
    }
    assert made == asked
    assert len(asked) == len(points)


def test_no_run_of_the_testbed_has_more_browsers_than_the_smallest_machine_bears(tmp_path: Path) -> None:
    http_ae_2011.prepare(STUDY, DEFAULTS, tmp_path)
    path = tmp_path / "evaluations" / "e.toml"
    path.parent.mkdir()
    for sweep in STUDY.sweeps:
        path.write_text(in_toml(evaluations.evaluation(STUDY, DEFAULTS, sweep, True, "testbed")))
        assert max(map(at_once.loading, plan(path).runs)) <= 1, sweep


def test_too_many_browsers_are_refused_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = http_ae_2011.conditions

    def with_browsers(*asked: Any) -> Conditions:
        found = conditions(*asked)
        agents = [{key: agent[key] for key in agent if key != "browser"} for agent in found.agents]
        return replace(found, agents=agents)

    monkeypatch.setattr(http_ae_2011, "conditions", with_browsers)
    sweep = model.Sweep(measure="users", fixed={"rate_kbit_s": 256}, over={"users": [100]})
    small = STUDY.model_copy(update={"sweeps": {"crowd": sweep}})
    with pytest.raises(MachineLacks, match="100 browsers would load pages at once"):
        evaluations.carry_out(small, DEFAULTS, tmp_path, "testbed", False, lambda done, total: None)
    assert not (tmp_path / "runs").exists()


def test_a_group_of_users_is_one_run() -> None:
    agent = {"name": "u", "pages": ["../pages/p"], "together": "both"}
    one = Conditions({"title": "n"}, [agent, agent | {"name": "v"}], "cubic")
    assert one.key == ("n", "cubic", "h1", "none", "both", "both")
    assert Conditions({"title": "n"}, [{"name": "u", "pages": ["../pages/p"]}], "cubic").key[-2:] == (
        "u",
        "p",
    )


def test_what_a_series_saves_is_counted_beside_another_at_the_same_point() -> None:
    sweep = model.Sweep(measure="load", series="c", over={"c": [1, 8], "x": [10, 20]}, against="1")
    loads = {(1, 10): 4.0, (8, 10): 3.0, (1, 20): 10.0, (8, 20): 11.0}
    frame = pl.DataFrame(
        [{"series": str(c), "c": c, "x": x, "seed": 1, "load_s": load} for (c, x), load in loads.items()]
    )
    saved = evaluations._with_savings(frame, sweep)
    assert saved.filter(series="8").sort("x")["beside_s"].to_list() == [4.0, 10.0]
    assert dict(saved.select(pl.concat_str("series", "x", separator="@"), "saved_percent").iter_rows()) == (
        pytest.approx({"1@10": 0.0, "8@10": 25.0, "1@20": 0.0, "8@20": -10.0})
    )


def test_only_valid_runs_that_are_done_count() -> None:
    found = [
        ("p", 3, "done", "valid"),
        ("p", 1, "done", "valid"),
        ("p", 2, "done", "suspect"),
        ("q", 1, "failed", None),
    ]
    conditions = {"network": "n", "congestion": "cubic", "http": "h1", "proxy": "none", "user_agent": "u"}
    runs = pl.DataFrame(
        [
            conditions
            | {"run_key": f"{page}.{visit}", "page": page, "visit": visit, "state": state, "verdict": verdict}
            for page, visit, state, verdict in found
        ]
    )
    p, q = ((*conditions.values(), page) for page in "pq")
    assert evaluations.counting(runs, [p, q]) == {p: {1: "p.1", 3: "p.3"}, q: {}}


def test_photos_have_ten_kilobytes_in_the_mean_on_small_pages_too() -> None:
    sizes = photo_pages.sizes()
    assert sum(sizes) == 30 * 10_000
    assert all(abs(sum(sizes[:n]) / n - 10_000) < 1_700 for n in range(1, 31))
    assert min(sizes) < 5_000 and max(sizes) > 18_000


def test_a_page_of_photos_holds_its_text_and_names_each_photo_once(tmp_path: Path) -> None:
    page = photo_pages.make(12, 5_000, tmp_path / "photos-12")
    html = next((tmp_path / "photos-12" / "bodies").iterdir()).read_text()
    assert page.resources[0].header("content-encoding") is None
    assert [html.count(f'src="photo-{number:02}.jpg"') for number in range(1, 13)] == [1] * 12
    assert 5_000 < len(html) < 6_500
    assert photo_pages.make(12, 5_000, tmp_path / "photos-12") == page, "the same again"
