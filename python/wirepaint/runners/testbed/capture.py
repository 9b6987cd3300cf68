"""Packet captures of a run: dumpcap at the device of each user and at the server's.

Each end of the path gives one pcapng file, with the secrets of the user's TLS connections in it. Packets that
are missing in a file are told: what dumpcap counted is compared with what the kernel counted.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirepaint import pcapng
from wirepaint.errors import MachineLacks, RunFailed
from wirepaint.results import captures
from wirepaint.runners.testbed import wiring
from wirepaint.runners.testbed.namespaces import Namespaces
from wirepaint.runners.testbed.process import ENDING_S, spawn
from wirepaint.runners.testbed.reason import Reason

PROGRAM = "dumpcap"
PACKAGE = "wireshark-common"
FLUSH_S = 0.5
"""dumpcap takes packets from the kernel when a block of its buffer is full, or every 250 ms (CAP_READ_TIMEOUT
in dumpcap.c). When it is ended it forgets the others, and counts none of them as dropped."""
_BUFFER_MIB = 16
"""The kernel's buffer of one capture: 130 ms of packets at 1 Gbit/s. The default has 2 MiB."""
_READY_S = 10.0
_READY = b"File: "
"""dumpcap says so when its socket is open and its file begun."""
_KB = 1000
_MOST_SECRETS = 16 * 2**20
"""Bytes. A connection of TLS 1.3 has 1 kB."""
_SECRET = re.compile(rb"[A-Z0-9_]+ [0-9a-f]{64} [0-9a-f]{32,256}\n")
"""A line of a key log (NSS Key Log Format): label, client random, secret."""


@dataclass(frozen=True)
class End:
    """A device at one end of a user's path."""

    user: str
    side: str
    """client or server."""
    namespace: int
    """Descriptor of the device's network namespace."""
    device: str
    address: str | None = None
    """Only packets from and to this IPv4 address, where users share a device; None for all."""

    @property
    def name(self) -> captures.Name:
        return captures.Name(self.user, self.side)


def program() -> str:
    """Path of dumpcap; raises MachineLacks without it."""
    if found := shutil.which(PROGRAM):
        return found
    remedy = f"Debian: apt-get install {PACKAGE}; or leave [capture] out of the evaluation."
    raise MachineLacks(f"{PROGRAM} is not installed: [capture] needs it", remedy)


def version() -> str:
    """Name and version of dumpcap; raises MachineLacks without it."""
    said = subprocess.run([program(), "--version"], capture_output=True, text=True, check=False, timeout=10)
    return said.stdout.partition(" (Git")[0].rstrip(".\n")


class Capture:
    """A capture under way at one end. It ends with this process (``process.spawn``)."""

    def __init__(self, end: End, asked: Mapping[str, Any], folder: Path, comment: str) -> None:
        """Starts it; ``asked`` is ``capture`` of the run description, ``folder`` the run's."""
        self.end = end
        self.file = folder / end.name.file
        self._raw = self.file.with_suffix(".raw")
        self._said = b""
        limit, snap = asked["size_limit"], asked.get("snap_length")
        self._process = spawn(
            [
                *(program(), "-q", "-p", "-i", end.device, "-w", self._raw),
                *("-B", str(_BUFFER_MIB), "-a", f"filesize:{-(-limit // _KB)}"),
                *("--capture-comment", f"{comment}: {end.user}, {end.side}"),
                *(("-s", str(snap)) if snap else ()),
                *(("-f", f"host {end.address}") if end.address else ()),
            ],
            namespace=end.namespace,
            stderr=subprocess.PIPE,
        )
        self.pid = self._process.pid

    def wait_ready(self) -> None:
        """Waits until packets are captured; raises ``RunFailed`` if they will not be."""
        deadline = time.monotonic() + _READY_S
        while _READY not in self._said:
            if not self._read(deadline - time.monotonic()):
                raise RunFailed(f"{PROGRAM} at the {self._where()} did not get ready: {self._why()}")

    def check(self) -> None:
        """Raises ``RunFailed`` if the capture has failed; one that has reached its limit has not."""
        # Not waited for: the CPU time of a process is read until the end of the run.
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and (ended.si_code, ended.si_status) != (os.CLD_EXITED, 0):
            raise RunFailed(f"{PROGRAM} at the {self._where()} ended under way: {self._why()}")

    def stop(self) -> tuple[pcapng.Statistics, bool]:
        """Ends it; returns its counters, and whether it had reached its limit before.

        Raises ``RunFailed`` if it left no whole file.
        """
        full = self._process.poll() is not None
        if not full:
            self._process.send_signal(signal.SIGTERM)
        while self._read(ENDING_S):
            pass
        try:
            code = self._process.wait(ENDING_S)
            with self._raw.open("rb") as file:
                counted = pcapng.statistics(file)
        except (subprocess.TimeoutExpired, OSError, ValueError) as error:
            raise RunFailed(
                f"{PROGRAM} at the {self._where()} left no capture ({error}): {self._why()}"
            ) from None
        if code != 0:
            raise RunFailed(f"{PROGRAM} at the {self._where()} ended with {code}: {self._why()}")
        return counted, full

    def keep(self, secrets: bytes) -> None:
        """Writes the file of the results: the capture, with ``secrets`` (a key log) before its packets."""
        with self._raw.open("rb") as raw, self.file.open("xb") as file:
            length = pcapng.section_length(raw)
            raw.seek(0)
            file.write(raw.read(length))
            if secrets:
                file.write(pcapng.tls_secrets(secrets))
            shutil.copyfileobj(raw, file)
        self._raw.unlink()

    def kill(self) -> None:
        """Ends it at once if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _read(self, timeout_s: float) -> bool:
        """Reads what dumpcap says next; False at its end, or when the time is up."""
        assert self._process.stderr is not None
        pipe = self._process.stderr.fileno()
        if not select.select([pipe], [], [], max(timeout_s, 0))[0]:
            return False
        more = os.read(pipe, 65536)
        self._said += more
        return bool(more)

    def _where(self) -> str:
        return f"{self.end.side}'s device of {self.end.user}"

    def _why(self) -> str:
        while self._read(0):
            pass
        said = self._said.decode("utf-8", "replace").partition("Packets captured")[0]
        _, told, cause = said.partition(f"{PROGRAM}: ")
        return " ".join(cause.split()) if told else "it gave no cause"


class Captures:
    """The captures of a run. A context manager: none goes on after it."""

    def __init__(
        self, ends: Sequence[End], asked: Mapping[str, Any] | None, folder: Path, comment: str
    ) -> None:
        """Starts one at each end, or none if none is ``asked``; they are ready on return.

        ``comment`` goes into the files. Raises ``RunFailed``.
        """
        self._running: list[Capture] = []
        if asked is None:
            return
        (folder / captures.FOLDER).mkdir()
        try:
            for end in ends:
                self._running.append(Capture(end, asked, folder, comment))
            for one in self._running:
                one.wait_ready()
        except BaseException:
            self._kill()
            raise

    def __enter__(self) -> Captures:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def __bool__(self) -> bool:
        return bool(self._running)

    @property
    def pids(self) -> dict[str, int]:
        """The processes, by name."""
        return {f"capture of {one.end.user} at the {one.end.side}": one.pid for one in self._running}

    def check(self) -> None:
        """Raises ``RunFailed`` if one has failed."""
        for one in self._running:
            one.check()

    def finish(self, paths: Namespaces, secrets: Mapping[str, bytes]) -> list[Reason]:
        """Ends them, completes their files, and returns what is missing in them.

        Call it when no packet of the run is under way. ``secrets`` are key logs by user.
        """
        if not self._running:
            return []
        before = _passed(self._running, paths)
        time.sleep(FLUSH_S)
        stopped = [(one, *one.stop()) for one in self._running]
        after = _passed(self._running, paths)
        for one in self._running:
            one.keep(secrets.get(one.end.user, b""))
        return list(_missing(stopped, before, after))

    def _kill(self) -> None:
        for one in self._running:
            one.kill()


Device = tuple[int, str]
"""Namespace and name."""


def _passed(running: Sequence[Capture], paths: Namespaces) -> dict[Device, int]:
    found = {}
    for namespace, device in {(one.end.namespace, one.end.device) for one in running}:
        with paths.inside(namespace):
            found[namespace, device] = wiring.seen(device)
    return found


def _missing(
    stopped: Sequence[tuple[Capture, pcapng.Statistics, bool]],
    before: Mapping[Device, int],
    after: Mapping[Device, int],
) -> Iterator[Reason]:
    """Packets that are in no file. Captures of one device, each of an address, hold its packets together."""
    held: dict[Device, int] = defaultdict(int)
    full = set()
    for one, counted, reached in stopped:
        end = one.end
        held[end.namespace, end.device] += counted.received + counted.dropped
        if reached:
            full.add((end.namespace, end.device))
            found = (
                f"that of {end.user} at the {end.side} ended at its limit, with {counted.received} packets"
            )
            yield Reason("capture", "note", found, "a larger size_limit, or a smaller snap_length")
        if counted.dropped:
            found = f"that of {end.user} at the {end.side} dropped {counted.dropped} packets"
            yield Reason("capture", "note", found, "none dropped")
    for device in held.keys() - full:
        if not before[device] <= held[device] <= after[device]:
            found = f"{held[device]} packets at {device[1]} of the {_side(stopped, device)}"
            yield Reason(
                "capture", "note", found, f"{before[device]} to {after[device]}, as the kernel counted"
            )


def _side(stopped: Sequence[tuple[Capture, pcapng.Statistics, bool]], device: Device) -> str:
    return next(one.end.side for one, *_ in stopped if (one.end.namespace, one.end.device) == device)


def key_log(path: Path) -> bytes:
    """The whole lines of a key log that an ordinary user's browser wrote; empty if it wrote none.

    The browser is not trusted: no link is followed, and what is no line of a key log is left out.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        lines = (file.read(_MOST_SECRETS) or b"").splitlines(keepends=True)
    return b"".join(line for line in lines if _SECRET.fullmatch(line))
