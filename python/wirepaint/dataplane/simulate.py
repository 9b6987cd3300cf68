"""Carries out simulated runs, many at once, in one process of the data plane."""

from __future__ import annotations

import fcntl
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from pydantic_core import from_json

from wirepaint import dataplane, linux
from wirepaint.dataplane.description import Run, Same
from wirepaint.errors import RunFailed

Job = TypeVar("Job")
_ROOM = 16
"""Runs per core that a process has at a time."""
_TOGETHER = 32
"""Runs without files that it gets at a time; each by itself would wake both processes twice."""
_PIPE_BYTES = 2**20
"""Asked for the pipe of such runs; each takes 5 kB, and its pages 100 kB once."""
_PAGES = 32
"""Pages of runs that a process holds; each takes some 100 kB."""


@dataclass(frozen=True)
class Named:
    """A run description without a file, and the name by which the program knows it."""

    name: str
    run: Run
    own: str | None = None
    """What the run has of its own, as JSON, if ``run`` is another one of its condition."""


class Died(RunFailed, Generic[Job]):
    """The process ended while it had runs; ``jobs`` are theirs."""

    def __init__(self, message: str, jobs: list[Job]) -> None:
        super().__init__(message)
        self.jobs = jobs


def ends(
    jobs: Iterator[tuple[Job, Path | Named]],
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
    cores: int | None = None,
    collect: tuple[Path, Collection[str]] | None = None,
) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    """Simulates run descriptions; gives each job with the line that the program says at its end.

    It works on ``cores``, on all of them by default. A job is what the caller knows a run by, with the path
    of its ``run.json``, or with a description for which there is no file. The next one is taken when
    there is room: ``_ROOM`` for each core are in the process at most, so that few are lost with it. Raises
    ``Died`` with these when the process ends early. ``interruptible`` surrounds each wait.

    With ``collect``, a folder and tables, no run has a trace of its own: each of the tables is one Arrow
    stream, ``TABLE.arrows``, with the rows of all runs. ``_TOGETHER`` runs for each core are taken when the
    last ones have ended.
    """
    workers = cores or len(os.sched_getaffinity(0))
    # It has work while this process computes the metrics of many runs at once; on one core nothing is gained.
    room = workers if cores else _ROOM * workers
    if collect is not None:
        room = _TOGETHER * workers
    # The program itself asks to die with this process. With a function of ours between fork and exec, the
    # kernel would first copy the page tables of this process.
    argv = [dataplane.program(), "simulate", "--workers", str(workers), "--parent", str(os.getpid()), "-"]
    if collect is not None:
        argv += ["--collect", collect[0], "--tables", ",".join(collect[1])]
    asked: dict[str, Job] = {}
    runs = _Input(jobs)
    with (
        # Errors of a run come in its line; the log explains the end of the program itself.
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        # More than the pipe takes could wait for ever: the process may wait, too, for its lines to be read.
        most = math.inf if collect is None else _widened(process.stdin)
        try:
            while True:
                if collect is None or not asked:
                    lines: list[bytes] = []
                    for known, name, line in runs.take(room - len(asked), most):
                        asked[name] = known
                        lines.append(line)
                    if lines:
                        with suppress(BrokenPipeError):  # then the next line is its end
                            _write(process.stdin.fileno(), b"".join(lines))
                if not asked:
                    return
                if runs.over:
                    # No more runs: the process ends after the last. A thread that panicked gives no line.
                    process.stdin.close()
                with interruptible():
                    end = process.stdout.readline()
                if not end.endswith(b"\n"):
                    raise Died(_last_words(process, log), [*asked.values(), *runs.ahead()])
                said = from_json(end)
                yield asked.pop(said["run"]), said
        finally:
            process.kill()


class _Input(Generic[Job]):
    """The runs for a process: what the caller knows each by, its name there, and its lines."""

    def __init__(self, jobs: Iterator[tuple[Job, Path | Named]]) -> None:
        self._jobs, self._sent = jobs, _Sent()
        self._ahead: tuple[Job, str, bytes] | None = None
        self.over = False
        """Whether there are no more."""

    def take(self, number: int, most: float) -> Iterator[tuple[Job, str, bytes]]:
        """So many runs, or fewer: their lines have ``most`` bytes, unless the first one alone has more."""
        size = 0
        for _ in range(0 if self.over else number):
            one, self._ahead = self._ahead or self._next(), None
            if one is None:
                self.over = True
                return
            if size and size + len(one[2]) > most:
                self._ahead = one
                return
            size += len(one[2])
            yield one

    def _next(self) -> tuple[Job, str, bytes] | None:
        job = next(self._jobs, None)
        return None if job is None else (job[0], *self._sent.lines(job[1]))

    def ahead(self) -> list[Job]:
        """The run that was taken and had no room, if there is one."""
        return [] if self._ahead is None else [self._ahead[0]]


class _Sent:
    """The pages that a process has. Runs with the same load graphs share them."""

    def __init__(self) -> None:
        self._names: dict[tuple[tuple[str, Same], ...], str] = {}

    def lines(self, described: Path | Named) -> tuple[str, bytes]:
        """The name of a run, and its input for the process: after its pages if the process lacks them."""
        if not isinstance(described, Named):
            return str(described), f"{described}\n".encode()
        run = described.run
        pages = tuple((name, Same(graph)) for name, graph in run.pages.items())
        before = ""
        name = self._names.pop(pages, None)
        if name is None:
            name = str(len(self._names))
            if len(self._names) == _PAGES:
                name = self._names.pop(next(iter(self._names)))
            before = f"\t{name}\t{run.pages_text()}\n"
        self._names[pages] = name  # the last one: the first is the one that was not used for longest
        line = f"{before}{run.line(described.name, name, described.own)}\n"
        return described.name, line.encode()


def one(run: Run) -> dict[str, Any]:
    """Simulates one run; its tables are in its trace folder. Raises ``RunFailed`` when it was refused."""
    return dataplane.call("simulate", str(run.write()))


def _widened(pipe: IO[bytes]) -> int:
    """Bytes that a pipe takes at once, once it is as wide as Linux grants: a user may have many of them."""
    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _last_words(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Why the program ended, with its last message."""
    code = process.wait()
    log.seek(0)
    lines = [line.strip() for line in log.read().decode("utf-8", "replace").split("\n")]
    # The last line of a panic only says how to get a backtrace.
    said = next((line for line in reversed(lines) if line and not line.startswith("note: ")), "")
    return f"the simulator ended during the run: {linux.ended(code)}" + (f": {said}" if said else "")
