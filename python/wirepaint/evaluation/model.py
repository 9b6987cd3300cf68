"""The evaluation file: what a user writes, key by key (docs/guide/evaluation.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model, model_validator

from wirepaint import catalogue
from wirepaint.evaluation.axes import Axis, axes
from wirepaint.evaluation.background import BackgroundTable
from wirepaint.evaluation.browsers import Browser, BrowserCache, BrowserTable
from wirepaint.evaluation.capture import CaptureTable
from wirepaint.evaluation.flows import MOST_FLOWS, FlowTable
from wirepaint.evaluation.proxies import ProxyTable
from wirepaint.evaluation.quantities import Share, Time, between
from wirepaint.evaluation.sysctls import Sysctls
from wirepaint.evaluation.visits import ENOUGH, Until
from wirepaint.reading import ShortName, Table, Text, refused, show, such_as

MOST_VISITS = 10_000
MOST_METRIC_FILES = 20
MOST_PAGES, MOST_USERS, MOST_BACKGROUNDS, MOST_PROXIES = 1_000, 100, 100, 100
MOST_TOGETHER = 1_000
"""Users of one run."""
THINK_NS = 5_000_000_000
"""Time between a load event and the user's next navigation, where none is given."""
BACKENDS = ("testbed", "simulator", "both")
BackEnd = Annotated[Literal["testbed", "simulator", "both"], catalogue.meant("backend", BACKENDS)]


class Written(Table):
    """The values of each axis, and what holds for every scenario."""

    servers: Literal["apart", "together"] = "apart"
    """Whether hosts are servers of their own, or all one; no axis."""

    def values(self, axis: str) -> list[Any]:
        """The values of an axis, as written."""
        return getattr(self, axis)

    @model_validator(mode="after")
    def _each_value_once(self) -> Written:
        for axis in axes():
            seen: list[Any] = []
            for index, value in enumerate(self.values(axis)):
                if value in seen:
                    found = f"{show(value.model_dump() if isinstance(value, Table) else value)} again"
                    raise refused("each value once", found, f"{axis}[{index}]")
                seen.append(value)
        return self


def _values(axis: Axis) -> Any:
    """The field of an axis under ``[scenarios]``."""
    default = ... if axis.default is None else list(axis.default)
    return list[axis.written], Field(default, min_length=1, max_length=axis.most)


if TYPE_CHECKING:
    Scenarios = Written
else:
    Scenarios = create_model(
        "Scenarios",
        __base__=Written,
        __doc__=f"{Written.__doc__} A scenario is one combination of a value of each axis.",
        **{name: _values(axis) for name, axis in axes().items()},
    )


TOGETHER = "together"
"""Name of the group of users that have ``together = true``."""

Pixels = Annotated[int, Field(ge=100, le=10_000)]


class UserAgent(Table):
    """One user: its pages and how often each is visited in each scenario.

    A user alone visits one page in a run. Users ``together`` share a run: each visits all of its pages there,
    one after another.
    """

    name: ShortName | None = None
    pages: list[Text] = Field(min_length=1, max_length=MOST_PAGES)
    visits: int = Field(ENOUGH, ge=1, le=MOST_VISITS)
    """Where nothing is said, more than ``ENOUGH`` if the evaluation needs more to decide anything."""
    viewport: list[Pixels] | None = Field(None, min_length=2, max_length=2)
    """Width and height in CSS pixels; None for the page's own."""
    start: Time = 0
    """When the first visit begins, counted from the beginning of the run's flows."""
    together: bool | ShortName = False
    """Whether it shares a run with the other user agents that have this value; a name where there are several
    such groups."""
    count: int = Field(1, ge=1, le=MOST_TOGETHER)
    """Equal users, for a user agent ``together`` with others or with itself."""
    spread: Time = 0
    """The users of ``count`` begin at random times after ``start``, within this time."""
    think: Time | None = None
    """From a page's load event to the next navigation; None for 5 s."""
    congestion: Text | None = None
    """Congestion control of its uplink; None for reno."""
    browser: Browser = BrowserTable()
    """Chromium, or a light one."""
    cache: BrowserCache = "cold"
    """What its browser's HTTP cache holds as a visit begins."""
    dscp: int | None = Field(None, ge=0, le=63)
    """Code point (RFC 2474) that the bottleneck sees on its packets, both ways: its service class."""

    @model_validator(mode="after")
    def _alone_or_together(self) -> UserAgent:
        if not self.together:
            for key in ("count", "spread", "think"):
                if key in self.model_fields_set:
                    accepted = "no such key without together = true: a run has one visit of one user"
                    raise refused(accepted, show(getattr(self, key)), key)
            if self.cache == "shared":
                accepted = '"cold" or "warm" without together = true: a run has one visit of one user'
                raise refused(accepted, show(self.cache), "cache")
        return self

    @property
    def group(self) -> str | None:
        """Name of the users that share its runs; None for a user alone."""
        return TOGETHER if self.together is True else self.together or None


class Stop(Table):
    """Ends the visits of a page in a scenario before they are used up.

    It does so when, after at least ``visits`` visits, the 95 % interval of the mean page load time
    is narrower than the share ``interval`` of the mean.
    """

    visits: int = Field(5, ge=3, le=MOST_VISITS)
    interval: Share = Field(gt=0)


class ResultsTable(Table):
    """What the results folder keeps."""

    keep: Literal["all", "medians", "metrics"] = "all"
    """Whose traces stay: those of all runs, of the median run of each page in each scenario, or of none.
    Metrics stay always, and a simulated run comes back with `run --only`."""


class EvaluationFile(Table):
    """An evaluation: all that a result depends on."""

    elsewhere: ClassVar[Mapping[str, str]] = {key: f"user_agents.{key}" for key in UserAgent.model_fields} | {
        key: f"scenarios.{key}" for key in Scenarios.model_fields
    }

    title: Text
    summary: str = ""
    backend: BackEnd | None = None
    """The testbed for root, else the simulator, where nothing is said."""
    seed: int = Field(1, ge=0, lt=2**63)
    order: Literal["interleaved", "sequential"] = "interleaved"
    warmup: bool = True
    timeout: Annotated[Time, between("1 ms", "1440 min")] = 60_000_000_000
    packet_trace: bool = False
    capture: Annotated[CaptureTable, such_as("[capture], which may be empty")] | None = None
    """Packet captures of testbed runs; None for none."""
    tls: Literal["1.2", "1.3"] = "1.3"
    sysctls: Sysctls = Field(default_factory=dict)
    primary: list[Text] | None = Field(None, min_length=1, max_length=100)
    """Metrics that the evaluation is for, corrected among themselves; None for the page load time."""
    until: Until | None = None
    """Ends the evaluation when its primary comparisons are decided; None for all visits."""
    stop: Stop | None = None
    scenarios: Scenarios
    user_agents: list[UserAgent] = Field(default_factory=list, max_length=MOST_USERS)
    flows: list[FlowTable] = Field(default_factory=list, max_length=MOST_FLOWS)
    """Transfers without a browser: beside each visit, or alone where there is no user agent."""
    background: list[BackgroundTable] = Field(default_factory=list, max_length=MOST_BACKGROUNDS)
    """Traffic that scenarios name under ``background``."""
    proxies: list[ProxyTable] = Field(default_factory=list, max_length=MOST_PROXIES)
    """Proxies that scenarios name under ``proxy``."""
    repeats: int | None = Field(None, ge=1, le=MOST_VISITS)
    """Runs of each scenario without user agents; None for as many as ``visits``."""
    metrics: list[Text] = Field(default_factory=list, max_length=MOST_METRIC_FILES)
    """Python files with metrics of the user's own, by path; they change no run."""
    duration: Annotated[Time, between("1 ms", "1440 min")] | None = None
    """Longest time of a run without user agents."""
    results: ResultsTable = ResultsTable()

    @model_validator(mode="after")
    def _something_to_do(self) -> EvaluationFile:
        if not self.user_agents and not self.flows:
            raise refused("a table [[user_agents]] or [[flows]]", "neither", "user_agents")
        if self.stop is not None and any(agent.group for agent in self.user_agents):
            accepted = "no such table with users together: they are no repetitions of each other"
            raise refused(accepted, "[stop]", "stop")
        if self.until is not None:
            if not self.user_agents or any(agent.group for agent in self.user_agents):
                accepted = "no such table without user_agents, or with users together"
                raise refused(accepted, "[until]", "until")
            if self.stop is not None:
                raise refused("[stop] or [until], not both", "both", "until")
            if len({agent.visits for agent in self.user_agents}) > 1:
                raise refused("the same visits of all user agents", "different visits", "until")
        if self.user_agents:
            for key in ("repeats", "duration"):
                if getattr(self, key) is not None:
                    accepted = "no such key beside user_agents: a run is a visit, and visits says how many"
                    raise refused(accepted, show(getattr(self, key)), key)
        else:
            if self.stop is not None:
                raise refused(
                    "no such table without user_agents: it looks at page load times", "[stop]", "stop"
                )
            for place, flow in enumerate(self.flows):
                if flow.is_endless and self.duration is None:
                    accepted = "an amount, stop, or the evaluation's duration"
                    raise refused(accepted, "a flow without end", f"flows[{place}]")
        return self


def json_schema() -> str:
    """The JSON Schema of an evaluation file, as shipped in schema/evaluation.schema.json."""
    schema = EvaluationFile.model_json_schema()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
