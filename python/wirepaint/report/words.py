"""Numbers, verdicts and reasons in words, for the templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from wirepaint.results import Results
from wirepaint.statistics import Interval
from wirepaint.statistics.losses import Losses
from wirepaint.statistics.wording import MINUS

THIN = "\N{NARROW NO-BREAK SPACE}"
"""Between a number and its unit, and between thousands; no line ends there."""
NO_BREAK = "\N{NO-BREAK SPACE}"
ELLIPSIS = f"{NO_BREAK}…{NO_BREAK}"
"""Between the bounds of an interval."""
NOTHING = "\N{EN DASH}"
"""Text for a missing value."""

MADE_BY = {
    "testbed": "measured on the testbed: Linux TCP and Chromium over an emulated path",
    "simulator": "simulated: a model of Linux TCP and Chromium under a virtual clock, nothing was measured",
}
SIDES = {
    "testbed": "Measured on the testbed",
    "simulator": "Simulated, nothing was measured",
    "both": "Testbed and simulator",
}
"""What the numbers of a back end are, as the head of a table."""

CHECKS = {
    "congestion": "The kernel reports another congestion control for a server socket than the one asked for.",
    "initial_window": "A server socket began with another initial window than the one asked for.",
    "http_version": "Browser and server agreed on another HTTP version than the one asked for.",
    "connections": "Browser and server do not agree on which connections there were.",
    "proxy": "A request did not pass the proxy, or its cache was of no use.",
    "warm_cache": "The browser's cache had nothing of the page, or the server was asked for what it had.",
    "served_by": "The proxy's log and its headers do not agree on what came from its cache.",
    "cold_cache": "Something came out of a cache although the visit must be cold.",
    "cold_connections": "A connection went on from an earlier visit.",
    "objects": "The objects that were loaded are not those of the recording.",
    "status": "A response had another status than the recorded one.",
    "bytes": "A response had another size than the recorded one.",
    "server": "The replay server was asked for something that the recording lacks.",
    "requests": "Traffic that the page did not cause.",
    "flows": "A flow did not begin, was not connected, or did not reach its end.",
    "iperf3": "iperf3 and the emulator counted different amounts of data.",
    "sandbox": "The browser ran without its sandbox.",
    "netlog": "The browser's network log ends too early, so byte timelines may be incomplete.",
    "browser": "The browser said something unusual about the visit.",
    "emulator": "The emulator left no account of its packets.",
    "clock": "The wall clock was set while the run was under way.",
    "lateness": "The emulator sent packets later than the model asked, so delay and rate were not exact.",
    "lateness_max": "A packet was late by more than the model's delay leaves unnoticed.",
    "tls_version": "Browser and server agreed on another TLS version than the one asked for.",
    "path": "A device, route or setting of the path was changed while the run was under way.",
    "packets": "Packets went missing, or came in, where nothing but the emulator may touch them.",
    "foreign_packets": "Somebody else used the path.",
    "rate": "The link carried more or less than its rate while packets waited.",
    "losses": "Packets were lost otherwise than the path was asked to lose them.",
    "round_trip": "A round trip is shorter than the path, or longer than the path and its queue.",
    "segment_size": "TCP's segments are not as large as the path lets them be.",
    "receive_window": "The client's receive window kept data back.",
    "start": "A visit began later than asked: its browser was not ready.",
    "light": "The light browsers had too little CPU time to keep up with their clock.",
    "think_time": "The server began answers earlier or later than it was asked to.",
    "emulator_pause": "The emulator stood still for a moment.",
    "server_pause": "The server stood still for a moment.",
    "browser_pause": "A process of the browser was stopped.",
    "probe": "Samples of the sender's window were lost; the window chart may have gaps.",
    "unseen_acks": "The kernel processed ACKs without BPF: a congestion control in BPF did not hear of them.",
    "groups": "Some events of groups of connections are missing in the table group.",
    "capture": "A packet capture does not hold all packets.",
    "calibration": "The emulated path was measured to differ from what was asked for.",
    "viewport": "Screencast and view-port search do not agree on when the first view was complete.",
    "steal": "The hypervisor took CPU time away.",
    "foreign_cpu": "Other programs used the CPU, which slows browser and emulator.",
    "ring_drops": "The kernel dropped packets before the emulator saw them.",
    "backlog_drops": "The kernel's receive backlog was full: packets were lost before the emulator.",
    "late_arrivals": "The emulator read packets too late for a path without delay.",
    "send_failures": "The kernel refused packets that the emulator sent.",
    "frames_without_memory": "Packets were lost because the emulator found no memory for them.",
    "packet_conservation": "Packets that the path was given are not all accounted for.",
    "packets_under_way": "The links do not agree on how many packets are under way.",
    "frames_above_the_MTU": "The kernel sent packets larger than the path carries: offloading was not off.",
    "unfinished_checksums": "The kernel left checksums of packets to a device: offloading was not off.",
}
"""The meaning of a check's finding, by the name of the check."""

VERDICTS = {
    "faster": "smaller, and by more than chance explains",
    "slower": "larger, and by more than chance explains",
    "better": "better, and by more than chance explains",
    "worse": "worse, and by more than chance explains",
    "shorter": "shorter, and by more than chance explains; neither direction is better",
    "longer": "longer, and by more than chance explains; neither direction is better",
    "lower": "lower, and by more than chance explains; neither direction is better",
    "higher": "higher, and by more than chance explains; neither direction is better",
    "same": "the whole interval lies within the margin: no difference that matters",
    "mixed": "the pages disagree: no word holds for all of them",
    "too few visits": "neither a difference nor sameness is shown; more visits may show one",
}

RUN_VERDICTS = {
    "valid": "everything observed is what was asked; the run counts",
    "suspect": "the machine was disturbed; the run counts only when asked for",
    "invalid": "what ran is not what was asked; the run does not count",
    "failed": "no result: it could not be carried out",
    "timed out": "the page did not load within the limit; the run has no number",
    "planned": "not carried out yet",
    "running": "was under way when the report was written",
    "skipped": "not needed: the interval was narrow enough",
    "cannot count": "skipped: an earlier visit showed that no visit of this page counts",
}


def grouped(value: float, digits: int = 0) -> str:
    """A number with a thin space between thousands, from five digits on."""
    text = f"{value:,.{digits}f}"
    return text.replace(",", THIN if abs(round(value)) >= 10_000 else "")


def number(value: float) -> str:
    """Three significant digits, or whole from 100 on."""
    return grouped(value) if abs(value) >= 100 else f"{value:.3g}"


def quantity(value: float | None, unit: str) -> str:
    """A value in a suitable unit: ms or s, bytes or kB or MB."""
    if value is None:
        return NOTHING
    if unit == "ms":
        return f"{value / 1000:.2f}{THIN}s" if abs(value) >= 1000 else f"{number(value)}{THIN}ms"
    if unit == "bytes" and abs(value) >= 1000:
        scale, name = next((s, n) for s, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if abs(value) >= s)
        return f"{number(value / scale)}{THIN}{name}"
    return with_unit(number(value), "" if unit == "1" else unit)


def with_unit(text: str, unit: str) -> str:
    """A number with its unit; a word such as "segments" has a wider space before it."""
    return f"{text}{THIN if len(unit) <= len('Mbit/s') else NO_BREAK}{unit}" if unit else text


def change(interval: Interval, unit: str) -> str:
    """A signed difference with its unit; ``share`` is shown as percent."""
    return with_unit(shifted(interval.value, unit), shown(unit))


def span(interval: Interval, unit: str, *, unit_too: bool = False) -> str:
    """The interval from low to high, by itself without unit, or the reason for none."""
    if interval.low is None or interval.high is None:
        return "too few visits"
    high = change(Interval(interval.high), unit) if unit_too else shifted(interval.high, unit)
    return f"{shifted(interval.low, unit)}{ELLIPSIS}{high}"


def shown(unit: str) -> str:
    return {"share": "%", "1": ""}.get(unit, unit)


def shifted(value: float, unit: str) -> str:
    """A signed number: percent and ms with one decimal below 10, others with three digits."""
    if unit not in ("share", "ms"):
        return (MINUS if value < 0 else "+") + number(abs(value))
    value = 100 * value if unit == "share" else value
    digits = 1 if abs(value) < 9.95 else 0
    rounded = round(value, digits)
    return (MINUS if rounded < 0 else "+" if rounded > 0 else "±") + grouped(abs(rounded), digits)


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def reason(entry: Mapping[str, Any]) -> str:
    """A reason of a run's verdict as sentences."""
    check = str(entry.get("check", ""))  # the data plane's own have spaces
    meaning = CHECKS.get(check.replace(" ", "_"), f"Check {check.replace('_', ' ')}.")
    return f"{meaning} Found {entry.get('found')}; expected {entry.get('expected')}."


def counted(level: Losses) -> str:
    """How many visits of a back end count, and what was left out."""
    if not level.lost:
        return f"All {count(level.counted, 'visit')} count."
    return f"{grouped(level.counted)} of {count(level.ended, 'visit')} count; left out: {level.causes}."


def lower_first(text: str) -> str:
    """For the middle of a sentence."""
    return text[:1].lower() + text[1:]


def instant(unix_ns: int | None) -> str:
    """A wall clock time in UTC, whole seconds."""
    if unix_ns is None:
        return NOTHING
    return datetime.fromtimestamp(unix_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def microseconds(ns: int | None) -> str:
    return NOTHING if ns is None else f"{ns / 1000:.0f}{THIN}µs"


def rate(bit_per_s: float) -> str:
    for limit, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bit_per_s >= limit:
            return f"{bit_per_s / limit:.5g}{THIN}{unit}"
    return f"{bit_per_s:g}{THIN}bit/s"


def listed(words: list[str]) -> str:
    """A, B and C."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def thinned(text: str) -> str:
    """Sentences of others with our thousands: "12,345" has a thin space, "1,234" nothing."""
    return re.sub(r"\d{1,3}(?:,\d{3})+", lambda found: grouped(int(found[0].replace(",", ""))), text)


def count(n: int, noun: str) -> str:
    return f"{grouped(n)} {noun}" if n == 1 else f"{grouped(n)} {noun}s"


def network(resolved: Mapping[str, Any]) -> str:
    """A resolved network in short: capacity towards the client and round trip."""
    capacity = resolved["down"]["capacity"]
    known = {"rate": lambda: rate(capacity["bit_per_s"]), "trace": lambda: "capacity from a trace"}
    shown = known.get(capacity["kind"], lambda: "no bottleneck")()
    round_trip = (resolved["down"]["delay_ns"] + resolved["up"]["delay_ns"]) / 1e6
    return f"{shown}, {round_trip:g}{THIN}ms round trip"


def path(direction: Mapping[str, Any]) -> str:
    """One direction of a resolved network: capacity, delay, jitter, loss, queue, changes."""
    capacity, queue = direction["capacity"], direction["queue"]
    parts = [
        {"rate": lambda: rate(capacity["bit_per_s"]), "trace": lambda: "capacity from a trace"}.get(
            capacity["kind"], lambda: "no bottleneck"
        )(),
        f"{direction['delay_ns'] / 1e6:g}{THIN}ms one way",
    ]
    for name in ("jitter", "loss"):
        if direction[name]["kind"] != "none":
            settings = ", ".join(f"{k} {v}" for k, v in direction[name].items() if k != "kind")
            parts.append(f"{name} {direction[name]['kind']} ({settings})")
    limits = ", ".join(
        f"{grouped(value)} {key}" for key, value in queue.items() if key in ("packets", "bytes") and value
    )
    parts.append(f"{queue['kind']} queue" + (f" of {limits}" if limits else ""))
    if direction["changes"]:
        parts.append(f"{len(direction['changes'])} scheduled changes")
    return "; ".join(parts)


def caveats(results: Results) -> Iterator[str]:
    """What conditions do that a real network or site would not."""
    scenarios = results.manifest["evaluation"]["scenarios"].values()
    parts = [part for scenario in scenarios for part in scenario.get("through", {}).get("parts", ())]
    if any(part["settings"]["kind"] == "pep" for part in parts):
        yield (
            "The PEP ends the browsers' TLS with certificates of the run's own authority. An operator's PEP "
            "could not: for https pages its figures say what would be if users trusted it so far."
        )
    if upgraded := results.upgraded():
        yield upgraded
