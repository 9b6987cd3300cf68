"""Rows of the trace from what browser, NetLog, server and kernel saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirepaint.results import trace
from wirepaint.runners.testbed import join
from wirepaint.runners.testbed.browser.chromium.netlog import NetLog

from . import visits as v


def joined(
    folder: Path, load: v.Seen | None = None, records: list[dict[str, Any]] | None = None
) -> join.Joined:
    records = [v.server_record()] if records is None else records
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "server-connections.jsonl").write_text(lines)
    return join.join([(load or v.page_load()).load()], v.asked(), folder, folder)


def test_every_row_fits_the_schema_of_the_trace(tmp_path: Path) -> None:
    for name, rows in joined(tmp_path).tables.items():
        assert set(rows[0]) == set(trace.polars_schema(name)), name
        trace.write_table(tmp_path, name, rows)
        assert trace.read_table(tmp_path, name).height == len(rows)


def test_times_are_nanoseconds_since_the_epoch_and_bytes_come_before_their_record_is_complete(
    tmp_path: Path,
) -> None:
    tables = joined(tmp_path).tables
    base, picture = tables["object"]
    # The first packet came in the millisecond from 71 on; DevTools saw the decoded record at 73.4.
    assert (base["sent"], base["first_byte"], base["last_byte"]) == (v.ms(51), v.ms(72), v.ms(80))
    assert (picture["sent"], picture["first_byte"]) == (v.ms(85), v.ms(110.2))
    assert [(c["request"], c["time"], c["bytes"]) for c in tables["chunk"]] == [
        ("1", v.ms(72), 4_000),
        ("1", v.ms(79.5), 6_100),
        ("2", v.ms(110.5), 10_000),
        ("2", v.ms(249.5), 10_100),
    ]
    assert [row["first_on_connection"] for row in tables["object"]] == [True, False]
    assert [row["in_viewport"] for row in tables["object"]] == [False, True]


def test_a_connection_carries_what_the_server_read_from_the_kernel(tmp_path: Path) -> None:
    result = joined(tmp_path)
    (row,) = result.tables["connection"]
    assert (row["congestion"], row["initial_window"]) == ("cubic", 10)
    assert (row["retransmitted_segments"], row["min_rtt"], row["mss"]) == (3, 20_100_000, 1448)
    assert (row["first_request"], row["last_byte"], row["objects"]) == (v.ms(51), v.ms(250), 2)
    assert row["closed"] is None, "it was open when the visit ended"
    assert result.observed == {"server_congestion": "cubic", "server_initial_window": 10}


def test_a_round_trip_time_without_a_sample_is_null(tmp_path: Path) -> None:
    record = v.server_record(tcp={"min_rtt_us": 0xFFFF_FFFF, "total_retrans": 0, "snd_mss": 1448})
    assert joined(tmp_path, records=[record]).tables["connection"][0]["min_rtt"] is None


def test_the_page_counts_objects_bytes_and_surplus_connections(tmp_path: Path) -> None:
    used, surplus = v.connection(), v.connection(source=30, port=4001, opened=12, requests=0)
    load = v.page_load(netlog=NetLog(v.page_load().netlog.requests, [used, surplus], True))
    load.exchanges[1].failed = "net::ERR_ABORTED"
    result = joined(tmp_path, load, [v.server_record(), v.server_record(port=4001)])
    (page,) = result.tables["page"]
    assert (page["objects"], page["failed_objects"], page["expected_objects"]) == (1, 1, 2)
    assert (page["connections"], page["surplus_connections"]) == (1, 1)
    assert (page["encoded_bytes"], page["decoded_bytes"]) == (30_200, 30_000)
    assert (page["base_request_sent"], page["base_last_byte"]) == (v.ms(51), v.ms(80))


def test_a_port_that_is_used_twice_is_told_apart_by_time(tmp_path: Path) -> None:
    first, second = v.connection(closed=v.monotonic(60)), v.connection(source=40, opened=500)
    load = v.page_load(netlog=NetLog(v.page_load().netlog.requests, [first, second], True))
    records = [v.server_record(accepted=520, congestion="fld"), v.server_record(accepted=30)]
    samples = [
        {
            "time": v.ms(time),
            "client_address": "10.64.0.2",
            "client_port": 4000,
            "server_address": "10.65.0.1",
            "server_port": 443,
            "cwnd": cwnd,
        }
        for time, cwnd in ((600, 20), (40, 10), (499, 15))
    ]
    stranger = samples[0] | {"client_port": 9}
    trace.write_table(tmp_path, "tcp", [*samples, stranger])
    result = joined(tmp_path, load, records)
    assert {source: record["congestion"] for source, record in result.served.items()} == {
        18: "cubic",
        40: "fld",
    }
    tcp = trace.read_table(tmp_path, "tcp")
    assert tcp["connection"].to_list() == [40, 18, 18, None]
    assert tcp["cwnd"].to_list() == [20, 10, 15, 20], "the order of the samples is kept"


def test_packets_of_both_directions_get_their_connection(tmp_path: Path) -> None:
    client, server = ("10.64.0.2", 4000), ("10.65.0.1", 443)
    rows = [
        {
            "direction": direction,
            "time_in": v.ms(100),
            "source_address": source[0],
            "source_port": source[1],
            "destination_address": destination[0],
            "destination_port": destination[1],
        }
        for direction, source, destination in (("up", client, server), ("down", server, client))
    ]
    trace.write_table(tmp_path, "packet", rows)
    joined(tmp_path)
    assert trace.read_table(tmp_path, "packet")["connection"].to_list() == [18, 18]


@pytest.mark.parametrize("path", ["/update", "/a.png"])
def test_a_request_that_devtools_did_not_report_is_left_over(path: str) -> None:
    requests = [*v.page_load().netlog.requests, v.request(path, 100, [], source=50)]
    load = v.page_load(netlog=NetLog(requests, [v.connection()], True))
    assert load.load().unseen == [f"https://a.test{path}"]


def test_a_request_that_hsts_turned_into_https_is_the_pages() -> None:
    upgraded = {"url": f"http://{v.HOST}/a.png", "connection": None, "source": 50}
    for address, unseen in ((upgraded["url"], []), ("http://b.test/", ["http://b.test/"])):
        requests = [*v.page_load().netlog.requests, v.request("", 84, [], **upgraded | {"url": address})]
        load = v.page_load(netlog=NetLog(requests, [v.connection()], True))
        assert load.load().unseen == unseen


def test_a_server_connection_that_the_browser_did_not_open_is_left_over(tmp_path: Path) -> None:
    records = [v.server_record(), v.server_record(port=5000)]
    assert [record["client_port"] for record in joined(tmp_path, records=records).strangers] == [5000]


def test_a_connect_that_the_browser_gave_up_is_its_own_and_surplus(tmp_path: Path) -> None:
    given_up = v.connection(30, opened=12, client_port=None, client_address=None, connected=None, requests=0)
    load = v.page_load(netlog=NetLog(v.page_load().netlog.requests, [v.connection(), given_up], True))
    result = joined(tmp_path, load, [v.server_record(), v.server_record(port=4007, accepted=33)])
    assert result.strangers == []
    row = result.tables["connection"][1]
    assert (row["client_port"], row["connected"], row["reason"]) == (4007, None, "surplus")


def test_of_chunks_that_were_dealt_wrongly_an_object_does_not_grow(tmp_path: Path) -> None:
    load = v.page_load()
    load.exchanges[1].encoded_bytes = 15_636
    assert joined(tmp_path, load).tables["object"][1]["encoded_bytes"] == 15_636


def test_a_workers_script_has_the_bytes_that_came_not_those_that_devtools_counts(tmp_path: Path) -> None:
    load = v.page_load()
    load.exchanges[1].encoded_bytes = load.exchanges[1].head_bytes = 100
    assert joined(tmp_path, load).tables["object"][1]["encoded_bytes"] == 20_100


def test_what_a_cache_answered_is_no_object_on_the_network(tmp_path: Path) -> None:
    load = v.page_load()
    load.exchanges.append(v.exchange("3", "/a.png", 400, 400, 400, 0, from_cache=True, connection=None))
    assert [row["request"] for row in joined(tmp_path, load).tables["object"]] == ["1", "2"]
