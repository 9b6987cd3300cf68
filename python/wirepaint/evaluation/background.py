"""Background traffic of a scenario: flows that are there whatever is measured.

A level of the axis ``background`` is the name of a ``[[background]]`` table, or ``none``. Its flows are in
every run of the scenario, for each transport the same. With ``effective`` their number is found: so many
equal flows that one more bulk flow gets this rate (FLD section 4: an LTE cell of 100 Mbit/s, whose users see
25).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from wirepaint.dataplane import simulate
from wirepaint.dataplane.description import Congestion as Instance
from wirepaint.dataplane.description import Flow, Run, one_path
from wirepaint.errors import UsageError
from wirepaint.evaluation import flows as of_flows
from wirepaint.evaluation.congestion import NATIVE
from wirepaint.evaluation.flows import FlowTable, PlannedFlow
from wirepaint.evaluation.network import Network
from wirepaint.evaluation.quantities import Rate
from wirepaint.reading import ShortName, Table, nearest, show

NONE = "none"
MOST = 200
"""Background flows that ``effective`` may ask for."""
PROBE_NS = (10 * 10**9, 40 * 10**9)
"""The probe starts beside flows that share the link already, and is cut off at the second time."""


class BackgroundTable(Table):
    """Flows that a scenario has by the name of this table."""

    name: ShortName
    flows: list[FlowTable] = Field(min_length=1, max_length=of_flows.MOST_FLOWS)
    effective: Rate | None = None
    """Goodput down that is left for one more bulk flow; the number of the flows is found for it."""


class Background(BaseModel):
    """The background traffic of a scenario, resolved.

    ``left_bit_per_s`` is the goodput that one more bulk flow has beside it in the simulator, where
    ``effective`` asked for one.
    """

    model_config = ConfigDict(frozen=True)

    name: str = NONE
    flows: tuple[PlannedFlow, ...] = ()
    left_bit_per_s: int | None = None


def resolve(
    name: str, tables: Sequence[BackgroundTable], backends: Sequence[str], base: Path, place: str, path: str
) -> tuple[Background, BackgroundTable | None]:
    """The background of a level, with its table; :func:`fitted` then finds the number of its flows.

    Raises UsageError at ``place`` for an unknown name, and below ``path`` for faults of its flows.
    """
    if name == NONE:
        return Background(), None
    found = [(index, table) for index, table in enumerate(tables) if table.name == name]
    if not found:
        raise UsageError(place, show(name), nearest(name, [NONE, *(table.name for table in tables)]))
    [(index, table)] = found
    where = f"{path}[{index}]"
    if table.effective is not None:
        (first, *more) = table.flows
        if more or first.count != 1 or not first.is_endless or first.direction != "down":
            accepted = "a single table of endless flows down without count, whose number is found"
            raise UsageError(f"{where}.flows", f"{len(table.flows)} with effective", accepted)
    resolved = of_flows.resolve(table.flows, backends, base, f"{where}.flows")
    flows = tuple(flow.model_copy(update={"background": True}) for flow in resolved)
    return Background(name=name, flows=flows), table


def fitted(background: Background, table: BackgroundTable | None, network: Network, place: str) -> Background:
    """The background on a network: with ``effective``, as many flows as leave one more bulk flow that.

    It is found in the simulator, so both back ends and all transports have the same number.
    """
    if table is None or table.effective is None:
        return background
    [flow] = background.flows
    number, left = _number(_Asked(network, flow), table.effective)
    if number is None:
        alone = f"at most {left / 1e6:.3g} Mbit/s, what a flow gets alone on {network.name}"
        if left >= table.effective:
            alone = f"at least {left / 1e6:.3g} Mbit/s, what is left beside {MOST} flows on {network.name}"
        raise UsageError(f"{place}.effective", f"{table.effective / 1e6:g} Mbit/s", alone)
    flows = [flow.model_copy(update={"name": f"{flow.name}.{n}"}) for n in range(1, number + 1)]
    return background.model_copy(update={"flows": tuple(flows), "left_bit_per_s": left})


@dataclass(frozen=True)
class _Asked:
    network: Network
    flow: PlannedFlow

    def left(self, number: int) -> int:
        """Goodput in bit/s of one more bulk flow beside so many."""
        control = self.flow.congestion
        name, parameters = NATIVE["cubic"]
        own, own_parameters = name, parameters
        if control is not None:
            own, own_parameters = control.simulated, NATIVE.get(control.name, ("", control.parameters))[1]
        start, end = PROBE_NS
        beside = Flow(
            name="beside",
            kind=self.flow.kind,
            start_ns=self.flow.start_ns,
            congestion="own",
            background=True,
            nodelay=not self.flow.nagle,
        )
        probe = Flow(name="probe", kind={"kind": "bulk"}, start_ns=start)
        with tempfile.TemporaryDirectory(prefix="wirepaint-") as folder:
            said = simulate.one(
                Run(
                    id="left",
                    trace_dir=Path(folder),
                    work_dir=Path(folder),
                    **one_path(
                        self.network.direction("down"),
                        self.network.direction("up"),
                        client="usual",
                        server="usual",
                    ),
                    congestion=[
                        Instance(algorithm=name, name="usual", parameters=parameters),
                        Instance(algorithm=own, name="own", parameters=own_parameters),
                    ],
                    flows=[*[beside] * number, probe],
                    until_ns=end,
                    tables=["host"],
                )
            )
        return round(said["flows"][-1]["received_bytes"] * 8e9 / (end - start))


def said(background: Background, network: Network) -> str | None:
    """What was found for ``effective``, in a sentence; None if it was not asked for."""
    if background.left_bit_per_s is None:
        return None
    number = len(background.flows)
    flows = f"{number} flow{'' if number == 1 else 's'}"
    return (
        f"Background {background.name} on {network.name}: {flows}, beside which one more bulk flow gets "
        f"{background.left_bit_per_s / 1e6:.3g} Mbit/s in the simulator."
    )


def _number(asked: _Asked, effective: int) -> tuple[int | None, int]:
    """The number of flows that leaves the goodput nearest to ``effective``, with that goodput.

    None, with the goodput at the nearest end, where no number from 0 to ``MOST`` can.
    """

    @cache
    def left(number: int) -> int:
        return asked.left(number)

    if left(0) < effective:
        return None, left(0)
    low, high = 0, 1
    while left(high) > effective:
        if high >= MOST:
            return None, left(high)
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if left(middle) > effective else (low, middle)
    number = min((low, high), key=lambda each: abs(left(each) - effective))
    return number, left(number)
