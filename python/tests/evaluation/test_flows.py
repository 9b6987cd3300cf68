"""Flows of an evaluation: what a user writes, and the flows of the runs."""

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion, plan

ALONE = """
title = "Flows"
backend = "simulator"
warmup = false
duration = "10 s"
[scenarios]
network = ["lte"]
congestion = ["cubic", "fld"]
"""


def planned(folder: Path, flows: str, head: str = ALONE):
    file = folder / "evaluation.toml"
    file.write_text(head + flows)
    return plan(file)


def test_a_run_of_flows_alone_is_named_after_them_and_repeated(tmp_path: Path):
    found = planned(tmp_path, '[[flows]]\nname = "a"\nbulk = "endless"\n')
    assert len(found.runs) == 2 * 8
    run = next(run for run in found.runs if run.visit == 1 and run.congestion.name == "fld")
    assert (run.key, run.visits, run.timeout_s) == ("lte-fld.flows.v01", (), 10)
    [flow] = run.flows
    assert (flow.name, flow.sender, flow.kind, flow.endless) == (
        "a",
        "server",
        {"kind": "bulk", "bytes": None},
        True,
    )


def test_equal_flows_are_numbered_and_wait_for_others_or_for_each_other(tmp_path: Path):
    text = """
[[flows]]
name = "first"
count = 2
bulk = "1 MB"
direction = "up"
[[flows]]
name = "second"
count = 2
bulk = "2 s"
after = "first"
start = "1 s"
[[flows]]
name = "third"
count = 3
exchange = { request = "100 B", response = "5 kB", count = 2 }
in_turn = true
after = "second"
"""
    with pytest.raises(UsageError, match=r"flows\[2\].after: found second, with count 2"):
        planned(tmp_path, text)
    flows = (
        planned(tmp_path, text.replace('in_turn = true\nafter = "second"', "in_turn = true")).runs[0].flows
    )
    assert [(flow.name, flow.after) for flow in flows] == [
        ("first.1", None), ("first.2", None), ("second.1", "first.1"), ("second.2", "first.2"),
        ("third.1", None), ("third.2", "third.1"), ("third.3", "third.2"),
    ]  # fmt: skip
    assert (flows[0].sender, flows[0].kind["bytes"]) == ("client", 1_000_000)
    assert (flows[2].start_ns, flows[2].stop_ns) == (10**9, 3 * 10**9)


def test_rates_count_from_the_start_and_the_last_one_decides_whether_there_is_an_end(tmp_path: Path):
    text = """
[[flows]]
name = "bursts"
start = "2 s"
write = "1 kB"
rate = [
  { rate = "512 kbit/s" }, { at = "1 s", rate = "0" },
  { at = "3 s", rate = "1 Mbit/s" }, { at = "4 s", rate = "0" },
]
"""
    [flow] = planned(tmp_path, text, ALONE.replace('duration = "10 s"', "")).runs[0].flows
    assert flow.kind["rates"] == [
        {"at_ns": 2 * 10**9, "bit_per_s": 512_000}, {"at_ns": 3 * 10**9, "bit_per_s": 0},
        {"at_ns": 5 * 10**9, "bit_per_s": 10**6}, {"at_ns": 6 * 10**9, "bit_per_s": 0},
    ]  # fmt: skip
    assert not flow.endless


FAULTS = {
    '[[flows]]\nname = "a"\n': "flows[0]: found none in flow a; accepted: one of bulk, rate, exchange",
    '[[flows]]\nname = "a"\nbulk = "1 MB"\nrate = "1 Mbit/s"\n':
        "flows[0]: found bulk, rate in flow a; accepted: one of bulk, rate, exchange",
    '[[flows]]\nname = "a"\nbulk = "1 parsec"\n':
        'flows[0].bulk: found "1 parsec"; accepted: a size such as "10 MB"',
    '[[flows]]\nname = "A b"\nbulk = "1 MB"\n':
        'flows[0].name: found "A b"; accepted: 1 to 32 characters of a-z, 0-9, _ and -',
    '[[flows]]\nname = "a"\nbulk = "1 MB"\nafter = "b"\n':
        'flows[0].after: found "b"; accepted: the name of a flow above it',
    '[[flows]]\nname = "a"\nbulk = "1 MB"\n[[flows]]\nname = "a"\nbulk = "1 MB"\n':
        'flows[1].name: found a second "a"; accepted: names that differ',
    '[[flows]]\nname = "a"\nbulk = "1 MB"\ncongestion = "cubick"\n':
        'flows[0].congestion: found "cubick"; accepted: for the simulator one of',
    '[[flows]]\nname = "a"\nbulk = "3 s"\nstop = "2 s"\n':
        "flows[0].stop: found 2000000000; accepted: a time after start, and no bulk that lasts for a time",
    '[[flows]]\nname = "a"\nbulk = "1 MB"\ntool = "iperf3"\n':
        'flows[0].tool: found "iperf3"; accepted: no such key, or backend = "testbed"',
    '[[flows]]\nname = "a"\ntool = "iperf3"\nexchange = { request = "1 B", response = "1 B" }\n':
        'flows[0].exchange: found exchange in flow a; accepted: bulk or one rate with tool = "iperf3"',
    '[[flows]]\nname = "a"\ntool = "iperf3"\nrate = [{ rate = "1 Mbit/s" }]\n':
        'flows[0].rate: found rate in flow a; accepted: bulk or one rate with tool = "iperf3"',
    '[[flows]]\nname = "a"\ntool = "iperf3"\nbulk = "1 MB"\ndirection = "up"\n':
        'flows[0].bulk: found "1 MB"; accepted: a time with tool = "iperf3" and direction = "up"',
    '[[flows]]\nname = "a"\ntool = "iperf3"\nbulk = "1500 ms"\n':
        'flows[0].bulk: found "1500 ms"; accepted: whole seconds from the start with tool = "iperf3"',
    "": "user_agents: found neither; accepted: a table [[user_agents]] or [[flows]]",
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_is_one_sentence(text: str, tmp_path: Path):
    with pytest.raises(UsageError) as refused:
        planned(tmp_path, text)
    assert f"evaluation.toml: {FAULTS[text]}" in str(refused.value)


def test_iperf3_carries_flows_of_the_testbed_and_waits_for_no_flow_of_another_tool(tmp_path: Path):
    head = ALONE.replace('"simulator"', '"testbed"').replace(', "fld"', "")
    text = '[[flows]]\nname = "a"\nbulk = "1 MB"\n[[flows]]\nname = "b"\nbulk = "2 s"\ntool = "iperf3"\n'
    planned_flows = planned(tmp_path, text, head).runs[0].flows
    assert [flow.tool for flow in planned_flows] == ["wirepaint", "iperf3"]
    with pytest.raises(UsageError, match=r"flows\[1\].after: found a, a flow of wirepaint; accepted: a flow"):
        planned(tmp_path, text + 'after = "a"\n', head)
    with pytest.raises(UsageError, match="flows: found 101 of iperf3; accepted: at most 100 in a run"):
        planned(tmp_path, text + "count = 101\n", head)


def test_keys_of_flows_alone_and_of_visits_do_not_mix(tmp_path: Path):
    endless = '[[flows]]\nname = "a"\nbulk = "endless"\n'
    with pytest.raises(
        UsageError, match=r"flows\[0\]: found a flow without end; accepted: an amount, stop, or"
    ):
        planned(tmp_path, endless, ALONE.replace('duration = "10 s"', ""))
    with pytest.raises(UsageError, match=r"scenarios.http: .*no such key without user_agents"):
        planned(tmp_path, endless, ALONE + 'http = ["h1"]\n')
    with pytest.raises(UsageError, match=r"duration: .*no such key beside user_agents"):
        planned(tmp_path, endless + '[[user_agents]]\npages = ["x"]\n')


def test_a_flow_whose_control_needs_a_kernel_setting_must_find_it_in_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    idle = {"net.ipv4.tcp_slow_start_after_idle": 0}
    monkeypatch.setattr(congestion, "needs", lambda name: idle if name == "std" else {})
    flow = '[[flows]]\nname = "a"\nbulk = "1 MB"\ncongestion = "std"\n'
    with pytest.raises(
        UsageError,
        match=r"flow a: congestion: found std, which needs net\.ipv4\.tcp_slow_start_after_idle = 0",
    ):
        planned(tmp_path, flow)
    set_for_all = ALONE.replace(
        "[scenarios]", 'sysctls = { "net.ipv4.tcp_slow_start_after_idle" = 0 }\n[scenarios]'
    )
    assert planned(tmp_path, flow, set_for_all).runs[0].sysctls == {k: str(v) for k, v in idle.items()}
