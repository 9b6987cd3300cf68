"""A Dask scheduler with workers, as users start them: processes of their own on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import holds_within

SCRIPTS = Path(sys.executable).parent
WIREPAINT = SCRIPTS / "wirepaint"
STARTS_S = 60
WITH_DASK_ONLY = """
import sys
sys.modules["wirepaint"] = None
from dask.__main__ import main
main()
"""
"""The command ``dask`` where wirepaint is not installed."""


class Cluster:
    """A scheduler and the commands ``wirepaint worker``; ``folder`` has their logs.

    All processes have ``env`` in their environment.
    """

    def __init__(self, folder: Path, tls: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        self.folder, self.tls, self.env = folder, tls, dict(env or {})
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"{'tls' if tls else 'dask'}://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def start(
        self, name: str, *argv: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}-{len(self.processes)}.log").open("wb") as log:
            started = subprocess.Popen(
                argv,
                stdout=log,
                stderr=log,
                env=os.environ | self.env | dict(env or {}),
                start_new_session=True,
            )
        self.processes.append(started)
        return started

    def start_scheduler(self, **env: str) -> subprocess.Popen[bytes]:
        options = [option.replace("--tls-ca", "--tls-ca-file") for option in self.tls]
        protocol = "tls" if self.tls else "tcp"
        where = ("--host", f"{protocol}://127.0.0.1:{self.port}", "--no-dashboard", "--no-show")
        started = self.start(
            "scheduler", sys.executable, "-c", WITH_DASK_ONLY, "scheduler", *where, *options, env=env
        )
        assert holds_within(STARTS_S, self._listens), self.logs()
        return started

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def start_worker(
        self, processes: int = 2, *, name: str | None = None, **env: str
    ) -> subprocess.Popen[bytes]:
        options = ("--backend", "simulator", "--processes", str(processes))
        return self._started((*options, *(("--name", name) if name else ())), env)

    def start_host(self, name: str, **env: str) -> subprocess.Popen[bytes]:
        """A worker with the testbed of this machine, under a name of its own."""
        return self._started(("--backend", "testbed", "--name", name), env)

    def _started(self, options: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        log = self.folder / f"worker-{len(self.processes)}.log"
        started = self.start("worker", WIREPAINT, "worker", self.address, *options, *self.tls, env=env)
        assert holds_within(STARTS_S, lambda: b"Ctrl-C ends them" in log.read_bytes()), self.logs()
        return started

    def workers(self) -> list[int]:
        """Pids of the processes that carry out batches."""
        of_these = {process.pid for process in self.processes}
        return [pid for pid, parent in _processes() if parent in of_these and b"spawn_main" in _command(pid)]

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            # Python's tracker of shared semaphores removes them once the others are gone.
            holds_within(5, lambda group=process.pid: not _has_members(group))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_text()
                yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def cluster(folder: Path, tls: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    started = Cluster(folder, tls, env)
    try:
        yield started
    finally:
        started.end()
