"""What the report takes of a visit: link, CPU, headers, film, and how much of it fits."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from report.fixture import picture
from wirepaint import metrics
from wirepaint.errors import UsageError
from wirepaint.evaluation.congestion import in_words
from wirepaint.report import recorded, visits
from wirepaint.results import Results
from wirepaint.results.trace import polars_schema

MS = 1_000_000


def test_a_bucket_of_the_link_counts_the_bytes_until_the_next_one() -> None:
    rows = [
        {"time": n * MS, "direction": "down", "queue_packets": n % 3, "queue_drops": n // 4,
         "random_losses": 0, "delivered_bytes": 100 * n, "capacity_bytes": 250 * n}
        for n in range(2_000)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema_overrides=dict(polars_schema("link")))
    series = visits.link_series(frame, 0, 2_000 * MS)
    assert len(series["time"]) == visits.LINK_BUCKETS
    assert series["delivered"] == [400] * 499 + [None]
    assert series["capacity"] == [1_000] * 499 + [None]
    assert series["queue"] == [2] * 500
    assert sum(drops for drops in series["drops"] if drops) == 1_999 // 4


def test_an_unlimited_link_has_no_capacity() -> None:
    rows = [
        {"time": n, "direction": "down", "queue_packets": 0, "queue_drops": 0, "random_losses": 0,
         "delivered_bytes": n, "capacity_bytes": None}
        for n in range(2)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema_overrides=dict(polars_schema("link")))
    assert visits.link_series(frame, 0, 10)["capacity"] == [None, None]


def test_busy_cores_are_cpu_time_by_time() -> None:
    rows = [{"visit": 0, "time": n * 50 * MS, "browser": 0.04 * n} for n in range(21)]
    series = visits.cpu_series(pl.DataFrame(rows), 0, 1_000 * MS)
    assert series is not None
    assert series["busy"] == [0.8] * 10 + [None]
    assert series["time"][:2] == [0, 10_000]
    assert visits.cpu_series(pl.DataFrame(schema=polars_schema("cpu")), 0, 1) is None


def objects(*urls: str) -> pl.DataFrame:
    return pl.DataFrame({"method": ["GET"] * len(urls), "url": urls})


def run_file(folder: Path, content: dict[str, Any]) -> Path:
    file = folder / "run.json"
    file.write_text(json.dumps(content), "utf-8")
    return file


@pytest.mark.parametrize("backend", ["testbed", "simulator"])
def test_headers_come_from_the_run_of_either_back_end(tmp_path: Path, backend: str) -> None:
    answers = [
        {"method": "GET", "url": f"https://a.test/{name}", "headers": [["x", "1"], [recorded.PADDING, "00"]]}
        for name in ("a", "b")
    ]
    run = (
        {"sites": {"s": {"responses": answers}}}
        if backend == "testbed"
        else {"pages": {"p": {"resources": answers}}}
    )
    urls = ("https://a.test/a", "https://a.test/b#part", "https://a.test/other")
    sets, numbers = recorded.headers(run_file(tmp_path, run), objects(*urls))
    assert sets == [[["x", "1"]]]
    assert numbers == [0, 0, None]


def test_a_long_header_is_cut_and_a_damaged_run_is_named(tmp_path: Path) -> None:
    answer = {"method": "GET", "url": "https://a.test/", "headers": [["x", "y" * 5_000]]}
    file = run_file(tmp_path, {"sites": {"s": {"responses": [answer]}}})
    sets, _ = recorded.headers(file, objects("https://a.test/"))
    assert len(sets[0][0][1]) == recorded.LONGEST_VALUE
    file.write_text("{", "utf-8")
    with pytest.raises(UsageError, match="damaged"):
        recorded.headers(file, objects("https://a.test/"))
    assert recorded.headers(None, objects("https://a.test/")) == ([], [None])


def choices(results: Results) -> list[visits.Choice]:
    return visits.choose(metrics.table(results, ("valid", "suspect")), ("valid",), "page_load_time")


def test_only_median_visits_have_a_film_of_what_the_run_kept(results: Results) -> None:
    chosen = choices(results)
    shown = visits.embedded(results, chosen, lambda _: ("h2", 1))
    assert shown.left_out == shown.unfilmed == 0
    assert [entry["film"] is not None for entry in shown.index] == [
        entry["role"] == "median" for entry in shown.index
    ]
    film = json.loads(gzip.decompress(base64.b64decode(shown.packed[shown.index[0]["film"]])))
    assert film["picture"] == [picture(0), None, picture(2), picture(3), picture(4)]
    assert film["progress"] == [0, 0.25, 0.5, 0.75, 1]
    assert film["time"][-1] * visits.TICK / MS == pytest.approx(shown.index[0]["marks"]["FP"] + 200, abs=0.1)


def test_what_does_not_fit_is_counted(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = choices(results)
    whole = visits.embedded(results, chosen, lambda _: ("h2", 1))
    first = whole.index[0]
    monkeypatch.setattr(visits, "MOST_PACKED", len(whole.packed[first["id"]]) + 10)
    monkeypatch.setattr(visits, "MOST_FILMED", len(whole.packed[first["film"]]) - 1)
    some = visits.embedded(results, chosen, lambda _: ("h2", 1))
    assert [entry["key"] for entry in some.index] == [first["key"]]
    assert some.left_out == len(chosen) - 1
    assert some.unfilmed == 1
    assert some.index[0]["film"] is None


def test_a_control_that_a_run_registered_has_its_own_name() -> None:
    assert [in_words(name) for name in ("fld_uz4v9", "cubic", "mine_ab12c", "cubic9438", None)] == [
        "FLD_TCP", "CUBIC", "mine", "CUBIC (RFC 9438)", None,
    ]  # fmt: skip
