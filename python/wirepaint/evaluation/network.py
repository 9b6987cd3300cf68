"""A network: the path between browser and server, each direction by itself.

``load`` reads a catalogue name or a file, ``resolve`` a validated table. Both
return a resolved network: each direction is the exact JSON that the data plane reads
(crates/link-model/src/config.rs), with capacity traces and queue limits. docs/guide/evaluation.md
describes the form of a file.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wirepaint import catalogue, files
from wirepaint.errors import UsageError, show
from wirepaint.evaluation.quantities import Rate, Share, Size, Time, between, rate
from wirepaint.pages.readers.source import Source
from wirepaint.reading import Table, read_toml, refused, such_as, validate, within

IP_BYTES = 1500
"""The largest IP packet of a run."""
LEAST_QUEUE_PACKETS = 50
"""Default queues hold at least this many full frames; one BDP of a slow, short path is less than a burst."""
OPPORTUNITY_BYTES = 1504
"""Bytes of one delivery opportunity in Mahimahi's trace format."""
LARGEST_TRACE = 64 * 2**20
"""Bytes of an unpacked capacity trace."""
MOST_OPPORTUNITIES = 4_000_000
"""Limit for all capacity traces of an evaluation: eight minutes at 100 Mbit/s, in 150 MB of memory."""
TRACES = f"capacity traces of at most {MOST_OPPORTUNITIES:,} opportunities"
LATEST_OPPORTUNITY = 3_600_000_000_000
"""Milliseconds."""

# The ranges of the data plane (crates/link-model/src/check.rs).
Positive = Annotated[int, Field(gt=0, le=2**63 - 1)]
LinkRate = Annotated[Rate, between("1 bit/s", "1000 Gbit/s", rate)]
Variation = Annotated[Time, between("0 ns", "60 min")]
Delay = Annotated[Time, between("0 ns", "59 min")]
"""Nanoseconds; less than the data plane's hour, since the simulator adds the delay of its hosts."""
Span = Annotated[Time, between("1 ns", "60 min")]
PieUpdate = Annotated[Time, between("100 us", "60 min")]
Side = Literal["down", "up"]


class UniformJitter(Table):
    """Delay uniform in ``delay ± range``."""

    kind: Literal["uniform"]
    range: Variation
    reorder: bool = False

    def resolved(self) -> dict[str, Any]:
        return {"kind": self.kind, "range_ns": self.range, "reorder": self.reorder}


class ExponentialJitter(Table):
    """``delay`` and an exponentially distributed time, cut at ten means."""

    kind: Literal["exponential"]
    mean: Variation
    reorder: bool = False

    def resolved(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean_ns": self.mean, "reorder": self.reorder}


class NormalJitter(Table):
    """Delay normal around ``delay``, cut at zero and at four deviations."""

    kind: Literal["normal"]
    stddev: Variation
    reorder: bool = False

    def resolved(self) -> dict[str, Any]:
        return {"kind": self.kind, "stddev_ns": self.stddev, "reorder": self.reorder}


class IndependentLoss(Table):
    """Each packet alone."""

    kind: Literal["independent"]
    probability: Share

    def resolved(self) -> dict[str, Any]:
        return self.model_dump()


class GilbertElliottLoss(Table):
    """Bursts: a two-state Markov chain that steps with each packet."""

    kind: Literal["gilbert_elliott"]
    good_to_bad: Share
    bad_to_good: Share
    loss_in_bad: Share
    loss_in_good: Share = 0.0

    def resolved(self) -> dict[str, Any]:
        return self.model_dump()


class Droptail(Table):
    """Drop-tail with one limit or more; ``bdp`` is in bandwidth-delay products of the path."""

    kind: Literal["droptail"]
    packets: Positive | None = None
    bytes: Size | None = None
    bdp: Annotated[float, Field(gt=0, le=1000)] | None = None

    @model_validator(mode="after")
    def _one_byte_limit(self) -> Droptail:
        if self.bytes is not None and self.bdp is not None:
            raise refused("packets, bytes or bdp; not bytes and bdp together", found="bytes and bdp")
        return self


class Codel(Table):
    """CoDel (RFC 8289)."""

    kind: Literal["codel"]
    target: Span = 5_000_000
    interval: Span = 100_000_000
    packets: Positive = 1000
    ecn: bool = False


class FqCodel(Table):
    """FQ-CoDel (RFC 8290); ``quantum`` in bytes."""

    kind: Literal["fq_codel"]
    flows: Annotated[int, Field(ge=1, le=65_536)] = 1024
    quantum: Annotated[int, Field(ge=64, le=1_000_000)] = 1514
    target: Span = 5_000_000
    interval: Span = 100_000_000
    packets: Positive = 10_240
    ecn: bool = False


class Pie(Table):
    """PIE (RFC 8033)."""

    kind: Literal["pie"]
    target: Span = 15_000_000
    update: PieUpdate = 15_000_000
    packets: Positive = 1000
    ecn: bool = False


class ServiceClass(Table):
    """A class of ``classes``: code points (none: all that no other names), level, share, ceiling, queue."""

    dscp: list[Annotated[int, Field(ge=0, le=63)]] = Field(default_factory=list, max_length=64)
    priority: Annotated[int, Field(ge=0, le=1000)] = 0
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    packets: Positive | None = None
    bytes: Size | None = None
    ceiling: Rate | None = None
    """Its most, whatever the others leave."""
    queue: Annotated[Codel | FqCodel | Pie, Field(discriminator="kind")] | None = None
    """Another discipline than drop-tail with ``packets`` and ``bytes``."""

    @model_validator(mode="after")
    def _one_queue(self) -> ServiceClass:
        if self.queue is not None and (self.packets or self.bytes):
            raise refused("packets and bytes, or a queue; not both", found="both")
        return self

    def resolved(self) -> dict[str, Any]:
        """As the run description says it."""
        said = self.model_dump(exclude={"ceiling", "queue"}, exclude_none=True)
        if self.ceiling is not None:
            said["ceiling_bit_per_s"] = self.ceiling
        if self.queue is not None:
            said["queue"] = _in_ns(self.queue)
        return said


class Classes(Table):
    """Service classes: a queue each, priority between levels, weighted shares within one."""

    kind: Literal["classes"]
    classes: Annotated[list[ServiceClass], Field(min_length=1, max_length=8)]

    @model_validator(mode="after")
    def _each_code_point_in_one_class(self) -> Classes:
        named = [dscp for each in self.classes for dscp in each.dscp]
        if twice := sorted({dscp for dscp in named if named.count(dscp) > 1}):
            raise refused("each dscp in one class", found=f"dscp {twice[0]} twice")
        rest = sum(not each.dscp for each in self.classes)
        if rest != 1:
            raise refused(
                "exactly one class without dscp, which takes all others", found=f"{rest} without dscp"
            )
        return self


Jitter = Annotated[
    UniformJitter | ExponentialJitter | NormalJitter,
    Field(discriminator="kind"),
    such_as('{kind = "uniform", range = "3 ms"}'),
]
Loss = Annotated[
    IndependentLoss | GilbertElliottLoss,
    Field(discriminator="kind"),
    such_as('{kind = "independent", probability = "1 %"}'),
]
Queue = Annotated[
    Droptail | Codel | FqCodel | Pie | Classes,
    Field(discriminator="kind"),
    such_as('{kind = "droptail", bytes = "64 kB"}'),
]


class DropAction(Table):
    """The packet is lost in front of the queue."""

    kind: Literal["drop"]


class HoldAction(Table):
    """The packet comes ``extra`` later than it would; others overtake it."""

    kind: Literal["hold"]
    extra: Span


class MarkAction(Table):
    """Congestion Experienced is set if the packet is ECN-capable."""

    kind: Literal["mark"]


class ScriptedTable(Table):
    """What happens to the ``nth`` packet with payload (``data``) or without (``bare``)."""

    nth: Positive
    what: Literal["data", "bare"] = "data"
    action: Annotated[DropAction | HoldAction | MarkAction, Field(discriminator="kind")]

    def resolved(self) -> dict[str, Any]:
        action = self.action.model_dump()
        if isinstance(self.action, HoldAction):
            action["extra_ns"] = action.pop("extra")
        return {"what": self.what, "nth": self.nth, "action": action}


class _Capacity(Table):
    rate: LinkRate | None = None
    trace: str | None = None

    @model_validator(mode="after")
    def _one_capacity(self) -> _Capacity:
        if self.rate is not None and self.trace is not None:
            raise refused("rate or trace, not both", found="rate and trace")
        return self


class ChangeTable(_Capacity):
    """A change of the path at a time of the run; what is left out stays as it is."""

    at: Time
    delay: Delay | None = None
    jitter: Jitter | None = None
    loss: Loss | None = None


class DirectionTable(_Capacity):
    """One direction. Neither ``rate`` nor ``trace`` means no bottleneck."""

    delay: Delay = 0
    jitter: Jitter | None = None
    loss: Loss | None = None
    queue: Queue | None = None
    overhead: Annotated[int, Field(ge=0, le=1000)] = 14
    changes: list[ChangeTable] = Field(default_factory=list, max_length=10_000)
    scripted: list[ScriptedTable] = Field(default_factory=list, max_length=10_000)

    @model_validator(mode="after")
    def _changes_in_order(self) -> DirectionTable:
        times = [change.at for change in self.changes]
        if times != sorted(times):
            raise refused(
                "changes in order of time", found="an earlier change after a later one", key="changes"
            )
        return self

    @model_validator(mode="after")
    def _queues_take_a_full_frame(self) -> DirectionTable:
        full_frame = IP_BYTES + self.overhead
        limits: dict[str, int | None] = {}
        if isinstance(self.queue, Droptail):
            limits["queue.bytes"] = self.queue.bytes
        if isinstance(self.queue, Classes):
            limits = {f"queue.classes[{i}].bytes": each.bytes for i, each in enumerate(self.queue.classes)}
        for key, limit in limits.items():
            if limit is not None and limit < full_frame:
                raise refused(f"at least {full_frame} B, a full frame", found=f"{limit} B", key=key)
        return self

    @model_validator(mode="after")
    def _scripted_in_order(self) -> DirectionTable:
        for what in ("data", "bare"):
            numbers = [entry.nth for entry in self.scripted if entry.what == what]
            if numbers != sorted(set(numbers)):
                raise refused(
                    f"each number of {what} packets once, in ascending order",
                    found=", ".join(map(str, numbers)),
                    key="scripted",
                )
        return self


class PathChange(Table):
    """A change of both directions at a time of the run."""

    at: Time
    network: str | None = None
    """Handover: from now on the path has the rates, delays, jitter and loss of this network. Addresses,
    queues and the packets under way stay."""
    outage: Annotated[Time, between("1 ns", "1440 min")] | None = None
    """So long no packet passes; those that come wait in the queue, or find it full."""

    @model_validator(mode="after")
    def _one_of_both(self) -> PathChange:
        if (self.network is None) == (self.outage is None):
            raise refused("network or outage", found="both" if self.network else "neither")
        return self


class NetworkTable(Table):
    """A network as a file or an evaluation writes it."""

    title: Annotated[str, Field(min_length=1, max_length=100)]
    summary: str = ""
    source: str = ""
    down: DirectionTable
    up: DirectionTable
    changes: list[PathChange] = Field(default_factory=list, max_length=1_000)
    """Handovers and outages, in order of time."""

    @model_validator(mode="after")
    def _in_order(self) -> NetworkTable:
        ends = [(change.at, change.at + (change.outage or 0)) for change in self.changes]
        if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(ends)):
            raise refused("each after the end of the one before", found="an overlap", key="changes")
        if self.changes and (self.down.changes or self.up.changes):
            raise refused("changes of the path, or of its directions; not both", found="both", key="changes")
        return self


class Network(BaseModel):
    """A network, resolved. ``down`` is server to client, ``up`` client to server."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    summary: str
    source: str
    down: dict[str, Any]
    up: dict[str, Any]

    def direction(self, side: Side) -> dict[str, Any]:
        """One direction as the data plane reads it."""
        return dict(self.down if side == "down" else self.up)

    @property
    def rtt_ns(self) -> int:
        """Round-trip time of the empty path without serialisation, in nanoseconds."""
        return self.down["delay_ns"] + self.up["delay_ns"]

    def rate(self, side: Side) -> float | None:
        """Mean capacity of one direction in bit/s; None without a bottleneck."""
        return mean_rate(self.direction(side)["capacity"])

    @property
    def opportunities(self) -> int:
        """Number of opportunities of all its capacity traces."""
        parts = (part for side in (self.down, self.up) for part in (side, *side["changes"]))
        return sum(len(part.get("capacity", {}).get("opportunities_ms", ())) for part in parts)

    def fingerprint(self) -> dict[str, Any]:
        """The network with each capacity trace replaced by its hash: equal when the path is equal."""

        def shortened(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: shortened(inner) for key, inner in value.items()}
            if isinstance(value, list) and len(value) > 64:
                return "sha256:" + hashlib.sha256(json.dumps(value).encode()).hexdigest()
            return [shortened(inner) for inner in value] if isinstance(value, list) else value

        return {"name": self.name, "down": shortened(self.down), "up": shortened(self.up)}


def load(reference: str, base: Path = Path(), place: str = "") -> Network:
    """The network of a catalogue name or of a path (relative to ``base``); raises UsageError at ``place``."""
    path = catalogue.find("network", reference, base, place)
    table = validate(NetworkTable, read_toml(path), str(path), every=True)
    return resolve(table, catalogue.name_of(path), path.parent, str(path))


def abridged(reference: str) -> dict[str, Any]:
    """The network of :func:`load`, with name, length and mean rate in place of each capacity trace."""
    path = catalogue.find("network", reference, Path(), "")
    table = validate(NetworkTable, read_toml(path), str(path))
    shown = resolve(table, catalogue.name_of(path), path.parent, str(path)).model_dump()
    for asked, found in ((table.down, shown["down"]), (table.up, shown["up"])):
        own = [asked.trace, *(change.trace for change in asked.changes)]
        for trace, resolved in itertools.zip_longest(own, [found, *found["changes"]]):
            if resolved.get("capacity", {}).get("kind") == "trace":
                times = resolved["capacity"]["opportunities_ms"]
                resolved["capacity"] = {
                    "kind": "trace",
                    "trace": trace,
                    "opportunities": len(times),
                    "duration_ms": times[-1],
                    "mean_bit_per_s": round(mean_rate(resolved["capacity"]) or 0),
                }
    return shown


def resolve(table: NetworkTable, name: str, base: Path, place: str) -> Network:
    """The network of a validated table. ``base`` is the folder of relative traces; raises UsageError."""
    rtt = table.down.delay + table.up.delay
    traces = _Traces(base)
    directions = {}
    for side, direction in (("down", table.down), ("up", table.up)):
        directions[side] = _direction(direction, rtt, traces, within(place, side))
    for index, change in enumerate(table.changes):
        _change_path(directions, change, base, within(place, f"changes[{index}]"))
    return Network(name=name, title=table.title, summary=table.summary, source=table.source, **directions)


def _change_path(directions: dict[str, dict[str, Any]], change: PathChange, base: Path, place: str) -> None:
    """Adds a handover or an outage to the changes of both directions."""
    other = None if change.network is None else load(change.network, base, f"{place}.network")
    if other is not None and any(other.direction(side)["changes"] for side in ("down", "up")):
        raise UsageError(f"{place}.network", show(change.network), "a network that does not change itself")
    for side, direction in directions.items():
        changes: list[dict[str, Any]] = direction["changes"]
        if other is not None:
            kept = ("capacity", "delay_ns", "jitter", "loss")
            side_of_other = other.direction("down" if side == "down" else "up")
            changes.append({"at_ns": change.at} | {key: side_of_other[key] for key in kept})
            continue
        assert change.outage is not None
        now = next((c["capacity"] for c in reversed(changes) if "capacity" in c), direction["capacity"])
        if now["kind"] == "trace":
            accepted = "an outage of a network with rates; a capacity trace has its own"
            raise UsageError(f"{place}.outage", f"an outage of a trace {side}", accepted)
        changes.append({"at_ns": change.at, "capacity": {"kind": "rate", "bit_per_s": 0}})
        changes.append({"at_ns": change.at + change.outage, "capacity": now})


class _Traces:
    """Reads the capacity traces of a network; ``base`` is the folder of relative paths."""

    def __init__(self, base: Path) -> None:
        self._base, self._room = base, MOST_OPPORTUNITIES

    def capacity(self, table: _Capacity, place: str) -> dict[str, Any] | None:
        """The capacity in a table; None if it has none."""
        if table.rate is not None:
            return {"kind": "rate", "bit_per_s": table.rate}
        if table.trace is None:
            return None
        times = _opportunities(catalogue.find("capacity trace", table.trace, self._base, place))
        self._room -= len(times)
        if self._room < 0:
            raise UsageError(place, "more than that", f"{TRACES} in a network")
        return {"kind": "trace", "opportunities_ms": times}


def _direction(table: DirectionTable, rtt_ns: int, traces: _Traces, place: str) -> dict[str, Any]:
    capacity = traces.capacity(table, f"{place}.trace") or {"kind": "unlimited"}
    return {
        "capacity": capacity,
        "delay_ns": table.delay,
        "jitter": table.jitter.resolved() if table.jitter else {"kind": "none"},
        "loss": table.loss.resolved() if table.loss else {"kind": "none"},
        "queue": _queue(table.queue, capacity, rtt_ns, IP_BYTES + table.overhead, place),
        "changes": [_change(c, traces, f"{place}.changes[{i}].trace") for i, c in enumerate(table.changes)],
        **({"scripted": [entry.resolved() for entry in table.scripted]} if table.scripted else {}),
        "overhead_bytes": table.overhead,
    }


def _change(table: ChangeTable, traces: _Traces, place: str) -> dict[str, Any]:
    change: dict[str, Any] = {"at_ns": table.at}
    if capacity := traces.capacity(table, place):
        change["capacity"] = capacity
    if table.delay is not None:
        change["delay_ns"] = table.delay
    if table.jitter:
        change["jitter"] = table.jitter.resolved()
    if table.loss:
        change["loss"] = table.loss.resolved()
    return change


def _queue(
    queue: Queue | None, capacity: dict[str, Any], rtt_ns: int, full_frame: int, place: str
) -> dict[str, Any]:
    rate = mean_rate(capacity)
    if queue is None:
        if rate is None:
            return {"kind": "droptail"}
        return {"kind": "droptail", "bytes": max(_bdp(rate, rtt_ns), LEAST_QUEUE_PACKETS * full_frame)}
    if isinstance(queue, Droptail):
        limits = queue.model_dump(exclude_none=True, exclude={"bdp"})
        if queue.bdp is not None:
            if rate is None:
                raise UsageError(
                    f"{place}.queue.bdp",
                    f"{queue.bdp} without a capacity",
                    "bdp where rate or trace is given",
                )
            limits["bytes"] = max(round(queue.bdp * _bdp(rate, rtt_ns)), full_frame)
        return limits
    if isinstance(queue, Classes):
        if rate is None and any(each.ceiling for each in queue.classes):
            found, accepted = "a ceiling without a capacity", "ceilings where rate or trace is given"
            raise UsageError(f"{place}.queue.classes", found, accepted)
        return {"kind": queue.kind, "classes": [each.resolved() for each in queue.classes]}
    return _in_ns(queue)


def _in_ns(queue: Codel | FqCodel | Pie) -> dict[str, Any]:
    times = {"target", "interval", "update"}
    return {f"{key}_ns" if key in times else key: value for key, value in queue.model_dump().items()}


def mean_rate(capacity: dict[str, Any]) -> float | None:
    """Mean rate of a capacity in bit/s; None if it is unlimited."""
    if capacity["kind"] == "rate":
        return float(capacity["bit_per_s"])
    if capacity["kind"] == "trace":
        times = capacity["opportunities_ms"]
        return len(times) * OPPORTUNITY_BYTES * 8 * 1000 / times[-1]
    return None


def _bdp(rate: float, rtt_ns: int) -> int:
    """Bandwidth-delay product in bytes."""
    return round(rate * rtt_ns / 8e9)


@lru_cache(maxsize=4)
def _opportunities(path: Path) -> list[int]:
    """Reads a trace in Mahimahi's format: one whole millisecond per line, ascending, wrapping at the last.

    The list is shared: do not change it.
    """
    accepted = "whole milliseconds, one a line, ascending, the last above 0 (Mahimahi's format)"
    times: list[int] = []
    for number, line in enumerate(io.BytesIO(_unpacked(path, accepted)), 1):
        if not (line := line.strip()):
            continue
        fits = line.isdigit() and len(line) <= 15
        at = int(line) if fits else -1
        if not (times[-1] if times else 0) <= at <= LATEST_OPPORTUNITY:
            raise UsageError(f"{path}: line {number}", show(line[:40].decode("utf-8", "replace")), accepted)
        times.append(at)
        if len(times) > MOST_OPPORTUNITIES:
            raise UsageError(str(path), "more than that", TRACES)
    if not times or times[-1] == 0:
        raise UsageError(str(path), "no opportunity after 0 ms", accepted)
    return times


def _unpacked(path: Path, accepted: str) -> bytes:
    most = f"{accepted}, at most {LARGEST_TRACE // 2**20} MiB"
    with files.opened(path, accepted) as file:
        return Source(file, str(path), LARGEST_TRACE, most).read(LARGEST_TRACE)


__all__ = ["Network", "NetworkTable", "abridged", "load", "mean_rate", "resolve"]
