"""Proxies of a scenario: programs between users and servers.

A level of the axis ``proxy`` is ``none``, a kind of proxy with its defaults, the name of a table of proxies,
or a list of such names from the users to the servers. The path's link lies between the users and the first
proxy. A PEP has a side at each end of it: proxies before the PEP stand beside the users.

The scenario's congestion control and initial window are those of the host that sends down this link. On the
hop behind a proxy, towards the servers, the proxy's table says how both ends send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import quantities
from wirepaint.evaluation.congestion import Congestion
from wirepaint.evaluation.network import Network
from wirepaint.reading import ShortName, Table, Text, nearest, show

NONE = "none"
_MIB = 2**20


def _size(least: str, most: str) -> Any:
    return Annotated[quantities.Size, quantities.between(least, most, quantities.size)]


class _Table(Table):
    name: ShortName
    congestion: Text = "cubic"
    """Between this proxy and what follows towards the servers, both ways."""
    initial_window: int = Field(default=10, ge=1, le=1000)
    """There, both ways, in segments."""
    network: Text | None = None
    """The network there; None for a link without delay."""


class SquidTable(_Table):
    """Squid, a caching forward proxy."""

    kind: Literal["squid"] = "squid"
    cache: Literal["none", "memory", "disk"] = "memory"
    """Where it keeps responses."""
    size: _size("1 MiB", "4096 MiB") = 256 * _MIB  # type: ignore[valid-type]
    """Of its cache, in bytes."""
    warm: bool = False
    """A first visit of the same page, which is not measured, fills the cache."""
    tls: Literal["tunnel", "terminate"] = "tunnel"
    """What becomes of https: passed on, or ended by the proxy with certificates of the run's own."""


class SplitTable(_Table):
    """A transparent proxy that ends TCP connections."""

    kind: Literal["split"]
    buffer: _size("4 KiB", "256 MiB") = _MIB  # type: ignore[valid-type]
    """Most bytes that it holds of each direction of a connection, beside the kernel's buffers."""


class PepTable(_Table):
    """The split performance-enhancing proxy (HTTP-AE, section IV-D)."""

    kind: Literal["pep"]
    connections: int = Field(default=3, ge=1, le=64)
    """Between its sides; with service classes so many for each."""
    multiplexed: bool = False
    """Frames of several answers take turns on a connection; else one answer goes after another."""
    compression: Literal["none", "gzip", "br", "zstd"] = "none"
    """Between its sides, of answers that their server did not compress."""
    schedule: Literal["arrival", "fair"] = "fair"
    """First come, first served, as in the paper; or fair to the users of a class."""
    ahead: Literal["none", "markup", "rehearsed"] = "markup"
    """What it fetches before the browser asks: what HTML and CSS name, and what the rehearsals asked for."""
    buffer: _size("1 MiB", "1024 MiB") = 64 * _MIB  # type: ignore[valid-type]
    """Most bytes of answers that each side holds."""
    rate: Annotated[quantities.Rate, quantities.between("1 kbit/s", "100 Gbit/s", quantities.rate)] | None = (
        None
    )
    """At which it sends answers down the link. At the link's own rate what waits does so in the proxy, where
    users take turns, and not in the link's queue. None for what its connections take."""


KINDS: dict[str, type[_Table]] = {"squid": SquidTable, "split": SplitTable, "pep": PepTable}


def _kind(value: Any) -> str:
    found = value.get("kind", "squid") if isinstance(value, dict) else getattr(value, "kind", None)
    return found if found in KINDS else "squid"


ProxyTable = Annotated[
    Annotated[SquidTable, Tag("squid")]
    | Annotated[SplitTable, Tag("split")]
    | Annotated[PepTable, Tag("pep")],
    Discriminator(_kind),
]
"""A proxy that scenarios name under ``proxy``."""


class Part(BaseModel):
    """A proxy of a scenario, and the hop behind it."""

    model_config = ConfigDict(frozen=True)

    settings: ProxyTable
    congestion: Congestion
    network: Network | None


class Proxy(BaseModel):
    """The proxies of a scenario, from the users to the servers; the empty one is none."""

    model_config = ConfigDict(frozen=True)

    name: str = NONE
    parts: tuple[Part, ...] = ()

    @property
    def squid(self) -> SquidTable | None:
        """Its squid."""
        return next((p.settings for p in self.parts if isinstance(p.settings, SquidTable)), None)

    @property
    def has_pep(self) -> bool:
        """Whether a PEP is among them."""
        return any(isinstance(part.settings, PepTable) for part in self.parts)

    @property
    def is_warm(self) -> bool:
        """Whether a first visit fills a cache."""
        return self.squid is not None and self.squid.warm


def level(value: str | Sequence[str]) -> str:
    """Name of a level."""
    return value if isinstance(value, str) else "+".join(value)


def words(level: str) -> str:
    """A level as people read it: "no proxy", "split proxy"; a proxy of the user's has its own name."""
    usual = {NONE: "no proxy", "split": "split proxy", "pep": "PEP"}
    return " + ".join(usual.get(name, name) for name in level.split("+"))


def resolve(
    values: Sequence[str | Sequence[str]],
    tables: Sequence[ProxyTable],
    backends: Sequence[str],
    place: str,
    network: Callable[[str, str], Network],
) -> dict[str, Proxy]:
    """The proxies of each level, by its name.

    ``place`` is the evaluation file; ``network`` finds a network from its name and the key that holds it.
    Raises UsageError.
    """
    known = {kind: (of(name=kind, kind=kind), f"{place}: proxies") for kind, of in KINDS.items()}  # type: ignore[call-arg]
    for index, table in enumerate(tables):
        if table.name == NONE:
            raise UsageError(f"{place}: proxies[{index}].name", show(NONE), "another name: none is no proxy")
        known[table.name] = table, f"{place}: proxies[{index}]"
    found = {NONE: Proxy()}
    for index, value in enumerate(values):
        at = f"{place}: scenarios.proxy[{index}]"
        if value == NONE:
            continue
        found[level(value)] = _resolved(value, known, backends, at, network)
    return found


def _resolved(
    value: str | Sequence[str],
    known: Mapping[str, tuple[Any, str]],
    backends: Sequence[str],
    at: str,
    network: Callable[[str, str], Network],
) -> Proxy:
    parts = []
    for name in [value] if isinstance(value, str) else value:
        if name not in known:
            raise UsageError(at, show(name), nearest(name, [NONE, *known]))
        table, where = known[name]
        if isinstance(table, SquidTable) and table.warm and table.cache == "none":
            raise UsageError(
                f"{where}.warm", 'true with cache = "none"', "a cache that a first visit can fill"
            )
        if own := congestions.own_file(table.congestion):
            accepted = "a name: a C file is taken only under scenarios.congestion"
            raise UsageError(f"{where}.congestion", show(own), accepted)
        parts.append(
            Part(
                settings=table,
                congestion=congestions.resolve(table.congestion, f"{where}.congestion", backends),
                network=network(table.network, f"{where}.network") if table.network else None,
            )
        )
    kinds = [part.settings.kind for part in parts]
    for kind in KINDS:
        if kinds.count(kind) > 1:
            raise UsageError(at, f"{show(value)}, with {kind} twice", "each kind once")
    far = "pep" in kinds or any(part.network is not None for part in parts)
    if far and any(isinstance(part.settings, SquidTable) and part.settings.warm for part in parts):
        accepted = "warm = false: a first visit reaches servers without an emulated link before them"
        raise UsageError(at, f"{show(value)}, with a warm squid", accepted)
    if "squid" in kinds[1:]:
        accepted = "squid first: users connect to it"
        raise UsageError(at, f"{show(value)}, with squid after {kinds[0]}", accepted)
    return Proxy(name=level(value), parts=tuple(parts))
