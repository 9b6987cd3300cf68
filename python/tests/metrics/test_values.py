"""Every metric on one visit whose values can be worked out by hand (see conftest.visit_rows)."""

import gc
import weakref
from functools import cache

import polars as pl
import pytest

from wirepaint import metrics
from wirepaint.metrics import _bottleneck
from wirepaint.metrics._computing import READ
from wirepaint.metrics._visits import visits
from wirepaint.results.trace import polars_schema, tables

MS = 1_000_000

BY_HAND = {
    "base-page-latency": 190 - 152,
    "base-page-first-byte": 180 - 152,
    "page-load-time": 300,
    "fully-loaded": 290 - 100,
    "time-to-first-byte": 180 - 100,
    "first-contentful-paint": 210,
    "largest-contentful-paint": 250,
    "idle-time": 220,  # received in 180-190 and 220-290
    "idle-share": 100 * 220 / 300,
    "page-net-transfer-time": 80,
    "effective-concurrency": ((10 + 40) + 40) / 80,
    "connection-duration": (160 + 108) / 2,
    "bytes-per-connection": (90_000 + 600_000) / 2,
    "connections-below-50-kb": 0,
    "connections-below-500-kb": 50,
    "object-size-per-rtt-bin": 30_000,
    "first-object-round-trips": (2 + 4) / 2,  # 38 and 82 ms over 26 ms
    "page-type": "mixed",
    "objects": 4,
    "ahead-share": 0,
    "cache-hit-share": 0,
    "cache-miss-share": 0,
    "bytes-transferred": 690_000,
    "connections-opened": 3,
    "surplus-connections": 1,
    "retransmission-share": 100 * 3 / (67 + 422 + 3),
    "queueing-delay-p50": 4,
    "queueing-delay-p95": 12,
    "queueing-delay-p99": 12,
    "drop-rate": 100 * 5 / 300,
    "link-utilisation": 50,
    "load-goodput": 9 * 1000 * 8 / 0.3e6,
    "bottleneck-share": 100 * 9 * 1000 / (30 * 5000),
}


@pytest.fixture
def trace(visit):
    return trace_of(visit() | {"link": link()})


def link(capacity=1000):
    """A sample each 10 ms from 90 to 410 ms; per ms 1000 bytes of capacity, 500 delivered, a packet offered.

    The queue holds 4 ms of capacity, 12 ms at the three samples from 300 to 320 ms.
    """
    rows = []
    for number, ms in enumerate(range(90, 411, 10)):
        queued = 12_000 if 300 <= ms <= 320 else 4_000
        rows.append({
            "time": ms * MS, "direction": "down", "queue_packets": queued // 1500, "queue_bytes": queued,
            "offered_packets": 10 * number, "offered_bytes": 0, "delivered_packets": 0,
            "delivered_bytes": 500 * 10 * number, "queue_drops": 4 * (ms >= 200),
            "random_losses": 1 * (ms >= 200), "lateness_max": 0,
            "capacity_bytes": None if capacity is None else capacity * 10 * number,
        })  # fmt: skip
    up = [row | {"direction": "up", "queue_bytes": 10**9} for row in rows]
    return rows + up


def trace_of(rows):
    frames = {}
    for name in tables():
        schema = dict(polars_schema(name)) | ({"capacity_bytes": pl.Int64()} if name == "link" else {})
        frames[name] = pl.DataFrame(rows.get(name, []), schema=schema)
    return frames.__getitem__


@pytest.mark.parametrize("name", BY_HAND)
def test_the_value_is_that_worked_out_by_hand(name, trace):
    value = metrics.compute(trace)[name]
    assert value == (BY_HAND[name] if isinstance(BY_HAND[name], str) else pytest.approx(BY_HAND[name]))


def test_every_metric_is_worked_out_by_hand_or_null_here(trace):
    null = {name: reading.reason for name, reading in metrics.measure(trace).items() if reading.value is None}
    assert null == {
        "speed-index": "the visit has no speed_index",
        "viewport-loading-delay": "the visit has no viewport_complete",
        "jain-index": "the run has no flow",
        "jain-index-of-users": "the run has a single user",
        "ahead-unused-share": "nothing was sent ahead",
    } | {name: "a metric of flows" for name, metric in metrics.registry().items() if metric.over == "flow"}
    assert set(metrics.registry()) == set(BY_HAND) | set(null)


def test_shares_of_a_cache_are_of_the_bytes_that_came_over_the_network(visit):
    rows = visit()
    first, second, third, *_ = rows["object"]
    first |= {"served_by": "cache hit", "encoded_bytes": 60}
    second |= {"served_by": "cache miss", "encoded_bytes": 30}
    third |= {"served_by": "origin", "encoded_bytes": 10}
    told = {"object": [first, second, third, first | {"served_by": None, "encoded_bytes": 1000}]}
    found = metrics.compute(trace_of(rows | told))
    assert (found["cache-hit-share"], found["cache-miss-share"]) == (60, 30)
    nothing = metrics.measure(trace_of(rows | {"object": [first | {"served_by": None}]}))["cache-hit-share"]
    assert nothing.value is None and nothing.reason == "no response came over the network"


def test_shares_of_what_was_sent_ahead_are_of_the_page_and_of_the_run(visit):
    rows = visit()
    first, second, *_ = rows["object"]
    first |= {"served_by": "ahead", "encoded_bytes": 75}
    second |= {"served_by": "pep", "encoded_bytes": 25}
    run = {"ahead_bytes": 200, "ahead_unused_bytes": 50}
    found = metrics.compute(trace_of(rows | {"object": [first, second], "run": [run]}))
    assert (found["ahead-share"], found["ahead-unused-share"]) == (75, 25)


def test_a_metric_reads_only_the_tables_that_it_declares(trace):
    for name, metric in metrics.registry().items():
        read = set()

        def recorded(table, read=read):
            read.add(table)
            return trace(table)

        metric.read_of(recorded, recorded, None)
        if metric.by_item:
            metric.by_item(recorded)
        assert read <= set(metric.needs), name


def test_the_columns_that_are_read_of_runs_are_those_that_metrics_use(visit):
    rows = visit() | {"link": link(), "run": [{"ahead_bytes": 200, "ahead_unused_bytes": 50}]}
    for table in ("page", "object", "chunk", "connection"):
        rows[table] = [row | {"visit": number} for number in (0, 1) for row in rows[table]]
    every = trace_of(rows)

    def measured(without: tuple[str, str] | None = None):
        def trace(table):
            return every(table).select(
                column for column in READ.get(table) or every(table).columns if (table, column) != without
            )

        return visits(trace), metrics.measure(trace)

    assert measured() == (visits(every), metrics.measure(every))
    for table, columns in READ.items():
        for column in columns:
            with pytest.raises((pl.exceptions.ColumnNotFoundError, KeyError), match=column):
                measured(without=(table, column))


def test_a_metric_is_of_one_visit_or_of_the_run_with_all_of_them(visit):
    def loads(trace: metrics.Trace) -> float:
        return float(trace("object")["encoded_bytes"].sum())

    def declared(over):
        return metrics.metric(title="Bytes", unit="bytes", source="RFC 9110", needs=("object",), over=over)(
            loads
        )

    rows = visit() | {"link": link()}
    for table in ("page", "object", "chunk", "connection"):
        rows[table] = [row | {"visit": number} for number in (0, 1) for row in rows[table]]
    rows["object"][-1]["encoded_bytes"] += 1
    trace = trace_of(rows)
    assert [declared("visit").read(trace, number).value for number in (0, 1)] == [690_000, 690_001]
    assert declared("run").read(trace).value == 1_380_001
    assert metrics.measure(trace, 1)["bytes-transferred"].value == 690_000
    assert metrics.measure(trace, 2)["page-load-time"].reason == "the run holds 0 page visits, not one"


def test_an_empty_trace_gives_nulls_with_reasons_and_no_number():
    for name, reading in metrics.measure(trace_of({})).items():
        assert reading.value is None and reading.reason, name


def test_nothing_keeps_a_trace_whose_metrics_are_known(visit):
    trace = trace_of(visit())
    held = weakref.ref(once := cache(lambda name: trace(name)))
    metrics.measure(once)
    del once
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("column", ["navigation_start", "load_event"])
def test_an_instant_that_is_not_known_makes_what_rests_on_it_null(visit, column):
    rows = visit()
    rows["page"][0][column] = None
    values = metrics.measure(trace_of(rows))
    for name in ("page-load-time", "idle-time", "page-net-transfer-time", "effective-concurrency"):
        assert values[name].value is None
        assert values[name].reason == f"the visit has no {column}"


def test_without_chunks_the_objects_own_times_count(visit):
    rows = visit()
    rows["chunk"] = []
    assert metrics.compute(trace_of(rows))["page-net-transfer-time"] == pytest.approx(10 + 80)


def test_what_comes_after_the_load_event_is_not_page_load(visit):
    rows = visit()
    late = rows["object"][3] | {
        "request": "5",
        "first_byte": 390 * MS,
        "last_byte": 900 * MS,
        "connection": 2,
    }
    rows["object"].append(late)
    assert metrics.compute(trace_of(rows))["page-net-transfer-time"] == pytest.approx(80 + 10)
    rows["object"][-1] = late | {"first_byte": 410 * MS}
    assert metrics.compute(trace_of(rows))["page-net-transfer-time"] == pytest.approx(80)


def test_an_object_without_an_end_makes_the_idle_time_unknown(visit):
    rows = visit()
    rows["object"].append(rows["object"][3] | {"request": "5", "last_byte": None})
    reading = metrics.measure(trace_of(rows))["idle-time"]
    assert reading.value is None
    assert reading.reason == "the last byte of http://b.test/script.js is not known"


def test_a_redirect_before_the_base_document_counts_in_its_latency(visit):
    rows = visit()
    rows["object"].append(rows["object"][0] | {"request": "0", "status": 301, "sent": 120 * MS})
    assert metrics.compute(trace_of(rows))["base-page-latency"] == pytest.approx(190 - 120)


@pytest.mark.parametrize(
    ("encrypted", "of", "label"),
    [(1, 1, "encrypted"), (19, 20, "encrypted"), (9, 10, "mixed"), (1, 10, "mixed"), (1, 20, "plain")],
)
def test_the_page_type_needs_more_than_nine_of_ten(visit, encrypted, of, label):
    rows = visit()
    rows["connection"] = [
        rows["connection"][0] | {"connection": n, "encrypted": n < encrypted} for n in range(of)
    ]
    assert metrics.compute(trace_of(rows))["page-type"] == label


def test_an_unlimited_link_has_no_queueing_delay_and_no_utilisation(visit):
    values = metrics.measure(trace_of(visit() | {"link": link(capacity=None)}))
    for name in ("queueing-delay-p95", "link-utilisation"):
        assert values[name].reason == "the link has no capacity_bytes"
    assert values["drop-rate"].value == pytest.approx(100 * 5 / 300)


def test_during_an_outage_what_is_queued_waits_for_its_end(visit):
    """The link carries nothing from 200 to 300 ms; 1000 bytes arrive at 250 ms and leave at 301 ms."""
    rows = [
        {
            "time": ms * MS, "direction": "down", "queue_bytes": 1000 if 250 <= ms <= 300 else 0,
            "offered_packets": int(ms >= 250), "queue_packets": 0, "queue_drops": 0, "random_losses": 0,
            "delivered_bytes": 0, "capacity_bytes": 1000 * (min(ms, 200) + max(ms - 300, 0)),
        }
        for ms in range(90, 411, 10)
    ]  # fmt: skip
    trace = trace_of(visit() | {"link": rows})
    assert metrics.compute(trace)["queueing-delay-p50"] == pytest.approx(51)
    values, _ = _bottleneck.queueing_delays(trace)
    assert (values > 0).sum() == 6


def items(name, trace):
    metric = metrics.get(name)
    return pl.DataFrame(metric.by_item(trace), schema=metric.of_item, orient="row")


def test_the_distributions_hold_every_item(trace):
    durations = items("connection-duration", trace)
    assert durations.sort("connection").rows() == [(1, True, "h2", 160.0), (2, False, "http/1.1", 108.0)]
    sizes = items("bytes-per-connection", trace)
    assert sorted(sizes["value"]) == [90_000, 600_000]
    bins = items("object-size-per-rtt-bin", trace).sort("bin")
    assert bins.select("bin", "value").rows() == [(2, 30_000), (4, 600_000)]


def test_a_whole_number_of_round_trips_is_not_rounded_up(visit):
    rows = visit()
    rows["object"][0]["last_byte"] = rows["object"][0]["sent"] + 26 * MS
    bins = items("object-size-per-rtt-bin", trace_of(rows))
    assert 1 in bins["bin"]


def test_jains_index_of_users_is_that_of_their_goodputs_while_they_load(visit):
    """Of user "a" 9 kB in 0.3 s and of "b" the same in 0.6 s: 30 and 15 kB/s."""
    rows = visit()
    both = {"page": [], "chunk": []}
    for number, (user, load_ms) in enumerate((("a", 400), ("b", 700))):
        both["page"] += [
            row | {"visit": number, "user_agent": user, "load_event": load_ms * MS} for row in rows["page"]
        ]
        both["chunk"] += [row | {"visit": number} for row in rows["chunk"]]
    measured = metrics.measure(trace_of(rows | both))["jain-index-of-users"].value
    assert measured == pytest.approx((30 + 15) ** 2 / (2 * (30**2 + 15**2)))
