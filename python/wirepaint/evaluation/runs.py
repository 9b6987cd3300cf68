"""The runs of a plan: each is made when it is asked for, since there may be a million."""

from __future__ import annotations

import hashlib
import itertools
import random
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, overload

from wirepaint.evaluation import flows as of_flows
from wirepaint.evaluation.axes import Levels, axes, levels
from wirepaint.evaluation.capture import CaptureTable
from wirepaint.evaluation.checking import BackendName
from wirepaint.evaluation.flows import PlannedFlow
from wirepaint.evaluation.model import EvaluationFile
from wirepaint.evaluation.users import OfRun, PlannedUser, PlannedVisit, Visitor

FLOWS = "flows"
"""Name of user agent and page of a run of flows alone."""
_CONDITIONS = 25_000
"""Conditions that are kept: each takes some 2.5 kB."""


class Scenario(Levels):
    """One combination of the axes."""

    name: str
    backend: BackendName
    servers: Literal["apart", "together"]


class ResolvedRun(Levels):
    """One run, complete: all that its result depends on but the machine.

    ``user_agent`` and ``page_name`` are those of the one visit, or the name of the group of users, or
    ``flows``. ``visit`` 0 is the warm-up; ``attempt`` is 1 unless the pool repeats the run. ``timeout_s`` is
    the longest time of a visit, or of the flows alone.
    """

    key: str
    title: str
    backend: BackendName
    seed: int
    scenario: str
    sysctls: dict[str, str]
    user_agent: str
    page_name: str
    visit: int
    warmup: bool
    timeout_s: float
    packet_trace: bool
    tls: Literal["1.2", "1.3"] = "1.3"
    servers: Literal["apart", "together"] = "apart"
    capture: CaptureTable | None = None
    flows: tuple[PlannedFlow, ...] = ()
    users: tuple[PlannedUser, ...] = ()
    visits: tuple[PlannedVisit, ...] = ()
    attempt: int = 1

    def begins_s(self, load_s: float) -> list[float]:
        """When the visits begin, if each page takes ``load_s`` to load."""
        begins: list[float] = []
        for visit in self.visits:
            before = begins[visit.after] + load_s if visit.after is not None else 0.0
            begins.append(before + visit.start_ns / 1e9)
        return begins

    @property
    def longest_s(self) -> float:
        """Longest time of the whole run."""
        return max(self.begins_s(self.timeout_s), default=0.0) + self.timeout_s

    @property
    def least_s(self) -> float:
        """Least time of the whole run on a path of real time: that of flows which go on to its end, and of
        visits which begin late."""
        goes_on = not self.visits and any(flow.endless and flow.stop_ns is None for flow in self.flows)
        return max(self.begins_s(0.0), default=self.timeout_s if goes_on else 0.0)


@dataclass(frozen=True)
class Alone:
    """No user: runs of flows alone."""

    visits: int


@dataclass(frozen=True)
class Condition:
    """A visitor in a scenario: ``first`` is its first run, ``made`` gives what differs in another visit."""

    first: ResolvedRun
    made: Callable[[int], dict[str, Any]]

    def run(self, visit: int) -> ResolvedRun:
        """The run of a visit."""
        if visit == self.first.visit:
            return self.first
        return _run(self.first.__dict__ | self.made(visit))


_NAMES = tuple(ResolvedRun.model_fields)
_FIELDS = set(_NAMES)


def _run(fields: dict[str, Any]) -> ResolvedRun:
    """A run of all its fields, in a tenth of the time of ``model_construct``."""
    run = object.__new__(ResolvedRun)
    object.__setattr__(run, "__dict__", fields)
    object.__setattr__(run, "__pydantic_fields_set__", _FIELDS)
    object.__setattr__(run, "__pydantic_extra__", None)
    object.__setattr__(run, "__pydantic_private__", None)
    return run


class Runs(Sequence[ResolvedRun]):
    """The runs of a plan in their order."""

    @abstractmethod
    def made(self, place: int) -> ResolvedRun:
        """The run at a place, from 0."""

    @abstractmethod
    def first_of_each(self) -> Iterator[ResolvedRun]:
        """The first run of each visitor in each scenario."""

    @abstractmethod
    def condition_of(self, place: int) -> int:
        """The number of the visitor and scenario of the run at a place."""

    @abstractmethod
    def alike(self, place: int) -> ResolvedRun:
        """The first run of the visitor and scenario of the run at a place, which costs nothing to make."""

    @abstractmethod
    def visit(self, place: int) -> int:
        """The visit of the run at a place; 0 is the warm-up."""

    @property
    @abstractmethod
    def warmups(self) -> int:
        """Number of runs that warm up."""

    @overload
    def __getitem__(self, place: int) -> ResolvedRun: ...
    @overload
    def __getitem__(self, place: slice) -> list[ResolvedRun]: ...
    def __getitem__(self, place: int | slice) -> ResolvedRun | list[ResolvedRun]:
        if isinstance(place, slice):
            return [self.made(one) for one in range(len(self))[place]]
        return self.made(range(len(self))[place])

    def __iter__(self) -> Iterator[ResolvedRun]:
        return map(self.made, range(len(self)))


@dataclass(frozen=True)
class Product(Runs):
    """Scenarios times visitors: of each run the number of its ``condition``, and its visit."""

    condition: Callable[[int], Condition]
    numbers: array[int]
    visits: array[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def made(self, place: int) -> ResolvedRun:
        return self.condition(self.numbers[place]).run(self.visits[place])

    def first_of_each(self) -> Iterator[ResolvedRun]:
        return (self.condition(number).first for number in dict.fromkeys(self.numbers))

    def condition_of(self, place: int) -> int:
        return self.numbers[place]

    def alike(self, place: int) -> ResolvedRun:
        return self.condition(self.numbers[place]).first

    def visit(self, place: int) -> int:
        return self.visits[place]

    @property
    def warmups(self) -> int:
        return self.visits.count(0)


@dataclass(frozen=True)
class Changed(Runs):
    """Other runs after a ``change`` of each."""

    runs: Runs
    change: Callable[[ResolvedRun], ResolvedRun]

    def __len__(self) -> int:
        return len(self.runs)

    def made(self, place: int) -> ResolvedRun:
        return self.change(self.runs[place])

    def first_of_each(self) -> Iterator[ResolvedRun]:
        return map(self.change, self.runs.first_of_each())

    def condition_of(self, place: int) -> int:
        return self.runs.condition_of(place)

    def alike(self, place: int) -> ResolvedRun:
        return self.change(self.runs.alike(place))

    def visit(self, place: int) -> int:
        return self.runs.visit(place)

    @property
    def warmups(self) -> int:
        return self.runs.warmups


def planned(
    file: EvaluationFile,
    scenarios: Sequence[Scenario],
    visitors: Sequence[Visitor | Alone],
    flows: tuple[PlannedFlow, ...],
) -> Product:
    """The product of scenarios and visitors, in the order that ``planning`` describes."""
    order = random.Random(f"wirepaint order {file.seed}")
    each = len(visitors)
    numbers, visits = array("I"), array("I")

    fixed = {
        (index, http): visitor.of_run(http, 0)
        for index, visitor in enumerate(visitors)
        if not isinstance(visitor, Alone) and not visitor.is_drawn
        for http in {scenario.http for scenario in scenarios}
    }

    @lru_cache(maxsize=_CONDITIONS)
    def condition(number: int) -> Condition:
        scenario, index = scenarios[number // each], number % each
        return _condition(file, scenario, visitors[index], flows, fixed.get((index, scenario.http)))

    def add(some: Iterable[int], visit: int) -> None:
        before = len(numbers)
        numbers.extend(some)
        visits.extend(itertools.repeat(visit, len(numbers) - before))

    if file.warmup:
        add((i % len(scenarios) * each + i % each for i in range(max(len(scenarios), each))), 0)
    for visit in range(1, max(visitor.visits for visitor in visitors) + 1):
        some = [n for n in range(len(scenarios) * each) if visit <= visitors[n % each].visits]
        if file.order == "interleaved":
            order.shuffle(some)
        add(some, visit)
    if file.order == "sequential":
        places = sorted(range(len(visits)), key=lambda place: (visits[place] > 0, numbers[place] // each))
        numbers, visits = (array("I", (of[place] for place in places)) for of in (numbers, visits))
    return Product(condition, numbers, visits)


def _condition(
    file: EvaluationFile,
    scenario: Scenario,
    visitor: Visitor | Alone,
    flows: tuple[PlannedFlow, ...],
    fixed: OfRun | None,
) -> Condition:
    """``fixed`` are users and visits if they are the same in all runs of the visitor."""
    # A level that is the only default adds nothing, so that a new axis leaves all seeds as they were.
    of_path = [
        level
        for axis, level in levels(scenario).items()
        if axes()[axis].of_path and (level,) != axes()[axis].default
    ]
    name, page, whose, timeout = FLOWS, FLOWS, FLOWS, file.duration or file.timeout
    if not isinstance(visitor, Alone):
        name, page, timeout = visitor.name, visitor.page, file.timeout
        whose = name if visitor.is_group else f"{name}.{page}"
    beside = (*flows, *scenario.background.flows)
    are_drawn = of_flows.are_drawn(beside)
    prefix = f"{scenario.name}.{whose}.v"
    seed, flows_seed = seeds(file.seed, *of_path, name, page), seeds(file.seed, "web flows")
    users_seed = seeds(file.seed, "users", name)

    def of_users(visit: int) -> dict[str, Any]:
        if isinstance(visitor, Alone):
            return {"users": (), "visits": ()}
        # Not of the scenario: compared runs have the same beginnings.
        drawn = fixed or visitor.of_run(scenario.http, users_seed(visit))
        return dict(zip(("users", "visits"), drawn, strict=True))

    def made(visit: int) -> dict[str, Any]:
        of_visit = {
            "key": f"{prefix}{visit:02d}",
            "seed": seed(visit),
            "visit": visit,
            "warmup": visit == 0,
        }
        if are_drawn:
            # Not of the scenario: all compared runs of a visit have the same flows.
            of_visit["flows"] = of_flows.in_run(beside, flows_seed(visit))
        if fixed is None and not isinstance(visitor, Alone):
            of_visit |= of_users(visit)
        return of_visit

    fields: dict[str, Any] = {axis: getattr(scenario, axis) for axis in axes()} | {
        "title": file.title,
        "backend": scenario.backend,
        "scenario": scenario.name,
        "sysctls": {key: str(value) for key, value in (file.sysctls | scenario.congestion.sysctls).items()},
        "user_agent": name,
        "page_name": page,
        "timeout_s": timeout / 1e9,
        "packet_trace": file.packet_trace,
        "capture": file.capture,
        "tls": file.tls,
        "servers": scenario.servers,
        "attempt": 1,
        "flows": beside,
    }
    fields |= of_users(1) | made(1)
    return Condition(_run({name: fields[name] for name in _NAMES}), made)


def seeds(*parts: object) -> Callable[[int], int]:
    """For each visit 63 bits from a hash of the parts and the visit, the same on every machine."""
    before = hashlib.sha256("".join(f"{part}\0" for part in parts).encode())

    def seed(visit: int) -> int:
        whole = before.copy()
        whole.update(b"%d" % visit)
        return int.from_bytes(whole.digest()[:8], "big") >> 1

    return seed
