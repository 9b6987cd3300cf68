"""The run description: the one document that both back ends read, as types.

The classes mirror ``crates/run``, which declares the document (``schema/run.schema.json``); a test compares
them. Times are nanoseconds from the run's epoch. A value of None is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic_core import to_json

FORMAT = 5
"""Version of the document."""
_NOT_IN_DOCUMENT = {"document": False}
Direction = Mapping[str, Any]
"""One direction of a segment, as :meth:`wirepaint.evaluation.network.Network.direction` makes it."""


@dataclass(frozen=True, kw_only=True)
class Sending:
    """How connections send."""

    congestion: str
    """Name in the run's ``congestion``."""
    initial_window: int = 10
    """Segments."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine that sends and receives."""

    name: str
    role: Literal["client", "server", "proxy"]
    congestion: str
    """Name in the run's ``congestion``."""
    initial_window: int = 10
    """Segments."""
    address: str | None = None
    dscp: int | None = None
    """Code point that the path sees on all packets of a client; None for what they carry."""
    upstream: Sending | None = None
    """Of the connections that a proxy opens."""
    namespace_inode: int | None = None


@dataclass(frozen=True, kw_only=True)
class Interfaces:
    """The emulator's interfaces towards client and server."""

    client: str = "c1"
    server: str = "s1"


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A stretch of a path: a link each way."""

    down: Direction
    """Server to client."""
    up: Direction
    name: str = "access"
    interfaces: Interfaces | None = None
    """Testbed only."""
    changes_wait: bool = False
    """The changes of the links count from a time that the emulator is told (testbed only)."""
    mtu: int = 1500
    sample_interval_ns: int = 10_000_000
    packet_trace: bool = False


@dataclass(frozen=True, kw_only=True)
class Congestion:
    """One congestion control that hosts use."""

    algorithm: str
    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    of_kernel: bool = False
    """The kernel has it under this name; it is not loaded."""


@dataclass(frozen=True, kw_only=True)
class Transport:
    """What all connections have in common."""

    http: str = "h2"
    tls: str = "1.3"
    tls_record_bytes: int | None = None
    sysctls: Mapping[str, str] = field(default_factory=dict)
    rto_min_ns: int | None = None
    quickack: bool = False


@dataclass(frozen=True, kw_only=True)
class Origin:
    """One address and port of the replay server, and whom it answers for."""

    address: str
    port: int
    encrypted: bool
    host: str
    listen_port: int | None = None


@dataclass(frozen=True, kw_only=True)
class Site:
    """What the servers of a page answer (testbed only)."""

    origins: Sequence[Origin]
    responses: Sequence[Mapping[str, Any]]
    """As :class:`wirepaint.pages.prepare.PreparedPage` has them."""


@dataclass(frozen=True, kw_only=True)
class Squid:
    """Squid and its settings. The host of a proxy has the role ``proxy``."""

    host: str
    port: int
    cache: Literal["none", "memory", "disk"]
    cache_bytes: int
    warm: bool
    """A first visit of the page, which is not measured, fills the cache."""
    tls: Literal["tunnel", "terminate"]
    kind: Literal["squid"] = "squid"


@dataclass(frozen=True, kw_only=True)
class Split:
    """A transparent proxy that ends TCP connections."""

    host: str
    buffer_bytes: int
    """Most that it holds of each direction of a connection, beside the kernel's buffers."""
    kind: Literal["split"] = "split"


@dataclass(frozen=True, kw_only=True)
class PepClass:
    """A service class of a PEP."""

    dscp: int
    """Code point of its users."""
    share: float
    """Per cent."""


@dataclass(frozen=True, kw_only=True)
class Pep:
    """The split performance-enhancing proxy: a side near the clients, and one near the servers."""

    remote: str
    ground: str
    port: int
    connections: int
    """Between the sides; with classes so many for each."""
    multiplexed: bool
    compression: Literal["none", "gzip", "br", "zstd"]
    schedule: Literal["arrival", "fair"]
    ahead: Literal["none", "markup", "rehearsed"]
    buffer_bytes: int
    rate_bit_per_s: int | None = None
    classes: Sequence[PepClass] = ()
    kind: Literal["pep"] = "pep"


Proxy = Squid | Split | Pep


@dataclass(frozen=True, kw_only=True)
class Navigation:
    """What a real browser is told of a visit (testbed only)."""

    url: str
    viewport: tuple[int, int]
    mobile: bool
    seed: int
    clock_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One visit of one page by one user."""

    user_agent: str
    name: str
    timeout_ns: int
    client: str = "client"
    server: str = "server"
    after: int | None = None
    """Number of an earlier visit: this one begins after its load event."""
    start_ns: int = 0
    """Navigation start; with ``after``, counted from the end of that visit."""
    through: Sequence[str] | None = None
    group: str = ""
    site: str = ""
    """Who answers: a name in the run's sites (testbed only)."""
    cache: Literal["cold", "warm", "shared"] = "cold"
    """What the browser's cache holds as the visit begins; a modelled one reads it in ``page``."""
    navigation: Navigation | None = None
    """Of a real browser; None for a light user (testbed only)."""
    page: str = ""
    """The load graph: a name in the run's pages; of the simulator's visits and those of light users."""
    browser: str = ""
    """Its name in the run's browsers; as above."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A transfer over one connection without a browser."""

    kind: Mapping[str, Any]
    name: str = ""
    after: str | None = None
    """Name of an earlier flow: this one begins when that one has ended."""
    background: bool = False
    """The run does not wait for its end."""
    tool: Literal["wirepaint", "iperf3"] = "wirepaint"
    """What carries it out; iperf3 on the testbed only."""
    nodelay: bool = False
    """Small writes are sent at once (TCP_NODELAY)."""
    start_ns: int = 0
    stop_ns: int | None = None
    sender: Literal["server", "client"] = "server"
    client: str = "client"
    server: str = "server"
    congestion: str | None = None
    """The sender's; None for its host's."""
    through: Sequence[str] | None = None
    """Segments from the server to the client; None for all of the run."""
    group: str = ""
    dscp: int = 0


@dataclass(frozen=True, kw_only=True)
class Reroute:
    """From a time on, a group takes another route."""

    at_ns: int
    group: str
    through: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Capture:
    """What is kept of the packets at the devices of each user and of the server."""

    size_limit: int
    """Bytes of a file from which on it takes no more packets."""
    snap_length: int | None = None
    """Bytes kept of each packet, with its Ethernet header; None for all."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run description."""

    id: str
    trace_dir: Path
    work_dir: Path
    seed: int = 1
    epoch_ns: int = 0
    hosts: Sequence[Host] = ()
    segments: Sequence[Segment] = ()
    congestion: Sequence[Congestion] = ()
    transport: Transport = field(default_factory=Transport)
    sites: Mapping[str, Site] = field(default_factory=dict)
    """What the servers of each page answer (testbed only)."""
    pages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Load graphs, as :func:`wirepaint.pages.loading.load_graph` makes them."""
    proxies: Sequence[Proxy] = ()
    """From the clients on."""
    path: Sequence[str] = ()
    """Names of segments and proxies' hosts, from the clients on; empty without proxies."""
    browsers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Numbers of browsers by name, as :func:`wirepaint.browsers.numbers` reads them."""
    visits: Sequence[Visit] = ()
    flows: Sequence[Flow] = ()
    reroutes: Sequence[Reroute] = ()
    until_ns: int = 0
    tables: Sequence[str] = ()
    packet_links: Sequence[str] = ()
    flow_interval_ns: int = 100_000_000
    row: Mapping[str, Any] | None = None
    """Cells of the table ``run`` (simulator only), which is not written without them."""
    capture: Capture | None = None
    """Testbed only."""
    checks: Mapping[str, Any] | None = None
    """What the checks of a testbed run compare with."""
    format: int = FORMAT
    alike: object = field(default=None, metadata=_NOT_IN_DOCUMENT)
    """Runs with the same object here differ in folders, seed, segments, visits, flows and row at most. A run
    without one is like no other."""

    def document(self) -> dict[str, Any]:
        """The document as plain data."""
        return json.loads(self.text())

    def write(self) -> Path:
        """Writes ``run.json`` into the run's work folder and returns its path."""
        self.file.write_bytes(self.text().encode())
        return self.file

    @property
    def file(self) -> Path:
        """Where :meth:`write` writes it. The simulator knows it by this."""
        return self.work_dir / "run.json"

    def line(self, name: str, pages: str, own: str | None = None) -> str:
        """The description for the simulator's input, without a file.

        The simulator knows it by its name; its pages are there as ``pages``. ``own`` takes the place of
        :meth:`own`, for another run of this one's condition.
        """
        return f"{name}\t{own or self.own()}, {_alike(Alike(self))[1:]}\t{pages}"

    def own(self) -> str:
        """The beginning of the JSON, with what runs of one condition do not share."""
        # Pydantic's encoder takes a third of the time, and says null for what has no value.
        return to_json({name: getattr(self, name) for name in _OWN}).decode()[:-1]

    def pages_text(self) -> str:
        """Its pages as JSON. Load graphs are most of it; one that runs share is converted once."""
        graphs = (f"{json.dumps(name)}: {_shared(Same(graph))}" for name, graph in self.pages.items())
        return f"{{{', '.join(graphs)}}}"

    def text(self) -> str:
        """The document as JSON."""
        pages = f'"pages": {self.pages_text()}}}'
        if self.alike is not None:
            return f"{self.own()}, {_alike(Alike(self))[1:-1]}, {pages}"
        document = _held(self)
        del document["pages"]
        return f"{_encoded(document)[:-1]}, {pages}"


def one_path(down: Direction, up: Direction, *, client: str, server: str) -> dict[str, Any]:
    """Segment and hosts of a run with one path, as arguments of :class:`Run`; congestion controls by name."""
    return {
        "segments": [Segment(down=down, up=up)],
        "hosts": [
            Host(name="client", role="client", congestion=client),
            Host(name="server", role="server", congestion=server),
        ],
    }


_OWN = ("trace_dir", "work_dir", "seed", "segments", "visits", "flows", "row")
"""Parts that runs of one condition do not share."""


class Alike:
    """A run as a key: equal to those that are ``alike``."""

    def __init__(self, run: Run) -> None:
        self.run, self._id = run, id(run if run.alike is None else run.alike)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self._id == other._id


@lru_cache(maxsize=256)
def _alike(key: Alike) -> str:
    """The JSON of what runs of one condition share, but of their pages."""
    return _encoded({name: part for name, part in _held(key.run).items() if name not in (*_OWN, "pages")})


class Same:
    """A value as a key: equal to itself only."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


@lru_cache(maxsize=256)
def _shared(part: Same) -> str:
    """The JSON of a part that many runs share."""
    return _encoded(part.value)


@cache
def names(of: type[Any]) -> tuple[str, ...]:
    """The fields of a type that are in the document."""
    return tuple(each.name for each in fields(of) if each.metadata != _NOT_IN_DOCUMENT)


def _held(value: Any) -> dict[str, Any]:
    """The fields of a part of the document."""
    held = ((name, getattr(value, name)) for name in names(type(value)))
    return {name: part for name, part in held if part is not None}


def _plain(value: Any) -> Any:
    """What the document has in place of a value that JSON has not."""
    if is_dataclass(value):
        return _held(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} in a run description")


_encoded = json.JSONEncoder(default=_plain, check_circular=False).encode
