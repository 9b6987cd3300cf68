"""From an evaluation file to runs."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from wirepaint.errors import NotTrusted, UsageError
from wirepaint.evaluation import Plan, plan
from wirepaint.evaluation.model import EvaluationFile, json_schema
from wirepaint.evaluation.pages import PageRef
from wirepaint.reading import read_toml

PLAINEST = """\
title = "CUBIC or FLD?"
backend = "testbed"                     # or "simulator", "both"

[scenarios]
network = ["lte", "3g"]
congestion = ["cubic", "fld"]
http = ["h2"]

[[user_agents]]
pages = ["some-page", "path/to/imported-page"]
visits = 11
"""


def page(reference: str, base: Path, place: str) -> PageRef:
    return PageRef(name=Path(reference).name, folder=base / reference, sha256="0" * 64)


def planned(folder: Path, text: str = PLAINEST) -> Plan:
    file = folder / "evaluation.toml"
    file.write_text(text)
    return plan(file, page_resolver=page)


def test_the_plainest_form_works(tmp_path: Path):
    made = planned(tmp_path)
    counted = [run for run in made.runs if not run.warmup]
    assert len(counted) == 2 * 2 * 2 * 11
    assert len({run.key for run in made.runs}) == len(made.runs)
    assert {run.scenario for run in counted} == {"lte-cubic-h2", "lte-fld-h2", "3g-cubic-h2", "3g-fld-h2"}
    assert "3g-fld-h2.user.imported-page.v11" in {run.key for run in counted}


def test_a_page_has_its_own_view_port_where_the_evaluation_names_none(tmp_path: Path):
    def as_recorded(reference: str, base: Path, place: str) -> PageRef:
        screen = (412, 823) if reference == "some-page" else (1280, 800)
        return page(reference, base, place).model_copy(update={"viewport": screen})

    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST)
    assert {
        (run.page_name, run.visits[0].viewport) for run in plan(file, page_resolver=as_recorded).runs
    } == {
        ("some-page", (412, 823)),
        ("imported-page", (1280, 800)),
    }
    file.write_text(PLAINEST + "viewport = [800, 600]\n")
    assert {run.visits[0].viewport for run in plan(file, page_resolver=as_recorded).runs} == {(800, 600)}


def test_the_same_file_gives_the_same_runs_in_the_same_order(tmp_path: Path):
    assert list(planned(tmp_path).runs) == list(planned(tmp_path).runs)


def test_a_plan_has_some_bytes_for_each_run(tmp_path: Path):
    text = PLAINEST.replace("visits = 11", "visits = 10_000").replace(
        "title", 'results.keep = "metrics"\ntitle'
    )
    few = planned(tmp_path)
    tracemalloc.start()
    many = planned(tmp_path, text)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(many.runs) > 80_000 and held / len(many.runs) < 20
    assert many.runs[:12] == few.runs[:12]


def test_scenarios_share_what_is_the_same_in_them(tmp_path: Path):
    """A condition takes little memory, and a batch on workers has its user and page once."""
    seen: dict[tuple[str, str], set[int]] = {}
    runs = list(planned(tmp_path).runs)
    for run in runs:
        seen.setdefault((run.page_name, run.http), set()).add(id(run.visits))
        seen.setdefault((run.page_name, run.http), set()).add(id(run.users))
    assert len({run.scenario for run in runs}) > len({run.http for run in runs})
    assert {len(ids) for ids in seen.values()} == {2}


def test_another_seed_gives_another_order_and_other_seeds(tmp_path: Path):
    one, two = planned(tmp_path), planned(tmp_path, "seed = 2\n" + PLAINEST)
    assert [run.key for run in one.runs] != [run.key for run in two.runs]
    assert {run.key for run in one.runs} == {run.key for run in two.runs}
    assert not {run.seed for run in one.runs} & {run.seed for run in two.runs}


def test_each_round_of_visits_is_a_random_permutation_of_all_conditions(tmp_path: Path):
    counted = [run for run in planned(tmp_path).runs if not run.warmup]
    rounds = [counted[start : start + 8] for start in range(0, 88, 8)]
    orders = set()
    for number, members in enumerate(rounds, 1):
        assert {run.visit for run in members} == {number}
        assert len({(run.scenario, run.page_name) for run in members}) == 8
        orders.add(tuple((run.scenario, run.page_name) for run in members))
    assert len(orders) == 11


def test_sequential_order_finishes_one_scenario_after_the_other(tmp_path: Path):
    runs = planned(tmp_path, 'order = "sequential"\n' + PLAINEST).runs
    scenarios = [run.scenario for run in runs if not run.warmup]
    assert scenarios == sorted(
        scenarios, key=["lte-cubic-h2", "lte-fld-h2", "3g-cubic-h2", "3g-fld-h2"].index
    )


def test_compared_transports_meet_the_same_seed_and_other_visits_another(tmp_path: Path):
    runs = planned(tmp_path).runs
    seeds = {(run.network.name, run.page_name, run.visit): run.seed for run in runs}
    assert all(run.seed == seeds[run.network.name, run.page_name, run.visit] for run in runs)
    assert len(set(seeds.values())) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds.values())


def test_warm_up_loads_every_scenario_and_every_page_before_the_first_counted_visit(tmp_path: Path):
    runs = planned(tmp_path).runs
    warm = [run for run in runs if run.warmup]
    assert runs[: len(warm)] == warm
    assert len(warm) == 4
    assert {run.visit for run in warm} == {0}
    assert len({run.scenario for run in warm}) == 4
    assert {run.page_name for run in warm} == {"some-page", "imported-page"}


def test_without_warm_up_there_is_no_visit_0(tmp_path: Path):
    assert all(run.visit > 0 for run in planned(tmp_path, "warmup = false\n" + PLAINEST).runs)


def test_all_hosts_are_one_server_where_the_evaluation_says_so(tmp_path: Path):
    assert {run.servers for run in planned(tmp_path).runs} == {"apart"}
    made = planned(tmp_path, PLAINEST.replace("[scenarios]", '[scenarios]\nservers = "together"'))
    assert {run.servers for run in made.runs} == {"together"}
    assert "lte-fld-h2-together" in {run.scenario for run in made.runs}
    assert made.resolved["scenarios"]["lte-fld-h2-together"]["servers"] == "together"
    with pytest.raises(
        UsageError, match=r"scenarios.servers: found \"one\"; accepted: 'apart' or 'together'"
    ):
        planned(tmp_path, PLAINEST.replace("[scenarios]", '[scenarios]\nservers = "one"'))


def test_all_axes_and_forms_of_a_value(tmp_path: Path):
    (tmp_path / "own.toml").write_text('title = "Own"\n[down]\nrate = "1 Mbit/s"\n[up]\n')
    text = """
title = "All axes"
seed = 7
timeout = "30 s"
packet_trace = true
sysctls = {"net.ipv4.tcp_sack" = 1}
[scenarios]
network = ["lte", "own.toml", {title = "My DSL", down = {rate = "5 Mbit/s", delay = "20 ms"}, up = {}}]
congestion = ["bbr", {name = "fld", fld_threshold = 2097152},
  {name = "fld", title = "fld-late", fld_threshold = 3},
  {name = "cubic", title = "cubic-no-restart", sysctls = {"net.ipv4.tcp_slow_start_after_idle" = 0}}]
initial_window = [10, 30]
http = ["h1", "h2"]
proxy = ["none"]
[[user_agents]]
name = "phone"
pages = ["some-page"]
visits = 2
viewport = [412, 823]
[[user_agents]]
pages = ["some-page"]
visits = 1
"""
    made = planned(tmp_path, text)
    assert Counter(run.visit for run in made.runs) == {0: 48, 1: 96, 2: 48}
    runs = {run.key: run for run in made.runs}
    run = runs["my-dsl-fld-fld_threshold-2097152-h1-iw30.phone.some-page.v01"]
    assert run.congestion.parameters == {"fld_threshold": 2097152}
    assert run.congestion.own
    assert run.network.direction("down")["capacity"] == {"kind": "rate", "bit_per_s": 5_000_000}
    assert (run.initial_window, run.http, run.visits[0].viewport, run.timeout_s) == (
        30,
        "h1",
        (412, 823),
        30.0,
    )
    assert run.packet_trace
    other = runs["own-cubic-no-restart-h2-iw10.user2.some-page.v01"]
    assert other.sysctls == {"net.ipv4.tcp_sack": "1", "net.ipv4.tcp_slow_start_after_idle": "0"}
    assert other.congestion.name == "cubic"
    assert not other.congestion.own


def test_an_algorithm_brings_the_sysctl_that_its_source_names(tmp_path: Path):
    made = planned(tmp_path, PLAINEST.replace('"cubic", "fld"', '"fld", "std"'))
    named = {run.congestion.name: run.sysctls for run in made.runs}
    assert named == {"fld": {}, "std": {"net.ipv4.tcp_slow_start_after_idle": "0"}}


def test_a_network_file_has_its_errors_at_its_own_place(tmp_path: Path):
    (tmp_path / "own.toml").write_text('title = "Own"\n[down]\nrate = "1 Mb"\n[up]\n')
    with pytest.raises(UsageError, match=r'own\.toml: down\.rate: found "1 Mb"; accepted: a rate such as'):
        planned(tmp_path, PLAINEST.replace('"lte"', '"./own.toml"'))


def test_the_backend_of_the_command_line_replaces_that_of_the_file(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST)
    made = plan(file, backend="simulator", page_resolver=page)
    assert {run.backend for run in made.runs} == {made.resolved["backend"]} == {"simulator"}
    assert "lte-fld-h2.user.imported-page.v11" in {run.key for run in made.runs}
    refusal = r'^--backend: found "paper"; accepted: one of testbed, simulator, both$'
    with pytest.raises(UsageError, match=refusal):
        plan(file, backend="paper", page_resolver=page)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        (["nope"], '--congestion: found "nope"; accepted: one of'),
        ([""], '--congestion: found ""; accepted: one of'),
        (["reno", "cubic", "reno"], '--congestion: found a second "reno"; accepted: names that differ'),
        (["~nouser/mine.c"], '--congestion: found "~nouser/mine.c"; accepted: a path that begins with'),
        (["./nowhere.c"], "--congestion: "),
    ],
)
def test_what_the_command_line_asks_for_is_refused_at_its_option(
    tmp_path: Path, asked: list[str], refusal: str
):
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST)
    with pytest.raises(UsageError) as refused:
        plan(file, page_resolver=page, congestion=asked)
    assert str(refused.value).startswith(refusal)


def test_the_congestion_of_the_command_line_replaces_that_of_the_file(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST.replace('"fld"', '"of another machine"'))
    made = plan(file, page_resolver=page, congestion=["reno"])
    assert {run.congestion.label for run in made.runs} == {"reno"}


def test_networks_whose_names_differ_only_in_case_are_refused(tmp_path: Path):
    (tmp_path / "LTE.toml").write_text('title = "Own"\n[down]\nrate = "1 Mbit/s"\n[up]\n')
    with pytest.raises(UsageError, match=r'scenarios\.network\[1\]: found a second "lte"; accepted: names'):
        planned(tmp_path, PLAINEST.replace('"3g"', '"./LTE.toml"'))


def test_values_that_join_to_one_scenario_name_are_refused(tmp_path: Path):
    (tmp_path / "lte-fld.toml").write_text('title = "Own"\n[down]\n[up]\n')
    text = PLAINEST.replace('"3g"', '"./lte-fld.toml"').replace(
        '"fld"]', '{name = "fld", title = "fld-cubic"}]'
    )
    with pytest.raises(UsageError, match=r'scenarios: found a second "lte-fld-cubic-h2"; accepted: names'):
        planned(tmp_path, text)


def test_a_network_file_that_leaves_no_name_is_refused(tmp_path: Path):
    (tmp_path / "北京.toml").write_text('title = "Own"\n[down]\nrate = "1 Mbit/s"\n[up]\n')
    with pytest.raises(UsageError, match=r'scenarios\.network\[1\]: found "北京"; accepted: a name with'):
        planned(tmp_path, PLAINEST.replace('"3g"', '"./北京.toml"'))


@pytest.mark.parametrize(
    ("backend", "setting", "refusal"),
    [
        ("testbed", '"net.ipv4.tcp_sakc" = 1', r'sysctls: found .*_sakc"; .*mean "net\.ipv4\.tcp_sack"'),
        ("testbed", '"net.ipv4.conf" = 1', r'sysctls: found "net\.ipv4\.conf"; accepted: a setting'),
        ("testbed", '"net.ipv4.tcp_available_ulp" = "tls"', r'sysctls: found .*_ulp"; accepted: a setting'),
        ("simulator", '"net.ipv4.tcp_sakc" = 1', r'sysctls: found .*_sakc"; .*mean "net\.ipv4\.tcp_sack"'),
        ("simulator", '"net.ipv4.tcp_ecn" = 9', r'sysctls\.net\.ipv4\.tcp_ecn: found "9"; accepted: '),
        ("both", '"net.ipv4.tcp_dsack" = 0', r'sysctls: found .*_dsack"; accepted: for the simulator one of'),
    ],
)
def test_a_kernel_setting_that_a_back_end_does_not_have_is_refused(
    tmp_path: Path, backend: str, setting: str, refusal: str
):
    text = PLAINEST.replace('"testbed"', f'"{backend}"')
    with pytest.raises(UsageError, match=f"toml: {refusal}"):
        planned(tmp_path, f"sysctls = {{{setting}}}\n{text}")
    of_value = text.replace('"cubic"', f'{{name = "cubic", sysctls = {{{setting}}}}}')
    with pytest.raises(UsageError, match=rf"toml: scenarios\.congestion\[0\]\.{refusal}"):
        planned(tmp_path, of_value)


def test_kernel_settings_that_the_back_ends_have_are_taken(tmp_path: Path):
    text = PLAINEST.replace('"testbed"', '"both"')
    text = 'sysctls = {"net.ipv4.tcp_sack" = 0, "net.ipv4.tcp_rmem" = "4096\\t131072  6291456"}\n' + text
    assert len(planned(tmp_path, text).runs) > 0


def test_a_page_in_the_home_of_nobody_is_refused(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST.replace('"some-page", "path/to/imported-page"', '"~nouser/a.har"'))
    with pytest.raises(UsageError, match=r'user_agents\[0\]\.pages\[0\]: found "~nouser/a\.har"; accepted'):
        plan(file)


def test_both_back_ends_make_twice_the_runs_with_keys_of_their_own_and_equal_seeds(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST)
    made = plan(file, backend="both", page_resolver=page)
    runs = {run.key: run for run in made.runs if not run.warmup}
    assert len(runs) == 2 * 2 * 2 * 2 * 11 and made.resolved["backend"] == "both"
    real = runs["lte-fld-h2-testbed.user.some-page.v01"]
    simulated = runs["lte-fld-h2-simulator.user.some-page.v01"]
    assert (real.backend, simulated.backend) == ("testbed", "simulator")
    assert real.seed == simulated.seed


def test_without_a_back_end_root_gets_the_testbed_and_others_the_simulator(tmp_path: Path, monkeypatch):
    text = PLAINEST.replace('backend = "testbed"', "#")
    for uid, expected in ((0, "testbed"), (1000, "simulator")):
        monkeypatch.setattr("os.geteuid", lambda uid=uid: uid)
        assert planned(tmp_path, text).resolved["backend"] == expected


def test_what_only_the_simulator_can_do_is_refused_for_the_testbed(tmp_path: Path):
    text = PLAINEST.replace('["cubic", "fld"]', '[{name = "tcbt", tcb_share_rtt = 1}]')
    said = r"congestion\[0\]\.tcb_share_rtt: found 1 for the testbed; accepted: 0, or backend = \"simulator\""
    with pytest.raises(UsageError, match=said):
        planned(tmp_path, text)
    assert planned(tmp_path, text.replace('"testbed"', '"simulator"')).runs


def test_what_the_simulator_does_not_have_is_refused_with_what_it_has(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("wirepaint.evaluation.congestion.of_kernel", lambda: ("cubic", "reno", "illinois"))
    text = PLAINEST.replace('"cubic", "fld"', '"cubic", "illinois"')
    assert len(planned(tmp_path, text).runs) > 0
    refusal = r'congestion\[1\]: found "illinois"; accepted: for the simulator'
    for backend in ("simulator", "both"):
        with pytest.raises(UsageError, match=refusal):
            planned(tmp_path, text.replace('"testbed"', f'"{backend}"'))


def test_the_published_schema_accepts_what_the_model_accepts(tmp_path: Path):
    schema = json.loads(json_schema())
    file = tmp_path / "evaluation.toml"
    file.write_text(PLAINEST)
    data = read_toml(file)
    jsonschema.validate(data, schema)
    EvaluationFile.model_validate(data)
    data["scenarios"]["network"] = [{"title": "x", "down": {"rate": "1 furlong"}, "up": {}}]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_the_examples_of_the_guide_are_good(tmp_path: Path):
    guide = (Path(__file__).parents[3] / "docs/guide/evaluation.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```", guide, re.S | re.M)
    plainest, caches, users, flows, tools, busy, capture, stop, primary, until, kept, network, train = blocks
    assert len(planned(tmp_path, flows.replace('"both"', '"simulator"')).runs[0].flows) == 21
    assert {run.visits[0].cache for run in planned(tmp_path, caches).runs} == {"cold", "warm"}
    assert len(planned(tmp_path, users).runs[0].users) == 11
    assert [flow.tool for flow in planned(tmp_path, tools).runs[0].flows] == ["iperf3", "wirepaint"]
    assert "[[background]]" in busy  # carried out by python/tests/test_background.py
    (tmp_path / "deep.toml").write_text(network)
    (tmp_path / "train.toml").write_text(train)
    both = plainest.replace('"3g"', '"./deep.toml", "./train.toml"') + capture + stop
    made = planned(tmp_path, both)
    assert made.stop is not None and made.resolved["capture"] is not None
    assert {run.network.name for run in made.runs} == {"lte", "deep", "train"}
    assert planned(tmp_path, primary + plainest + until).looks
    assert planned(tmp_path, plainest + kept).keep == "metrics"


def test_the_published_schema_is_current():
    from wirepaint import schemas

    committed = (schemas.FOLDER / schemas.FILES["evaluation"]).read_text()
    assert committed == json_schema(), "run `make schema`"


def own_code(folder: Path) -> str:
    from wirepaint.cc import new

    for name in ("mine", "yours"):
        new.write(name, folder)
    named = '["cubic", "./mine.c", {name = "yours.c", yours_keep = 70}, {name = "./mine.c", mine_keep = 70}]'
    return PLAINEST.replace('["cubic", "fld"]', named)


def test_c_files_that_an_evaluation_names_are_run_once_somebody_agrees(tmp_path: Path):
    asked: list[Path] = []
    file = tmp_path / "evaluation.toml"
    file.write_text(own_code(tmp_path))
    made = plan(file, page_resolver=page, trust=lambda named: asked.extend(named) or True)
    assert asked == [tmp_path / "mine.c", tmp_path / "yours.c"]
    assert {run.congestion.label for run in made.runs} == {
        "cubic",
        "mine",
        "yours-yours_keep-70",
        "mine-mine_keep-70",
    }


@pytest.mark.parametrize("trust", [None, lambda _: False], ids=["nobody is asked", "somebody says no"])
def test_without_that_they_are_not_even_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust):
    file = tmp_path / "evaluation.toml"
    file.write_text(own_code(tmp_path))
    monkeypatch.setattr("wirepaint.dataplane.call", lambda *_: pytest.fail("it is compiled"))
    with pytest.raises(NotTrusted) as refused:
        plan(file, page_resolver=page, trust=trust)
    assert str(refused.value).startswith(
        f'{file}: scenarios.congestion[1]: found "./mine.c", "yours.c"; accepted: C files'
    )


def test_a_c_file_of_the_command_line_is_trusted_and_replaces_those_of_the_file(tmp_path: Path):
    file = tmp_path / "evaluation.toml"
    file.write_text(own_code(tmp_path))
    made = plan(file, page_resolver=page, congestion=[str(tmp_path / "mine.c")])
    assert {run.congestion.label for run in made.runs} == {"mine"}


def test_what_an_import_left_out_is_said_by_the_evaluation_that_imports(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<title>x</title><img src=gone.png><p>x")
    file = tmp_path / "evaluation.toml"
    file.write_text(
        'title = "x"\nbackend = "simulator"\n[scenarios]\nnetwork = ["lte"]\n'
        '[[user_agents]]\npages = ["site"]\n'
    )
    note = "1 reference to what the folder does not hold blanked: https://site.example/gone.png"
    for _ in range(2):
        [said, *_] = plan(file).notes
        assert said.startswith("site, imported: 1 request; ") and said.endswith(note)
