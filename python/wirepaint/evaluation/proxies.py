"""Proxies of a scenario: a program between users and servers, at the far end of the emulated link.

A level of the axis ``proxy`` is ``none``, ``squid`` with its defaults, or the name of a table of proxies.
The proxy sends over the emulated link, so the scenario's congestion control and initial window are those of
its side towards the users. The side towards the servers has its own in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import quantities
from wirepaint.evaluation.congestion import Congestion
from wirepaint.reading import ShortName, Table, Text, nearest, show

NONE, SQUID = "none", "squid"
_MIB = 2**20


class ProxyTable(Table):
    """A proxy that scenarios name under ``proxy``."""

    name: ShortName
    kind: Literal["squid"] = SQUID
    cache: Literal["none", "memory", "disk"] = "memory"
    """Where it keeps responses."""
    size: Annotated[quantities.Size, quantities.between("1 MiB", "4096 MiB", quantities.size)] = 256 * _MIB
    """Of its cache, in bytes."""
    warm: bool = False
    """A first visit of the same page, which is not measured, fills the cache."""
    tls: Literal["tunnel", "terminate"] = "tunnel"
    """What becomes of https: passed on, or ended by the proxy with certificates of the run's own."""
    congestion: Text = "cubic"
    """Between proxy and servers, both ways."""
    initial_window: int = Field(default=10, ge=1, le=1000)
    """Between proxy and servers, both ways, in segments."""


class Proxy(BaseModel):
    """The proxy of a scenario, resolved; without a ``kind`` there is none."""

    model_config = ConfigDict(frozen=True)

    name: str = NONE
    kind: Literal["squid"] | None = None
    cache: Literal["none", "memory", "disk"] = "none"
    cache_bytes: int = 0
    warm: bool = False
    tls: Literal["tunnel", "terminate"] = "tunnel"
    congestion: Congestion | None = None
    initial_window: int = 10


def resolve(
    names: Sequence[str], tables: Sequence[ProxyTable], backends: Sequence[str], place: str
) -> dict[str, Proxy]:
    """The proxy of each level; ``place`` is the evaluation file. Raises UsageError."""
    by_name = {table.name: (table, f"{place}: proxies[{index}]") for index, table in enumerate(tables)}
    for index, table in enumerate(tables):
        if table.name == NONE:
            raise UsageError(f"{place}: proxies[{index}].name", show(NONE), "another name: none is no proxy")
    by_name.setdefault(SQUID, (ProxyTable(name=SQUID), f"{place}: proxies"))
    found = {NONE: Proxy()}
    for index, name in enumerate(names):
        at = f"{place}: scenarios.proxy[{index}]"
        if name == NONE:
            continue
        if name not in by_name:
            raise UsageError(at, show(name), nearest(name, [NONE, *by_name]))
        if "simulator" in backends:
            accepted = f'{show(NONE)}, or backend = "testbed": the simulator has no proxies yet'
            raise UsageError(at, show(name), accepted)
        found[name] = _resolved(*by_name[name], backends)
    return found


def _resolved(table: ProxyTable, where: str, backends: Sequence[str]) -> Proxy:
    if table.warm and table.cache == "none":
        raise UsageError(f"{where}.warm", 'true with cache = "none"', "a cache that a first visit can fill")
    if name := congestions.own_file(table.congestion):
        accepted = "a name: a C file is taken only under scenarios.congestion"
        raise UsageError(f"{where}.congestion", show(name), accepted)
    return Proxy(
        name=table.name,
        kind=table.kind,
        cache=table.cache,
        cache_bytes=0 if table.cache == "none" else table.size,
        warm=table.warm,
        tls=table.tls,
        congestion=congestions.resolve(table.congestion, f"{where}.congestion", backends),
        initial_window=table.initial_window,
    )
