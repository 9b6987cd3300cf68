"""A run that matches what was asked is valid; for each possible mismatch there is a check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wirepaint.results import trace
from wirepaint.runners.testbed import join, validity
from wirepaint.runners.testbed.browser.chromium.netlog import NetLog
from wirepaint.runners.testbed.browser.contract import UNFINISHED

from . import visits as v


class Observed:
    """One run as observed; tests disturb one thing of it."""

    def __init__(self) -> None:
        self.load = v.page_load()
        self.asked = v.asked()
        self.of_page = self.asked["checks"]["pages"]["sample"]
        self.records = [v.server_record()]
        self.requests: list[dict[str, Any]] = []
        self.summaries: dict[str, Any] = {"emulator": v.emulator_summary(), "probe": {"lost": 0}}
        self.counters = v.counters()
        self.sampled = True

    def check(self, folder: Path) -> list[dict[str, str]]:
        for name, rows in (("connections", self.records), ("requests", self.requests)):
            text = "".join(json.dumps({"connection": 0, "time": v.ms(60)} | row) + "\n" for row in rows)
            (folder / f"server-{name}.jsonl").write_text(text)
        endpoints = {"server_address": "10.65.0.1", "server_port": 443}
        endpoints |= {"client_address": "10.64.0.2", "client_port": 4000}
        sample = {"time": v.ms(40), "event": "ack" if self.sampled else "state", "delivered": 1}
        trace.write_table(folder, "tcp", [sample | endpoints])
        load = self.load.load()
        joined = join.join([load], self.asked, folder, folder)
        return validity.check([load], joined, self.asked, self.summaries, self.counters)


def test_a_run_that_is_what_was_asked_has_no_reason_against_it(tmp_path: Path) -> None:
    reasons = Observed().check(tmp_path)
    assert reasons == []
    assert validity.verdict(reasons) == "valid"


def _cached(o: Observed) -> None:
    o.load.exchanges[1].from_cache = True


def _fails(o: Observed) -> None:
    o.load.exchanges[1].failed = "net::ERR_CONNECTION_RESET"


def _other_status(o: Observed) -> None:
    o.load.exchanges[1].status = 404


def _short(o: Observed) -> None:
    o.load.exchanges[1].encoded_bytes = 19_000
    o.load.netlog.requests[1].chunks[1:] = [
        replace(chunk, bytes=9_000) for chunk in o.load.netlog.requests[1].chunks[1:]
    ]


def _long(o: Observed) -> None:
    o.load.exchanges[1].encoded_bytes = 40_000


def _not_requested(o: Observed) -> None:
    missing = {"id": 2, "method": "GET", "url": "https://a.test/b", "status": 200, "wire_bytes": 1}
    o.of_page["resources"].append(missing)


def _extra(o: Observed) -> None:
    o.load.exchanges.append(v.exchange("3", "/extra", 100, 110, 120, 500))


def _left_to_a_script(o: Observed) -> None:
    _not_requested(o)
    o.of_page["resources"][-1]["expected"] = False


def _other_query(o: Observed) -> None:
    o.of_page["resources"][1]["url"] += "?t=1"
    o.requests.append({"method": "GET", "url": "https://a.test/a.png", "matched": "query", "response": 1})


def _unseen(o: Observed) -> None:
    o.load.netlog.requests.append(v.request("/update", 100, [], source=50))


def _outside(o: Observed) -> None:
    o.asked["sites"]["sample"]["origins"] = [{"host": "b.test"}]


def _resumed(o: Observed) -> None:
    o.load.netlog.connections[0].resumed = True


def _http_1(o: Observed) -> None:
    o.load.netlog.connections[0].protocol = "http/1.1"


def _animated(o: Observed) -> None:
    o.load.viewport_last_frame = v.ms(700)


def _cut(o: Observed) -> None:
    o.load.netlog = NetLog(o.load.netlog.requests, o.load.netlog.connections, complete=False)


def _fault(check: str) -> Callable[[Observed], None]:
    def disturb(o: Observed) -> None:
        o.summaries["emulator"]["faults"] = [{"check": check, "direction": "down", "packets": 2}]

    return disturb


def _lateness(key: str, value: int) -> Callable[[Observed], None]:
    return lambda o: o.summaries["emulator"]["lateness"].update({key: value})


def _off(unit: str, error: float | None) -> Callable[[Observed], None]:
    quantity = {
        "name": "what",
        "unit": unit,
        "asked": 10.0,
        "measured": None if error is None else 10.0 + error,
        "error": error,
        "verdict": "off",
    }
    return lambda o: o.asked["checks"]["calibration"]["quantities"].append(quantity)


def _record(**change: Any) -> Callable[[Observed], None]:
    return lambda o: o.records[0].update(change)


def _unmatched(o: Observed) -> None:
    o.requests.append({"method": "GET", "url": "https://a.test/x", "matched": "none", "response": None})


def _broken_image(o: Observed) -> None:
    _short(o)
    o.load.netlog.requests[1].cancelled = True


def _cancelled_script(o: Observed) -> None:
    _broken_image(o)
    o.load.exchanges[1].type = "js"


def _surprising(o: Observed) -> None:
    o.of_page["rehearsed"] = True
    o.of_page["resources"][0]["rehearsed"] = {"aborted": False}


def _surprising_late(o: Observed) -> None:
    _surprising(o)
    o.load.load_event = v.ms(60)


def _unfinished(o: Observed) -> None:
    o.load.exchanges[1].failed = UNFINISHED


def _unfinished_late(o: Observed) -> None:
    _unfinished(o)
    o.load.load_event = v.ms(60)


def _given_up(o: Observed) -> None:
    o.of_page["resources"][1]["rehearsed"] = {"aborted": True}
    _fails(o)


def _websocket(o: Observed) -> None:
    _unseen(o)
    o.load.netlog.requests[-1].url = "wss://a.test/chat"


def _without_bpf(o: Observed) -> None:
    o.asked["congestion"] = [{"algorithm": "fld"}]
    _without_samples(o)


def _without_samples(o: Observed) -> None:
    address = {"server_address": "10.65.0.1", "server_port": 443, "client_port": 4000}
    o.summaries["probe"]["unseen"] = [
        address | {"segments": 10, "retransmissions": 0, "retransmitted": 0, "without_ssthresh": 0}
    ]


def _without_ssthresh(o: Observed) -> None:
    _without_samples(o)
    o.summaries["probe"]["unseen"][0] |= {"segments": 0, "without_ssthresh": 3}


CASES: list[tuple[Callable[[Observed], Any], str, str, str]] = [
    (_record(congestion="bbr"), "congestion", "invalid", "bbr when accepted"),
    (_record(congestion_end="reno"), "congestion", "invalid", "reno at its end"),
    (_record(congestion=None), "congestion", "invalid", "None when accepted"),
    (_record(initial_window=None), "initial_window", "invalid", "None, connection"),
    (_record(initial_window=2), "initial_window", "invalid", "2, connection"),
    (_record(initial_window=1, handshake_retrans=0), "initial_window", "invalid", "1, connection"),
    (_record(initial_window=1, handshake_retrans=1), "initial_window", "note", "1 after a lost SYN-ACK"),
    (
        lambda o: o.summaries.update(congestion={"group_events_lost": 3}),
        "groups",
        "note",
        "3 events of groups",
    ),
    (lambda o: o.records.clear(), "congestion", "invalid", "no record of any server connection"),
    (
        lambda o: o.records.clear(),
        "connections",
        "invalid",
        "no server record of the connection from port 4000",
    ),
    (lambda o: o.records.append(v.server_record(port=5000)), "connections", "invalid", "from port 5000"),
    (_http_1, "http_version", "invalid", "http/1.1 with a.test"),
    (_cached, "cold_cache", "invalid", "https://a.test/a.png came from a cache"),
    (_resumed, "cold_connections", "invalid", "the first connection to a.test resumed"),
    (_fails, "objects", "invalid", "failed: net::ERR_CONNECTION_RESET"),
    (_not_requested, "objects", "invalid", "not requested: https://a.test/b"),
    (_left_to_a_script, "objects", "note", "not requested: https://a.test/b"),
    (_extra, "objects", "invalid", "not in the recording: https://a.test/extra"),
    (_other_query, "objects", "note", "https://a.test/a.png"),
    (_other_status, "status", "invalid", "status 404"),
    (_short, "bytes", "invalid", "19000 bytes of"),
    (_broken_image, "bytes", "note", "then the browser stopped: a broken image"),
    (_cancelled_script, "bytes", "invalid", "19000 bytes of"),
    (_long, "bytes", "invalid", "40000 bytes of"),
    (_surprising, "objects", "invalid", "asked for in no rehearsal: https://a.test/a.png"),
    (_surprising_late, "objects", "note", "in no rehearsal (after the load event): https://a.test/a.png"),
    (_unfinished, "objects", "invalid", "failed: not finished"),
    (_unfinished_late, "objects", "note", "failed: not finished"),
    (_given_up, "objects", "note", "failed: net::ERR_CONNECTION_RESET"),
    (_websocket, "requests", "note", "wss://a.test/chat"),
    (_unmatched, "server", "invalid", "no recording of https://a.test/x"),
    (_unseen, "requests", "invalid", "https://a.test/update, not caused by the page"),
    (_outside, "requests", "invalid", "requests to a.test"),
    (lambda o: setattr(o.load, "unconfined", "no renderer found"), "sandbox", "invalid", "no renderer"),
    (_animated, "viewport", "note", "the screencast ends 420 ms after"),
    (_cut, "netlog", "suspect", "cut off"),
    (lambda o: o.load.notes.append("dismissed a dialog"), "browser", "note", "dismissed a dialog"),
    (lambda o: o.summaries.pop("emulator"), "emulator", "invalid", "no summary"),
    (_fault("packet conservation"), "packet_conservation", "invalid", "2 packets down"),
    (_fault("frames above the MTU"), "frames_above_the_MTU", "invalid", "2 packets down"),
    (_fault("ring drops"), "ring_drops", "suspect", "2 packets down"),
    (_fault("backlog drops"), "backlog_drops", "suspect", "2 packets down"),
    (
        lambda o: o.summaries["emulator"]["up"].update(largest_shift=1_200_000),
        "late_arrivals",
        "suspect",
        "one taken 1.20 ms after it came",
    ),
    (_lateness("p99", 1_500_000), "lateness", "suspect", "p99 1.50 ms"),
    (_lateness("max", 8_000_000), "lateness_max", "suspect", "one packet 8.0 ms late"),
    (lambda o: o.summaries["emulator"].update(clock_steps=1), "clock", "suspect", "set 1 times"),
    (_without_bpf, "unseen_acks", "suspect", "BPF missed 10 segments and 0 retransmissions of 10.65.0.1"),
    (_without_samples, "unseen_acks", "suspect", "to port 4000"),
    (_without_ssthresh, "unseen_acks", "suspect", "no ssthresh for 3 segments from port 4000"),
    (lambda o: setattr(o, "sampled", False), "unseen_acks", "suspect", "the sender of connection 18"),
    (lambda o: o.asked["checks"].update(calibration=None), "calibration", "suspect", "could not be measured"),
    (_off("bit/s", 0.02), "calibration", "suspect", "what 10.02 bit/s"),
    (_off("bit/s", -0.005), "calibration", "note", "what 9.995 bit/s"),
    (_off("ms", 1.5), "calibration", "suspect", "what 11.5 ms"),
    (_off("ms", 0.2), "calibration", "note", "what 10.2 ms"),
    (_off("", 0.001), "calibration", "suspect", "what 10.001"),
    (_off("packets", 5.0), "calibration", "note", "what 15 packets"),
    (_off("bit/s", None), "calibration", "suspect", "what nothing"),
    (lambda o: o.summaries["probe"].update(lost=7), "probe", "suspect", "7 samples"),
    (lambda o: setattr(o, "counters", v.counters(steal=0.08)), "steal", "suspect", "8.0 %"),
    (lambda o: setattr(o, "counters", v.counters(tasks=1.6)), "foreign_cpu", "suspect", "50 %"),
    (
        lambda o: setattr(o, "counters", v.counters(tasks=1.6, others=(("cargo", 0.8), ("node", 0.1)))),
        "foreign_cpu",
        "suspect",
        "used by others: cargo 40 %, node 5 %",
    ),
]


@pytest.mark.parametrize(("disturb", "check", "severity", "found"), CASES)
def test_each_disturbance_is_found_by_its_check(
    tmp_path: Path, disturb: Callable[[Observed], Any], check: str, severity: str, found: str
) -> None:
    observed = Observed()
    disturb(observed)
    reasons = observed.check(tmp_path)
    mine = [reason for reason in reasons if reason["check"] == check]
    assert mine, reasons
    assert (mine[0]["severity"], found in mine[0]["found"]) == (severity, True), mine
    assert mine[0]["expected"]
    assert validity.verdict(mine) == ("valid" if severity == "note" else severity)


def test_an_initial_window_of_the_congestion_controls_own_is_accepted(tmp_path: Path) -> None:
    observed = Observed()
    _record(initial_window=25)(observed)
    observed.asked["checks"]["own_initial_window"] = True
    assert observed.check(tmp_path) == []


def test_lateness_is_judged_beside_the_round_trip_of_the_path(tmp_path: Path) -> None:
    found = []
    for p99 in (5_900_000, 6_100_000):
        observed = Observed()
        observed.asked["segments"][0] |= {side: {"delay_ns": v.ms(300)} for side in ("down", "up")}
        _lateness("p99", p99)(observed)
        reasons = observed.check(tmp_path)
        found.append([r["expected"] for r in reasons if r["check"] == "lateness"])
    assert found == [[], ["at most 6 ms"]]


def test_the_worst_reason_comes_first_and_decides(tmp_path: Path) -> None:
    observed = Observed()
    _animated(observed)
    _lateness("p99", 2_000_000)(observed)
    _record(congestion="bbr")(observed)
    reasons = observed.check(tmp_path)
    assert [reason["severity"] for reason in reasons] == ["invalid", "suspect", "note"]
    assert validity.verdict(reasons) == "invalid"


def _warm(observed: Observed) -> Observed:
    """The image comes from the browser's cache."""
    observed.asked["visits"][0]["cache"] = "warm"
    observed.load.exchanges[1].from_cache = True
    observed.load.netlog.requests.pop()
    return observed


def test_with_a_warm_cache_an_object_comes_without_a_request(tmp_path: Path) -> None:
    observed = _warm(Observed())
    assert observed.check(tmp_path) == []
    image = {"site": "sample", "method": "GET", "url": "https://a.test/a.png", "matched": "exact"}
    observed.requests.append(image | {"response": 1, "began": None, "head_bytes": 0})
    [reason] = observed.check(tmp_path)
    assert (reason["check"], reason["severity"]) == ("warm_cache", "invalid")
    assert "asked for https://a.test/a.png" in reason["found"]


def test_with_a_warm_cache_a_304_has_no_body(tmp_path: Path) -> None:
    observed = Observed()
    observed.asked["visits"][0]["cache"] = "warm"
    observed.load.exchanges[0].wire_status = 304
    observed.load.exchanges[0].from_cache = True
    observed.load.exchanges[0].encoded_bytes = 120
    observed.load.netlog.requests[0].chunks[:] = observed.load.netlog.requests[0].chunks[:1]
    assert observed.check(tmp_path) == []
    observed.load.exchanges[0].encoded_bytes = 5_000
    assert [reason["check"] for reason in observed.check(tmp_path)] == ["bytes"]
    observed.asked["visits"][0]["cache"] = "cold"
    assert "cold_cache" in {reason["check"] for reason in observed.check(tmp_path)}


def test_a_warm_cache_without_anything_of_the_page_is_noted(tmp_path: Path) -> None:
    observed = Observed()
    observed.asked["visits"][0]["cache"] = "warm"
    [reason] = observed.check(tmp_path)
    assert (reason["check"], reason["severity"]) == ("warm_cache", "note")


def test_a_second_use_of_an_object_may_come_from_the_cache(tmp_path: Path) -> None:
    observed = Observed()
    again = v.exchange("3", "/a.png", 400, 400, 400, 0, from_cache=True, connection=None)
    observed.load.exchanges.append(again)
    assert observed.check(tmp_path) == []


def test_a_parallel_connection_may_resume_the_session_of_the_first(tmp_path: Path) -> None:
    observed = Observed()
    observed.load.netlog.connections.append(v.connection(30, 4001, opened=60, resumed=True, requests=0))
    observed.records.append(v.server_record(port=4001, accepted=80))
    assert observed.check(tmp_path) == []


@pytest.mark.parametrize(
    ("browser", "steal", "found"),
    [(0.4, 0.07, 0), (0.9, 0.05, 1), (0.1, 0.09, 0), (0.1, 0.12, 1), (0.0, 0.05, 1)],
)
def test_a_page_that_waits_for_the_network_bears_more_stolen_time(
    tmp_path: Path, browser: float, steal: float, found: int
) -> None:
    observed = Observed()
    observed.counters = v.counters(browser=browser, steal=steal)
    assert [reason["check"] for reason in observed.check(tmp_path)] == ["steal"] * found


def test_a_stopped_browser_is_suspect(tmp_path: Path) -> None:
    observed = Observed()
    observed.counters = v.counters(browser_stopped=0.3)
    [reason] = observed.check(tmp_path)
    assert (reason["check"], reason["severity"]) == ("browser_pause", "suspect")
    assert "300 ms" in reason["found"]


def test_another_version_of_tls_is_found(tmp_path: Path) -> None:
    observed = Observed()
    observed.load.netlog.connections[0].tls = "TLS 1.2"
    [reason] = observed.check(tmp_path)
    assert (reason["check"], reason["expected"]) == ("tls_version", "TLS 1.3")


def test_an_object_may_be_longer_by_the_headers_that_were_sent_and_no_more(tmp_path: Path) -> None:
    observed = Observed()
    address = "https://a.test/a.png"
    observed.load.exchanges[1].encoded_bytes = 22_000
    record = {"method": "GET", "url": address, "matched": "exact", "response": 1, "head_bytes": 1_800}
    observed.requests.append(record)
    assert observed.check(tmp_path) == []
    record["head_bytes"] = 300
    assert [reason["check"] for reason in observed.check(tmp_path)] == ["bytes"]


class Begun:
    """One visit that began in time; its client's congestion controls."""

    def __init__(self, *spoken: str) -> None:
        self.spoken = {0: list(spoken)} if spoken else {}
        self.late, self.behind = {0: 0}, {0: 0}


@pytest.mark.parametrize(
    ("spoken", "found"),
    [(["reno"], []), (["cubic", "reno"], ["cubic at the client"]), ([], ["not read back at the client"])],
)
def test_the_congestion_control_that_a_light_user_read_back_is_the_one_asked_for(
    spoken: list[str], found: list[str]
) -> None:
    run = {
        "hosts": [{"name": "client", "role": "client", "congestion": "reno"}],
        "visits": [{"client": "client", "user_agent": "user", "name": "page"}],
    }
    reasons = list(validity._begun(Begun(*spoken), run))
    assert [(reason.check, reason.severity, reason.found) for reason in reasons] == [
        ("congestion", "invalid", text) for text in found
    ]
