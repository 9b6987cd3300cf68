"""A network resolves to what the data plane reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import jsonschema
import pytest

from wirepaint import catalogue
from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion, Flow, Run, one_path
from wirepaint.errors import UsageError
from wirepaint.evaluation import network
from wirepaint.evaluation.network import Network
from wirepaint.schemas import FOLDER

_RUN = json.loads((FOLDER / "run.schema.json").read_text())
_DIRECTION = _RUN["$defs"]["Direction"] | {"$defs": _RUN["$defs"]}


def resolved(folder: Path, down: str, up: str = "") -> Network:
    file = folder / "path.toml"
    file.write_text(f'title = "A path"\n[down]\n{down}\n[up]\n{up}\n')
    loaded = network.load("./path.toml", folder)
    for side in ("down", "up"):
        jsonschema.validate(loaded.direction(side), _DIRECTION)
    return loaded


def test_a_plain_network(tmp_path: Path):
    path = resolved(tmp_path, 'rate = "25 Mbit/s"\ndelay = "13 ms"', 'delay = "13 ms"')
    assert path.direction("down") == {
        "capacity": {"kind": "rate", "bit_per_s": 25_000_000},
        "delay_ns": 13_000_000,
        "jitter": {"kind": "none"},
        "loss": {"kind": "none"},
        "queue": {"kind": "droptail", "bytes": 81_250},
        "changes": [],
        "overhead_bytes": 14,
    }
    assert path.direction("up")["capacity"] == {"kind": "unlimited"}
    assert path.direction("up")["queue"] == {"kind": "droptail"}
    assert (path.name, path.rtt_ns, path.rate("down"), path.rate("up")) == ("path", 26_000_000, 25e6, None)


def test_the_default_queue_is_one_bdp_of_the_path_but_at_least_50_packets(tmp_path: Path):
    fast = resolved(tmp_path, 'rate = "100 Mbit/s"\ndelay = "100 ms"', 'delay = "100 ms"')
    assert fast.direction("down")["queue"]["bytes"] == 2_500_000
    slow = resolved(tmp_path, 'rate = "1 Mbit/s"\ndelay = "10 ms"', 'delay = "10 ms"')
    assert slow.direction("down")["queue"]["bytes"] == 50 * 1514


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{kind = "droptail", packets = 100}', {"kind": "droptail", "packets": 100}),
        ('{kind = "droptail", bytes = "64 kB"}', {"kind": "droptail", "bytes": 64_000}),
        ('{kind = "droptail", bdp = 0.5}', {"kind": "droptail", "bytes": 125_000}),
        (
            '{kind = "codel"}',
            {
                "kind": "codel",
                "target_ns": 5_000_000,
                "interval_ns": 100_000_000,
                "packets": 1000,
                "ecn": False,
            },
        ),
        (
            '{kind = "fq_codel", flows = 16, ecn = true}',
            {
                "kind": "fq_codel",
                "flows": 16,
                "quantum": 1514,
                "target_ns": 5_000_000,
                "interval_ns": 100_000_000,
                "packets": 10_240,
                "ecn": True,
            },
        ),
        (
            '{kind = "pie", target = "20 ms"}',
            {"kind": "pie", "target_ns": 20_000_000, "update_ns": 15_000_000, "packets": 1000, "ecn": False},
        ),
        (
            '{kind = "classes", classes = [{dscp = [46], packets = 50}, {priority = 1, bytes = "64 kB"}]}',
            {
                "kind": "classes",
                "classes": [
                    {"dscp": [46], "priority": 0, "weight": 1, "packets": 50},
                    {"dscp": [], "priority": 1, "weight": 1, "bytes": 64_000},
                ],
            },
        ),
    ],
)
def test_queues(tmp_path: Path, written: str, read: dict):
    path = resolved(tmp_path, f'rate = "20 Mbit/s"\ndelay = "50 ms"\nqueue = {written}', 'delay = "50 ms"')
    assert path.direction("down")["queue"] == read


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        (
            "jitter",
            '{kind = "uniform", range = "2 ms"}',
            {"kind": "uniform", "range_ns": 2_000_000, "reorder": False},
        ),
        (
            "jitter",
            '{kind = "exponential", mean = "500 us"}',
            {"kind": "exponential", "mean_ns": 500_000, "reorder": False},
        ),
        (
            "jitter",
            '{kind = "normal", stddev = "1 ms", reorder = true}',
            {"kind": "normal", "stddev_ns": 1_000_000, "reorder": True},
        ),
        ("loss", '{kind = "independent", probability = "1 %"}', {"kind": "independent", "probability": 0.01}),
        (
            "loss",
            '{kind = "gilbert_elliott", good_to_bad = 0.001, bad_to_good = 0.1, loss_in_bad = 0.5}',
            {
                "kind": "gilbert_elliott",
                "good_to_bad": 0.001,
                "bad_to_good": 0.1,
                "loss_in_bad": 0.5,
                "loss_in_good": 0.0,
            },
        ),
    ],
)
def test_jitter_and_loss(tmp_path: Path, key: str, written: str, read: dict):
    assert resolved(tmp_path, f"{key} = {written}").direction("down")[key] == read


def test_a_script_is_resolved_to_what_the_data_plane_reads(tmp_path: Path):
    down = """
[[down.scripted]]
nth = 5
action = {kind = "hold", extra = "20 ms"}
[[down.scripted]]
nth = 2
what = "bare"
action = {kind = "drop"}
"""
    assert resolved(tmp_path, down).direction("down")["scripted"] == [
        {"nth": 5, "what": "data", "action": {"kind": "hold", "extra_ns": 20_000_000}},
        {"nth": 2, "what": "bare", "action": {"kind": "drop"}},
    ]


def test_the_least_queue_holds_a_full_frame_with_its_overhead(tmp_path: Path):
    down = 'rate = "1 Mbit/s"\noverhead = 40\nqueue = {kind = "droptail", bdp = 0.001}\n'
    assert resolved(tmp_path, down).direction("down")["queue"] == {"kind": "droptail", "bytes": 1540}


def test_changes(tmp_path: Path):
    down = """
rate = "25 Mbit/s"
[[down.changes]]
at = "5 s"
rate = "2 Mbit/s"
delay = "100 ms"
[[down.changes]]
at = "9 s"
loss = {kind = "independent", probability = 0.5}
trace = "steps.down"
"""
    assert resolved(tmp_path, down).direction("down")["changes"] == [
        {
            "at_ns": 5_000_000_000,
            "capacity": {"kind": "rate", "bit_per_s": 2_000_000},
            "delay_ns": 100_000_000,
        },
        {
            "at_ns": 9_000_000_000,
            "capacity": {"kind": "trace", "opportunities_ms": [0, 0, 500, 1000]},
            "loss": {"kind": "independent", "probability": 0.5},
        },
    ]


@pytest.mark.parametrize(
    "least_and_most",
    [
        'rate = "1000 Gbit/s"\nqueue = {kind = "droptail", bytes = "1514 B"}',
        'rate = "1 bit/s"\noverhead = 0\nqueue = {kind = "classes", classes = [{bytes = "1500 B"}]}',
        'queue = {kind = "fq_codel", flows = 65536, quantum = 64, target = "1 ns", interval = "60 min"}',
        'queue = {kind = "fq_codel", flows = 1, quantum = 1000000}',
        'queue = {kind = "pie", update = "100 us", target = "60 min"}',
        'delay = "59 min"\njitter = {kind = "uniform", range = "60 min"}',
    ],
)
def test_what_is_accepted_the_data_plane_accepts(tmp_path: Path, least_and_most: str):
    path = resolved(tmp_path, least_and_most)
    run = Run(
        id="a",
        trace_dir=tmp_path,
        work_dir=tmp_path,
        **one_path(path.direction("down"), path.direction("up"), client="std", server="std"),
        congestion=[Congestion(algorithm="std", name="std")],
        flows=[Flow(kind={"kind": "bulk", "bytes": 1})],
    )
    assert simulate.one(run)["faults"] == []


def test_a_trace_beside_the_file_also_compressed_and_its_mean_rate(tmp_path: Path):
    (tmp_path / "mine.gz").write_bytes(gzip.compress(b"1\n2\n3\n4\n"))
    path = resolved(tmp_path, 'trace = "mine.gz"\ndelay = "50 ms"', 'delay = "50 ms"')
    assert path.direction("down")["capacity"]["opportunities_ms"] == [1, 2, 3, 4]
    assert path.rate("down") == 4 * 1504 * 8 / 0.004
    assert path.direction("down")["queue"]["bytes"] == round(4 * 1504 / 0.004 * 0.1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no opportunity after 0 ms"),
        (b"0\n0\n", "no opportunity after 0 ms"),
        (b"1\ntwo\n", 'line 2: found "two"'),
        (b"2\n1\n", 'line 2: found "1"'),
        (b"-1\n", 'line 1: found "-1"'),
        (b"1.5\n", 'line 1: found "1.5"'),
        (b"9" * 400 + b"\n", 'line 1: found "999'),
        (b"1\n3600000000001\n", 'line 2: found "3600000000001"'),
        (b"\xff\xfe\n", "line 1: found"),
    ],
)
def test_a_trace_that_is_none_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "bad.trace").write_bytes(content)
    with pytest.raises(UsageError, match=r"accepted: whole milliseconds, one a line") as refused:
        resolved(tmp_path, 'trace = "bad.trace"')
    assert message in str(refused.value)


def test_a_compressed_trace_that_is_cut_or_a_bomb_is_refused(tmp_path: Path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"1\n" * 1000)[:-12])
    with pytest.raises(UsageError, match="ends too early"):
        resolved(tmp_path, 'trace = "cut.gz"')
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\n" * (network.LARGEST_TRACE + 2)))
    with pytest.raises(UsageError, match="more than"):
        resolved(tmp_path, 'trace = "bomb.gz"')


def test_the_fingerprint_tells_traces_apart_without_holding_them(tmp_path: Path):
    (tmp_path / "a.trace").write_text("\n".join(map(str, range(1, 200))))
    first = resolved(tmp_path, 'trace = "a.trace"').fingerprint()
    (tmp_path / "b.trace").write_text("\n".join(map(str, range(1, 201))))
    second = resolved(tmp_path, 'trace = "b.trace"').fingerprint()
    assert first != second
    assert len(json.dumps(first)) < 1000


def test_the_catalogue_is_found_by_name():
    assert catalogue.names("network") == ["3g", "lte"]
    assert network.load("3g").rate("down") == 7e6
