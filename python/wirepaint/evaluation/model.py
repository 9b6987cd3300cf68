"""The evaluation file: what a user writes, key by key (docs/guide/evaluation.md)."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from wirepaint.evaluation.network import NetworkTable
from wirepaint.evaluation.quantities import Share, Time, between
from wirepaint.evaluation.reading import Table, refused, show

MOST_VISITS = 10_000
MOST_PAGES, MOST_USERS = 1_000, 100
BackEnd = Literal["testbed", "simulator", "both"]
Text = Annotated[str, Field(min_length=1, max_length=200)]


def _form(value: Any) -> str:
    return "table" if isinstance(value, dict | Table) else "name"


Sysctls = Annotated[dict[str, int | str], Field(max_length=100)]
"""Kernel settings of the client's and the server's namespace by name."""


_SYSCTL = re.compile(r"net\.(?:ipv4|core)(?:\.[A-Za-z0-9_-]{1,64}){1,4}")


def _only_network_sysctls(sysctls: Sysctls) -> Sysctls:
    for name, value in sysctls.items():
        if not _SYSCTL.fullmatch(name):
            raise refused('names such as "net.ipv4.tcp_slow_start_after_idle"', show(name))
        number = isinstance(value, int)
        if not (-(2**63) <= value < 2**63 if number else re.fullmatch(r"[\t\x20-\x7e]{0,200}", value)):
            raise refused("a number of 64 bits or a line of text", show(value), name)
    return sysctls


class CongestionTable(Table):
    """A congestion control with parameters; every further key is a parameter of the algorithm."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]  # pyright: ignore[reportIncompatibleVariableOverride]

    name: Text
    title: Text | None = None
    sysctls: Sysctls = Field(default_factory=dict)

    _sysctls = field_validator("sysctls")(_only_network_sysctls)


NetworkValue = Annotated[
    Annotated[Text, Tag("name")] | Annotated[NetworkTable, Tag("table")], Discriminator(_form)
]
CongestionValue = Annotated[
    Annotated[Text, Tag("name")] | Annotated[CongestionTable, Tag("table")], Discriminator(_form)
]
InitialWindow = Annotated[int, Field(ge=1, le=1000)]


class Scenarios(Table):
    """The axes, and what holds for every scenario. A scenario is one combination of a value of each axis."""

    network: list[NetworkValue] = Field(min_length=1, max_length=100)
    congestion: list[CongestionValue] = Field(["cubic"], min_length=1, max_length=100)
    initial_window: list[InitialWindow] = Field([10], min_length=1, max_length=1000)
    http: list[Literal["h1", "h2"]] = Field(["h2"], min_length=1, max_length=2)
    proxy: list[Literal["none"]] = Field(["none"], min_length=1, max_length=1)
    servers: Literal["apart", "together"] = "apart"
    """Whether hosts are servers of their own, or all one; no axis."""

    @model_validator(mode="after")
    def _each_value_once(self) -> Scenarios:
        for axis in type(self).model_fields:
            if axis == "servers":
                continue
            seen: list[Any] = []
            for index, value in enumerate(getattr(self, axis)):
                if value in seen:
                    found = f"{show(value.model_dump() if isinstance(value, Table) else value)} again"
                    raise refused("each value once", found, f"{axis}[{index}]")
                seen.append(value)
        return self


def _agent_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name):
        raise refused("1 to 32 characters of a-z, 0-9, _ and -")
    return name


AgentName = Annotated[str, AfterValidator(_agent_name)]

Pixels = Annotated[int, Field(ge=100, le=10_000)]


class UserAgent(Table):
    """One user: its pages and how often each is visited in each scenario."""

    name: AgentName | None = None
    pages: list[Text] = Field(min_length=1, max_length=MOST_PAGES)
    visits: int = Field(5, ge=1, le=MOST_VISITS)
    viewport: list[Pixels] | None = Field(None, min_length=2, max_length=2)
    """Width and height in CSS pixels; None for the page's own."""


class Stop(Table):
    """Ends the visits of a page in a scenario before they are used up.

    It does so when, after at least ``visits`` visits, the 95 % interval of the mean page load time
    is narrower than the share ``interval`` of the mean.
    """

    visits: int = Field(5, ge=3, le=MOST_VISITS)
    interval: Share = Field(gt=0)


class EvaluationFile(Table):
    """An evaluation: all that a result depends on."""

    title: Text
    summary: str = ""
    backend: BackEnd | None = None
    """The testbed for root, else the simulator, where nothing is said."""
    seed: int = Field(1, ge=0, lt=2**63)
    order: Literal["interleaved", "sequential"] = "interleaved"
    warmup: bool = True
    timeout: Annotated[Time, between("1 ms", "1440 min")] = 60_000_000_000
    packet_trace: bool = False
    tls: Literal["1.2", "1.3"] = "1.3"
    sysctls: Sysctls = Field(default_factory=dict)
    stop: Stop | None = None
    scenarios: Scenarios
    user_agents: list[UserAgent] = Field(min_length=1, max_length=MOST_USERS)

    _sysctls = field_validator("sysctls")(_only_network_sysctls)


def json_schema() -> str:
    """The JSON Schema of an evaluation file, as shipped in schema/evaluation.schema.json."""
    schema = EvaluationFile.model_json_schema()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
