"""Flows of an evaluation: transfers without a browser.

``[[flows]]`` stands beside ``[[user_agents]]``, or alone: an evaluation of transports needs no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import web_flows
from wirepaint.evaluation.congestion import Congestion
from wirepaint.evaluation.quantities import Rate, Size, Time, between, rate, size, time
from wirepaint.reading import ShortName, Table, Text, refused, show

MOST_FLOWS = 1_000
"""Tables, and flows of all tables together."""
ENDLESS = "endless"
_KINDS = ("bulk", "rate", "exchange", "web")
MOST_WEB_FLOWS = 10_000
"""Web flows of a table in a run, on average."""
MOST_OF_IPERF3 = 100
"""Flows of a run that iperf3 carries out: each has two processes."""
_SECOND = 10**9
_AMOUNT = 'a size such as "10 MB", a time such as "30 s", or "endless"'


def _amount(text: str) -> str:
    if text != ENDLESS and _read(size, text) is None and _read(time, text) is None:
        raise refused(_AMOUNT)
    return text


def _read(reader: Any, text: str) -> int | None:
    try:
        return reader(text)
    except PydanticCustomError:
        return None


def _rate(text: str) -> str:
    if text.split() != ["0"] and _read(rate, text) is None:
        raise refused('a rate such as "512 kbit/s", or "0" for idle')
    return text


class RateChange(Table):
    """A rate from a time on."""

    at: Time = 0
    """Counted from the flow's start."""
    rate: Annotated[str, AfterValidator(_rate)]

    @property
    def bit_per_s(self) -> int:
        return 0 if self.rate.split() == ["0"] else rate(self.rate)


class ExchangeTable(Table):
    """Requests and answers, one after another."""

    request: Size
    response: Size
    count: int | None = Field(None, ge=1)
    """None for no end."""
    pause: Time = 0
    """Between the last byte of an answer and the next request."""


class WebTable(Table):
    """Short flows at random times, with measured sizes (see :mod:`wirepaint.evaluation.web_flows`)."""

    load: Rate
    """Payload that they offer on average."""
    until: Annotated[Time, between("1 ms", "1440 min")]
    """None begins later."""


class FlowTable(Table):
    """A flow, or ``count`` equal ones. It has one of ``bulk``, ``rate``, ``exchange`` and ``web``."""

    name: ShortName
    count: int = Field(1, ge=1, le=MOST_FLOWS)
    bulk: Annotated[str, AfterValidator(_amount)] | None = None
    """Sends as fast as TCP lets it: so many bytes, for so long, or without end."""
    rate: Rate | list[RateChange] | None = None
    """Writes at a constant rate, or at rates that change."""
    write: Size = 1460
    """Bytes of a write of a constant-rate flow."""
    exchange: ExchangeTable | None = None
    web: WebTable | None = None
    direction: Literal["down", "up"] = "down"
    """Down: the server sends."""
    start: Time = 0
    """Counted from the beginning of the run, or from the end of the flow that it comes ``after``."""
    stop: Time | None = None
    """When the sender closes, counted as ``start``."""
    after: ShortName | None = None
    """A flow above this one: it begins when that one has ended."""
    in_turn: bool = False
    """Each of the ``count`` flows begins when the one before has ended."""
    congestion: Text | None = None
    """The sender's congestion control; None for the scenario's, or the client's for a flow up."""
    nagle: bool = False
    """Small writes wait for acknowledgements (RFC 896)."""
    dscp: int = Field(0, ge=0, le=63)
    """Code point of its packets (RFC 2474): its service class."""
    tool: Literal["wirepaint", "iperf3"] = "wirepaint"
    """What carries it out; iperf3 on the testbed only."""

    @model_validator(mode="after")
    def _one_kind(self) -> FlowTable:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = f"{', '.join(given)} in flow {self.name}" if given else f"none in flow {self.name}"
            raise refused(f"one of {', '.join(_KINDS)}", found)
        if self.web is not None:
            if (
                self.count != 1
                or self.in_turn
                or self.stop
                or self.start
                or self.after
                or self.direction != "down"
            ):
                accepted = (
                    "no count, in_turn, start, stop, after or direction: their times and number are drawn"
                )
                raise refused(accepted, f"another key in flow {self.name}", "web")
            if (flows := self.web.load * self.web.until / 8e9 / web_flows.mean()) > MOST_WEB_FLOWS:
                raise refused(
                    f"at most {MOST_WEB_FLOWS}: a lower load, or a shorter time", f"{flows:.0f} flows", "web"
                )
        if self.stop is not None and (self.stop <= self.start or self._seconds is not None):
            accepted = "a time after start, and no bulk that lasts for a time"
            raise refused(accepted, show(self.stop), "stop")
        if isinstance(self.rate, list):
            times = [change.at for change in self.rate]
            if not times or times != sorted(times):
                raise refused("at least one rate, in order of time", f"{len(times)} rates", "rate")
        if self.tool == "iperf3":
            self._iperf3_can()
        return self

    def _iperf3_can(self) -> None:
        """Raises for what iperf3 does not do."""
        if self.bulk is None and not isinstance(self.rate, int):
            kind = next(kind for kind in _KINDS if getattr(self, kind) is not None)
            raise refused('bulk or one rate with tool = "iperf3"', f"{kind} in flow {self.name}", kind)
        if self.direction == "up" and self.bulk is not None and _read(size, self.bulk) is not None:
            accepted = (
                'a time with tool = "iperf3" and direction = "up": it ends before all bytes have arrived'
            )
            raise refused(accepted, show(self.bulk), "bulk")
        if ((stop := self.stop_ns()) is not None) and (stop - self.start) % _SECOND:
            key = "stop" if self._seconds is None else "bulk"
            raise refused('whole seconds from the start with tool = "iperf3"', show(getattr(self, key)), key)

    @property
    def is_endless(self) -> bool:
        """True for a flow that never ends by itself."""
        if self.stop is not None or self.web is not None:
            return False
        if self.exchange is not None:
            return self.exchange.count is None
        if isinstance(self.rate, list):
            return self.rate[-1].bit_per_s > 0
        return self.rate is not None or self.bulk == ENDLESS

    @property
    def _seconds(self) -> int | None:
        """Duration of a bulk flow in ns."""
        return None if self.bulk is None else _read(time, self.bulk)

    def kind(self) -> dict[str, Any]:
        """What it transfers, as the run description says it; of web flows what is drawn (:func:`in_run`)."""
        if self.web is not None:
            return {"kind": "web", "load_bit_per_s": self.web.load, "until_ns": self.web.until}
        if self.exchange is not None:
            asked = self.exchange
            kind = {"request_bytes": asked.request, "response_bytes": asked.response, "count": asked.count}
            return {"kind": "request_response", **kind, "pause_ns": asked.pause}
        if self.rate is not None:
            changes = self.rate if isinstance(self.rate, list) else [RateChange(rate=f"{self.rate} bit/s")]
            rates = [{"at_ns": self.start + each.at, "bit_per_s": each.bit_per_s} for each in changes]
            return {"kind": "cbr", "write_bytes": self.write, "rates": rates}
        assert self.bulk is not None
        return {"kind": "bulk", "bytes": _read(size, self.bulk)}

    def stop_ns(self) -> int | None:
        """When the sender closes; None if the amount decides."""
        return self.stop if self._seconds is None else self.start + self._seconds


class PlannedFlow(BaseModel):
    """One flow of a run. Times in ns, counted as the run description counts them."""

    model_config = ConfigDict(frozen=True)

    name: str
    """Unique in the run: that of its table, with a dot and a number where the table asks for several."""
    kind: dict[str, Any]
    start_ns: int
    stop_ns: int | None
    sender: Literal["server", "client"]
    after: str | None
    congestion: Congestion | None
    dscp: int
    nagle: bool
    endless: bool
    tool: Literal["wirepaint", "iperf3"] = "wirepaint"
    background: bool = False
    """It is there whatever is measured: a run does not wait for its end."""


def are_drawn(flows: Sequence[PlannedFlow]) -> bool:
    """Whether each run has flows of its own."""
    return any(flow.kind["kind"] == "web" for flow in flows)


def in_run(flows: Sequence[PlannedFlow], seed: int) -> tuple[PlannedFlow, ...]:
    """The flows of one run: web flows are drawn from its ``seed``, the others are as they are."""
    found: list[PlannedFlow] = []
    for flow in flows:
        if flow.kind["kind"] != "web":
            found.append(flow)
            continue
        asked = flow.kind["load_bit_per_s"], flow.kind["until_ns"]
        found += [
            flow.model_copy(update={"name": f"{flow.name}.{number}", "start_ns": start, "kind": kind})
            for number, (start, kind) in enumerate(web_flows.drawn(*asked, f"{seed} {flow.name}"), 1)
        ]
    return tuple(found)


def table_of(flow: str) -> str:
    """The name of the table of a flow."""
    return flow.partition(".")[0]


def resolve(
    tables: Sequence[FlowTable], backends: Sequence[str], base: Path, place: str
) -> tuple[PlannedFlow, ...]:
    """All flows of a run; raises UsageError at ``place``."""
    above: dict[str, list[str]] = {}
    tools: dict[str, str] = {}
    planned: list[PlannedFlow] = []
    for index, table in enumerate(tables):
        where = f"{place}[{index}]"
        if table.name in above:
            raise UsageError(f"{where}.name", f"a second {show(table.name)}", "names that differ")
        names = [table.name] if table.count == 1 else [f"{table.name}.{n}" for n in range(1, table.count + 1)]
        before = _before(table, names, above, where)
        if table.tool == "iperf3" and "simulator" in backends:
            accepted = 'no such key, or backend = "testbed": the simulator has flows of its own'
            raise UsageError(f"{where}.tool", show(table.tool), accepted)
        if table.after is not None and tools[table.after] != table.tool:
            accepted = f"a flow above it with tool = {show(table.tool)}"
            raise UsageError(f"{where}.after", f"{table.after}, a flow of {tools[table.after]}", accepted)
        control = None
        if table.congestion is not None:
            control = congestions.resolve(table.congestion, f"{where}.congestion", backends, base)
            if control.file is not None:
                accepted = "a name; a C file of your own goes under scenarios.congestion"
                raise UsageError(f"{where}.congestion", show(table.congestion), accepted)
        planned += [
            PlannedFlow(
                name=name,
                kind=table.kind(),
                start_ns=table.start,
                stop_ns=table.stop_ns(),
                sender="server" if table.direction == "down" else "client",
                after=after,
                congestion=control,
                dscp=table.dscp,
                nagle=table.nagle,
                endless=table.is_endless,
                tool=table.tool,
            )
            for name, after in zip(names, before, strict=True)
        ]
        above[table.name] = names
        tools[table.name] = table.tool
    if len(planned) > MOST_FLOWS:
        raise UsageError(place, f"{len(planned)} flows", f"at most {MOST_FLOWS}")
    return tuple(planned)


def _before(
    table: FlowTable, names: Sequence[str], above: dict[str, list[str]], where: str
) -> list[str | None]:
    """For each flow of a table the flow that it waits for."""
    first: list[str | None] = [None] * len(names)
    if table.after is not None:
        waited = above.get(table.after)
        if waited is None:
            accepted = f"the name of a flow above it{': ' if above else ''}{', '.join(above)}"
            raise UsageError(f"{where}.after", show(table.after), accepted)
        if len(waited) not in (1, len(names)):
            accepted = f"a flow with count 1 or {len(names)}"
            raise UsageError(f"{where}.after", f"{table.after}, with count {len(waited)}", accepted)
        first = [*waited] if len(waited) == len(names) else [waited[0]] * len(names)
    return [first[0], *names[:-1]] if table.in_turn else first
