"""Squid as a forward proxy: its configuration, its process, its log.

It runs as the ordinary user inside the cell, in the namespace of the proxy, with all files on the cell's
tmpfs. It resolves only the hosts of the page, asks nobody else, and keeps no idle connection to a server
for long, so that a warmed cache does not mean warm connections.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wirepaint.errors import MachineLacks, RunFailed
from wirepaint.runners.testbed import process, sockets

PROGRAM = "/usr/sbin/squid"
CERTIFICATES = "/usr/lib/squid/security_file_certgen"
_LACKING = "Debian: apt-get install --no-install-recommends squid-openssl (its service is not needed)."
START_S = 20.0
END_S = 5.0
READ_BACK_S = 0.25
"""Period of the looks at its sockets. A look takes 0.2 ms of CPU time for each."""
IDLE_S = 2
"""Squid closes a connection to a server that was idle for this long (its default is a minute)."""
NAME = "wirepaint"
"""Its name in headers, by which its X-Cache differs from a recorded one."""
_X_CACHE = re.compile(rf"\b(HIT|MISS) from {NAME}\b")
HITS = frozenset(
    f"TCP_{code}"
    for code in (
        *("HIT", "MEM_HIT", "IMS_HIT", "INM_HIT", "NEGATIVE_HIT", "OFFLINE_HIT"),
        *("REFRESH_FAIL_OLD", "REFRESH_UNMODIFIED"),
    )
)
"""Result codes for which squid says HIT (LogTags::isTcpHit)."""
SETTLE_S = IDLE_S + 8.0
"""Longest wait for the end of all connections."""
_MIB = 2**20
_CERTIFICATES_SIZE = "4MB"


@dataclass(frozen=True)
class Options:
    """What a run asks of squid."""

    address: str
    port: int
    hosts: Mapping[str, str]
    """IPv4 address of each host; it serves no other."""
    cache: Literal["none", "memory", "disk"]
    cache_bytes: int
    authority: Path | None = None
    """Certificate and key of the authority with which it ends TLS; None passes TLS on."""
    tls: str = "1.3"
    """Newest version of TLS that it accepts."""


@dataclass(frozen=True)
class Served:
    """A line of squid's log: one request and its answer, or one tunnel."""

    ended: int
    """Wall clock in ms, whole."""
    took_ms: int
    method: str
    url: str
    result: str
    """Squid's result code, such as TCP_MEM_HIT."""
    status: int
    bytes: int
    """Sent to the client, headers included."""
    head_bytes: int
    client_address: str
    client_port: int

    @property
    def is_hit(self) -> bool:
        """True for an answer from the cache; squid's X-Cache says the same."""
        return self.result.removesuffix("_ABORTED").removesuffix("_TIMEDOUT") in HITS


_FORMAT = "%ts%03tu %tr %rm %>ru %Ss %>Hs %<st %<sh %>a %>p"


def version(*, ends_tls: bool = True) -> str:
    """Version of squid, such as ``5.7``; raises ``MachineLacks`` without it, or without its part for TLS."""
    if shutil.which(PROGRAM) is None:
        raise MachineLacks("squid is not installed", _LACKING)
    if ends_tls and not Path(CERTIFICATES).exists():
        raise MachineLacks("this squid cannot end TLS", _LACKING)
    said = subprocess.run([PROGRAM, "-v"], capture_output=True, text=True, check=False, timeout=10).stdout
    if not (found := re.search(r"Version (\S+)", said)):
        raise MachineLacks(f"{PROGRAM} -v tells no version", _LACKING)
    return found[1]


def configuration(options: Options, folder: Path) -> str:
    """Squid's configuration; ``folder`` is for its files."""
    port = f"http_port {options.address}:{options.port}"
    bump: list[str] = []
    if options.authority is not None:
        newest = " options=NO_TLSv1_3" if options.tls == "1.2" else ""
        port += f" ssl-bump tls-cert={options.authority} generate-host-certificates=on{newest}"
        port += f" dynamic_cert_mem_cache_size={_CERTIFICATES_SIZE}"
        bump = [
            f"sslcrtd_program {CERTIFICATES} -s {folder / 'certificates'} -M {_CERTIFICATES_SIZE}",
            "sslcrtd_children 2 startup=2 idle=1",
            "ssl_bump bump all",
            # The run's authority is known to squid alone; the servers are in the next namespace.
            "tls_outgoing_options flags=DONT_VERIFY_PEER",
            "sslproxy_cert_error allow all",
        ]
    return "\n".join([port, *bump, *_cache(options, folder), *_rest(options, folder), ""])


def _cache(options: Options, folder: Path) -> list[str]:
    if options.cache == "none":
        return ["cache deny all", "cache_mem 0"]
    largest = f"{options.cache_bytes} bytes"
    if options.cache == "memory":
        return [
            f"cache_mem {options.cache_bytes} bytes",
            f"maximum_object_size_in_memory {largest}",
            f"maximum_object_size {largest}",
        ]
    size = max(1, options.cache_bytes // _MIB)
    return ["cache_mem 0", f"maximum_object_size {largest}", f"cache_dir ufs {folder / 'cache'} {size} 16 64"]


def _rest(options: Options, folder: Path) -> list[str]:
    return [
        f"visible_hostname {NAME}",
        f"hosts_file {folder / 'hosts'}",
        "acl served dstdomain -n " + " ".join(sorted(options.hosts)),
        "http_access allow served",
        "http_access deny all",
        # No name is looked up: those in the hosts file are known, all others are denied.
        "dns_nameservers 127.0.0.1",
        # Their defaults make it look up the names of clients.
        "url_rewrite_extras %>a",
        "store_id_extras %>a",
        "check_hostnames off",
        "strip_query_terms off",
        "collapsed_forwarding off",
        "icp_port 0",
        "htcp_port 0",
        "pinger_enable off",
        "netdb_filename none",
        "workers 1",
        "memory_cache_shared off",
        "max_filedescriptors 16384",
        f"server_idle_pconn_timeout {IDLE_S} seconds",
        "shutdown_lifetime 0 seconds",
        "pid_filename none",
        "cache_store_log none",
        f"cache_log {folder / 'squid.log'}",
        f"coredump_dir {folder}",
        f"logformat wirepaint {_FORMAT}",
        f"access_log stdio:{folder / 'access.log'} logformat=wirepaint",
        "logfile_rotate 0",
    ]


def told(header: str) -> str:
    """Where an answer with this X-Cache came from: "cache hit", "cache miss", or "proxy" for squid's own."""
    found = _X_CACHE.search(header)
    return "proxy" if found is None else f"cache {found[1].lower()}"


def read_log(path: Path) -> list[Served]:
    """The lines of an access log, in the order in which the answers ended."""
    served = []
    for line in path.read_text("utf-8", "replace").splitlines():
        ended, took, method, url, result, status, count, head, address, port = line.split(" ")
        sizes = int(count), int(head)
        served.append(
            Served(int(ended), int(took), method, url, result, int(status), *sizes, address, int(port))
        )
    return served


@dataclass
class Seen:
    """What read-backs found of one of its connections."""

    first_ns: int
    """CLOCK_MONOTONIC of the first one."""
    last: sockets.Report
    congestion: list[str | None]
    """All congestion controls that it had."""


@dataclass(frozen=True)
class Told:
    """What is known of squid at its end."""

    connections: list[Seen]
    served: list[Served]


class Squid:
    """A running squid: a part of a run that tells what it served, and what the kernel says of its sockets."""

    def __init__(self, options: Options, folder: Path, namespace: int, of_namespace: sockets.Sockets) -> None:
        """Starts it in ``namespace``, a descriptor; raises ``RunFailed`` if it does not listen in time."""
        self._folder, self._options, self._namespace = folder, options, namespace
        folder.mkdir(mode=0o755)
        (folder / "hosts").write_text(
            "".join(f"{address} {host}\n" for host, address in options.hosts.items())
        )
        (folder / "squid.conf").write_text(configuration(options, folder))
        os.chown(folder, process.ORDINARY_USER, process.ORDINARY_USER)
        self._sockets = of_namespace
        self._seen: dict[sockets.Ends, Seen] = {}
        self._looked = 0.0
        self._skipped = 0
        if options.authority is not None:
            self._prepare(CERTIFICATES, "-c", "-s", folder / "certificates", "-M", _CERTIFICATES_SIZE)
        if options.cache == "disk":
            self._prepare(PROGRAM, "-N", "-z", "-f", folder / "squid.conf")
        self._process = self._spawn(PROGRAM, "-N", "-f", folder / "squid.conf")
        self.pid = self._process.pid
        self._wait_listening()

    def _spawn(self, *argv: str | Path) -> subprocess.Popen[bytes]:
        with (self._folder / "output.txt").open("ab") as output:
            return process.spawn(
                argv,
                namespace=self._namespace,
                ordinary_user=True,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"},
                cwd=self._folder,
                stdout=output,
                stderr=output,
            )

    def _prepare(self, *argv: str | Path) -> None:
        made = self._spawn(*argv)
        try:
            code = made.wait(START_S)
        except subprocess.TimeoutExpired:
            made.kill()
            code = made.wait()
        if code:
            raise RunFailed(f"{argv[0]} ended with {code}: {self._why()}")

    def _wait_listening(self) -> None:
        deadline = time.monotonic() + START_S
        while not any(self._is_mine(report.ends) for report in self._sockets.reports(sockets.LISTEN)):
            self.check()
            if time.monotonic() > deadline:
                raise RunFailed(f"squid does not listen after {START_S:g} s: {self._why()}")
            time.sleep(0.02)

    def _is_mine(self, ends: sockets.Ends) -> bool:
        return (ends.local_address, ends.local_port) == (self._options.address, self._options.port)

    def look(self) -> None:
        """Reads its sockets back, at most once per ``READ_BACK_S``."""
        if time.monotonic() - self._looked >= READ_BACK_S:
            self.read_back()

    def read_back(self) -> None:
        """Reads its sockets back from the kernel."""
        self._looked = time.monotonic()
        for report in self._sockets.reports(sockets.ESTABLISHED):
            seen = self._seen.setdefault(report.ends, Seen(time.monotonic_ns(), report, []))
            seen.last = report
            if report.congestion not in seen.congestion:
                seen.congestion.append(report.congestion)

    def _served(self) -> list[Served]:
        log = self._folder / "access.log"
        return read_log(log) if log.exists() else []

    def settle(self) -> None:
        """Waits until it has no connection, and forgets what it served; ``RunFailed`` if it keeps some."""
        deadline = time.monotonic() + SETTLE_S
        while left := [report.ends for report in self._sockets.reports(sockets.ESTABLISHED)]:
            self.check()
            if time.monotonic() > deadline:
                raise RunFailed(f"squid keeps {len(left)} connections {SETTLE_S:g} s after the first visit")
            time.sleep(0.05)
        self._seen.clear()
        self._skipped = len(self._served())

    def check(self) -> None:
        """Raises ``RunFailed`` if it has ended."""
        if (code := self._process.poll()) is not None:
            raise RunFailed(f"squid ended under way with {code}: {self._why()}")

    def stop(self) -> Told:
        """Ends it; gives the kernel's last report on each of its connections, and what it served."""
        self.check()
        self.read_back()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RunFailed(f"squid did not stop within {END_S:g} s") from None
        return Told(list(self._seen.values()), self._served()[self._skipped :])

    def kill(self) -> None:
        """Ends it at once if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _why(self) -> str:
        lines: list[str] = []
        for name in ("output.txt", "squid.log"):
            with contextlib.suppress(OSError):
                lines += (self._folder / name).read_text("utf-8", "replace").strip().splitlines()
        told = [line for line in lines if "FATAL" in line or "ERROR" in line]
        return (told or lines or ["no message"])[-1]
