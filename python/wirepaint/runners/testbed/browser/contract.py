"""What a browser is asked for, and what it has seen: the same for every engine.

Times are nanoseconds since the run's epoch.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

UNFINISHED = "not finished when the visit ended"
"""Failure of a request that lasted beyond the longest wait after the load event."""


@dataclass(frozen=True)
class BrowserOptions:
    """Options of one visit: the page and the browser's settings."""

    url: str
    """Address of the base document."""
    http: str
    """Newest HTTP version that the browser may speak."""
    hosts: dict[str, str]
    """IPv4 address of every host, with ports or without (``a.test:443`` to ``127.0.0.2:4443``); no other
    name resolves."""
    work_dir: Path
    """Folder on tmpfs that every user can enter; the visit makes its own folder ``browser`` in it."""
    proxy: str | None = None
    """Address and port of an HTTP proxy for every request, which then resolves the names of ``hosts``."""
    epoch_ns: int = 0
    """CLOCK_MONOTONIC in nanoseconds at time 0 of the trace."""
    ca_spki_sha256: str | None = None
    """Base64 of the SHA-256 of the certificate authority's SubjectPublicKeyInfo; None trusts no one new."""
    timeout_s: float = 60.0
    """A page that has not fired its load event by then fails."""
    viewport: tuple[int, int] = (1280, 800)
    """Width and height in CSS pixels."""
    mobile: bool = False
    """Loads the page as a phone would: screen, touch and user agent."""
    screencast: bool = True
    """Records frames, for the speed index and the end of the visible loading."""
    quiet_s: float | None = None
    """The visit ends after this much network silence after the load event; None for the default. 0 ends it at
    once."""
    expected: frozenset[str] = frozenset()
    """Once these addresses were asked for, a shorter silence ends the visit: ``sure_s``."""
    sure_s: float | None = None
    """The shorter silence; None if there is none."""
    clock_ms: int | None = None
    """Unix time in milliseconds at which the page's clock begins; None for the machine's clock."""
    seed: int = 42
    """Seed of the page's random numbers."""
    trace: tuple[str, ...] = ()
    """Categories of the engine's own trace to record until the load event; this costs some time."""
    cache_dir: Path | None = None
    """Folder of the HTTP cache, which every user can write; None for one that lasts for the visit."""
    tls_secrets: bool = False
    """Writes the secrets of its TLS connections into ``key_log``."""
    binary: Path | None = None
    """The program; None searches for it."""

    @property
    def home(self) -> Path:
        """Folder of this visit's browser: profile, logs, messages."""
        return self.work_dir / "browser"

    @property
    def log(self) -> Path:
        """Where the browser's messages go."""
        return self.home / "log.txt"

    @property
    def key_log(self) -> Path:
        """Where the secrets of TLS connections go, in NSS Key Log Format."""
        return self.home / "tls-secrets.txt"


class Spawn(Protocol):
    """Starts a program as the ordinary user; on the testbed, in the client's namespace."""

    def __call__(
        self,
        argv: Sequence[str | Path],
        *,
        extra_fds: Mapping[int, int],
        env: Mapping[str, str],
        stdout: int | IO[Any],
        stderr: int | IO[Any],
    ) -> subprocess.Popen[bytes]: ...


class Moments(Protocol):
    """Callbacks at the begin and end of a page's load; ``cpu_s`` is the browser's CPU time so far."""

    def begin(self, cpu_s: float) -> None: ...
    def end(self, cpu_s: float, stopped_s: float) -> None: ...


@dataclass
class Chunk:
    """Bytes of a response that arrived together."""

    time: int
    bytes: int


@dataclass
class Request:
    """One request and its answer; each hop of a redirect is a request."""

    id: str
    """Unique in the visit."""
    url: str
    method: str
    type: str
    frame: str
    initiator: str | None
    initiator_type: str
    priority: str
    """The last priority; ``asked_priority`` is the first."""
    asked_priority: str
    discovered: int
    queued: int | None = None
    sent: int | None = None
    first_byte: int | None = None
    last_byte: int | None = None
    status: int | None = None
    protocol: str | None = None
    connection: int | None = None
    cache: str | None = None
    """What a proxy says in the response of its cache (X-Cache, or Cache-Status of RFC 9211)."""
    encoded_bytes: int = 0
    decoded_bytes: int = 0
    from_cache: bool = False
    """The browser's cache gave the answer, without a request on the network."""
    revalidated: bool = False
    """The browser's cache gave the body, after the server's 304."""
    failed: str | None = None
    broken_image: bool = False
    """The browser stopped reading because the first bytes are of no image that it can show."""
    in_viewport: bool = False
    """Its object appears in the first view port."""
    stack: tuple[str, ...] = ()
    """Addresses of the scripts that ran when the request was made, the innermost first."""
    chunks: list[Chunk] = field(default_factory=list)


@dataclass
class Connection:
    """One TCP connection, used or not."""

    number: int
    opened: int
    host: str | None = None
    encrypted: bool = False
    client_address: str | None = None
    client_port: int | None = None
    """None for one that the browser gave up before it knew its port."""
    server_address: str | None = None
    server_port: int | None = None
    connected: int | None = None
    tls_done: int | None = None
    closed: int | None = None
    protocol: str | None = None
    """Negotiated by ALPN; None for plain connections."""
    tunnelled: bool = False
    """It goes through an HTTP proxy by CONNECT: TLS begins after the proxy's answer."""
    resumed: bool = False
    """True when the TLS session was resumed."""
    tls: str | None = None
    """Version of TLS that was negotiated, such as "TLS 1.3"."""
    received: int = 0
    sent: int = 0
    requests: int = 0
    congestion: str | None = None
    """The client's congestion control by the kernel, where the browser reads it back: once connected."""
    congestion_end: str | None = None
    """The same as the client closed it."""


@dataclass(frozen=True)
class Frame:
    """A change of what the screen showed."""

    time: int
    progress: float
    """Share of the final picture that it shows."""
    picture: str | None
    """Base64 of a JPEG; None if thinned out."""


@dataclass
class PageLoad:
    """The observations of one visit."""

    options: BrowserOptions
    browser: str
    """Product and version."""
    navigation_start: int
    dom_content_loaded: int | None
    load_event: int
    first_paint: int | None
    first_contentful_paint: int | None
    largest_contentful_paint: int | None
    largest_url: str | None
    """Address of the image of the largest paint; empty for text, None if there was no such paint."""
    viewport_complete: int | None
    viewport_last_frame: int | None
    """When the screencast showed the final picture: the cross-check of ``viewport_complete``."""
    document: str
    """Id of the request that the document answered."""
    speed_index: float | None
    """Milliseconds."""
    requests: list[Request]
    connections: list[Connection]
    unseen: list[str]
    """Addresses of requests on the network that no page made."""
    cut_off: str | None
    """What of the browser's records is not whole; None if all are."""
    unconfined: str | None
    """The missing part of the browser's sandbox; None if the sandbox was in force."""
    cpu_s: float
    """CPU seconds of all processes of the browser."""
    controller_cpu_s: float
    """CPU seconds of this process while the page loaded."""
    ended: int
    """End of the visit."""
    frames: list[Frame] = field(default_factory=list)
    """Changes of the screen since the navigation; empty without a screencast."""
    cpu_samples: list[tuple[int, float]] = field(default_factory=list)
    """Times, and the browser's CPU seconds so far, from the navigation to the load event."""
    notes: list[str] = field(default_factory=list)
    """Other events during the visit: dialogs answered, windows closed, requests cut off."""
    trace: list[dict[str, Any]] = field(default_factory=list)
    """Events of the engine's own trace, if it was asked for."""
