"""Calibration measures a path, and notices if it differs from what was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wirepaint.evaluation import network
from wirepaint.runners import calibrating
from wirepaint.runners.testbed import calibrate
from wirepaint.runners.testbed.calibrate import Calibration

pytestmark = pytest.mark.usefixtures("root")


def calibration(name: str, short: bool = True) -> Calibration:
    """As a run measures it: again when it is off."""

    def once(asked: network.Network) -> dict[str, Any]:
        return calibrate.calibrate(asked, short=short)

    return Calibration(**calibrating.measured(network.load(name), once, print))


def by_name(result: Calibration) -> dict[str, calibrate.Quantity]:
    return {quantity.name: quantity for quantity in result.quantities}


@pytest.mark.timed
def test_lte_gives_its_rate_within_a_thousandth_and_its_round_trip_within_150_us() -> None:
    result = calibration("lte")
    quantities = by_name(result)
    for side in ("down", "up"):
        rate = quantities[f"rate {side}"]
        assert rate.asked == 25_000_000
        assert rate.error is not None and abs(rate.error) <= 0.001
        queue = quantities[f"queue {side}"]
        assert queue.asked == 53 and queue.verdict == "ok"  # one BDP: 25 Mbit/s x 26 ms
        assert quantities[f"loss {side}"].measured == 0
    trip = quantities["round trip, median"]
    assert trip.error is not None and 0 <= trip.error <= 0.15
    assert (result.verdict, result.faults) == ("ok", [])
    assert "network lte: ok" in calibrate.table(result)


@pytest.mark.timed
def test_a_capacity_trace_delivers_exactly_its_opportunities() -> None:
    quantities = by_name(calibration("lte-varying"))
    for side in ("down", "up"):
        delivered = quantities[f"bytes {side} of the trace's opportunities"]
        assert delivered.asked and delivered.measured == delivered.asked


@pytest.mark.timed
def test_loss_bursts_jitter_and_queue_disciplines_are_compared_where_they_can_be(tmp_path: Path) -> None:
    file = tmp_path / "rough.toml"
    file.write_text(
        """
title = "Rough"
[down]
rate = "10 Mbit/s"
delay = "20 ms"
jitter = { kind = "normal", stddev = "1 ms", reorder = true }
loss = { kind = "independent", probability = 0.02 }
queue = { kind = "codel" }
[up]
rate = "4 Mbit/s"
delay = "20 ms"
loss = { kind = "gilbert_elliott", good_to_bad = 0.01, bad_to_good = 0.3, loss_in_bad = 0.8 }
queue = { kind = "droptail", packets = 100 }
"""
    )
    quantities = by_name(calibration(str(file)))
    assert quantities["loss down"].measured == pytest.approx(0.02, abs=0.01)
    assert quantities["loss up"].asked == pytest.approx(0.8 * 0.01 / 0.31)
    assert quantities["queue up"].measured == pytest.approx(100, abs=2)
    assert quantities["queue down"].verdict == "not compared"
    assert quantities["queue down"].note == "codel: no fixed depth"


@pytest.mark.timed
def test_a_path_that_gives_less_than_asked_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = network.load("lte")
    slower = {**asked.down, "capacity": {"kind": "rate", "bit_per_s": 24_900_000}}
    given = calibrate._directions(asked, capacity=True)
    monkeypatch.setattr(calibrate, "_directions", lambda *_, **__: {**given, "down": slower})
    result = Calibration(**calibrate.measure({"network": asked.model_dump(), "short": True}))
    assert by_name(result)["rate down"].verdict == "off"
    assert by_name(result)["rate down"].error == pytest.approx(-0.004, abs=0.0005)
    assert by_name(result)["rate up"].verdict == "ok"
    assert result.verdict == "off"


@pytest.mark.timed
def test_each_service_class_gets_its_share_up_to_its_ceiling(tmp_path: Path) -> None:
    file = tmp_path / "classes.toml"
    file.write_text(
        """
title = "Classes"
[down]
rate = "20 Mbit/s"
delay = "20 ms"
queue = {kind = "classes", classes = [
  {dscp = [10], weight = 50, packets = 100},
  {dscp = [18], weight = 30, queue = {kind = "codel"}},
  {weight = 20, packets = 100, ceiling = "2 Mbit/s"},
]}
[up]
rate = "20 Mbit/s"
delay = "20 ms"
"""
    )
    result = calibration(str(file), short=False)
    quantities = by_name(result)
    asked = [quantities[f"share down of class {number}"].asked for number in (1, 2, 3)]
    assert asked == pytest.approx([56.25, 33.75, 10])
    assert quantities["rate down"].asked == 2_000_000  # packets without a code point are in the third class
    assert result.verdict == "ok", calibrate.table(result)
