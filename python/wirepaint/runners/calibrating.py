"""Measures what the emulated path of a network really gives, before its first run on a machine."""

from __future__ import annotations

import math
from collections.abc import Callable

from wirepaint.errors import NetworkFailed, RunFailed
from wirepaint.evaluation.network import Network
from wirepaint.runners.contract import Calibration

TRIES = 3


def measured(
    network: Network, calibrate: Callable[[Network], Calibration], failed: Callable[[str], None]
) -> Calibration:
    """The calibration of a network; raises ``NetworkFailed`` if no try gave one.

    A network that is off or fails is measured again: a disturbance of the machine passes, a fault stays.
    Of tries that are all off, the one with the least error beside what is allowed counts. ``failed`` is told
    why a try failed.
    """
    tries: list[Calibration] = []
    cause = ""
    for _ in range(TRIES):
        try:
            found = calibrate(network)
        except RunFailed as error:
            cause = str(error)
            failed(f"network {network.name}: calibration failed, {cause}")
            continue
        if found["verdict"] != "off":
            return found
        tries.append(found)
    if not tries:
        raise NetworkFailed(f"the network {network.name} could not be measured: {cause}")
    return min(tries, key=lambda found: (_largest(found), len(off(found))))


def _largest(calibration: Calibration) -> float:
    """The largest error of a calibration, as a multiple of what is allowed; infinite with a fault."""
    if calibration.get("faults"):
        return math.inf
    return max(
        abs(error) / allowed
        if (error := entry.get("error")) is not None and (allowed := entry["tolerance"])
        else math.inf
        for entry in calibration["quantities"]
        if entry["verdict"] == "off"
    )


def off(calibration: Calibration) -> list[str]:
    """What a calibration found to be other than asked."""
    quantities = [entry["name"] for entry in calibration["quantities"] if entry["verdict"] == "off"]
    return quantities + [fault["check"] for fault in calibration.get("faults", ())]
