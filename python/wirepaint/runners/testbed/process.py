"""Starting and stopping the parts of a run inside their namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from wirepaint import dataplane, linux
from wirepaint.errors import Refused, RunFailed
from wirepaint.runners import ownership, refusals

ENDING_S = 2.0
"""Longest time from the end of a part's output to the end of its process."""
ORDINARY_USER = 65534
"""Numeric user and group (nobody) of every process that handles recorded content."""


def spawn(
    argv: Sequence[str | Path],
    *,
    namespace: int | None = None,
    ordinary_user: bool = False,
    extra_fds: Mapping[int, int] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int | IO[Any] | None = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program in a network namespace, given as a descriptor.

    ``extra_fds`` maps a descriptor number of the child to one of ours (the DevTools pipe wants 3
    and 4). ``ordinary_user`` drops all rights before exec. The kernel kills the program when
    the calling thread ends, however that happens. Call from a single-threaded process: the namespace is
    entered between fork and exec.
    """
    extra_fds = dict(extra_fds or {})
    if env is not None and ownership.VARIABLE in os.environ:
        env = {**env, ownership.VARIABLE: os.environ[ownership.VARIABLE]}
    command = [os.fspath(argument) for argument in argv]
    if extra_fds:
        # A shell places the descriptors: between fork and exec Python's own error pipe may hold 3 or 4.
        # dash would refuse descriptors above 9.
        places = " ".join(f"{child}<&{ours}" for child, ours in extra_fds.items())
        command = ["/bin/bash", "-c", f'exec "$0" "$@" {places}', *command]

    parent = os.getpid()

    def prepare() -> None:
        if namespace is not None:
            linux.setns(namespace)
        if ordinary_user:
            os.setgroups([])
            os.setgid(ORDINARY_USER)
            os.setuid(ORDINARY_USER)
        # Last: a change of user would cancel it.
        linux.die_with_parent(parent)

    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=None if env is None else dict(env),
        cwd=cwd,
        pass_fds=tuple(extra_fds.values()),
        preexec_fn=prepare,
        start_new_session=True,
    )


class Part:
    """One verb of the data plane that serves during a run.

    ``ready`` is the JSON line it printed when it began to serve, ``stop`` returns its summary.
    """

    def __init__(
        self,
        verb: Sequence[str],
        run_file: Path,
        log: IO[Any],
        namespace: int | None = None,
        extra_fds: Mapping[int, int] | None = None,
        listens: bool = False,
        nice: int = 0,
    ) -> None:
        """``listens``: the part can be told something (:meth:`tell`). ``nice`` below 0 favours it."""
        self.name = " ".join(verb)
        self._run_file = run_file
        self._output = b""
        self._log = log
        self._process = spawn(
            [dataplane.program(), *verb, run_file],
            namespace=namespace,
            extra_fds=extra_fds,
            stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        self.pid = self._process.pid
        if nice:
            os.setpriority(os.PRIO_PROCESS, self.pid, nice)
        self.ready: dict[str, Any] = {}

    def wait_ready(self, timeout_s: float = 20.0) -> dict[str, Any]:
        """Waits for the ready line.

        Raises ``Refused`` when the part refuses its input (``PageFailed`` if the page is wrong),
        ``RunFailed`` when it ended otherwise or is too slow.
        """
        if not self.ready:
            line = self._line(timeout_s)
            if line is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if self._process.wait(ENDING_S) == Refused.exit_code:
                        raise refusals.refusal(self._why(), self.name)
                raise RunFailed(f"{self.name} did not get ready: {self._why()}")
            self.ready = line
        return self.ready

    def tell(self, line: str) -> None:
        """Writes a line to the part's standard input; raises ``RunFailed`` if it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            self.check()

    def has_ended(self) -> bool:
        """True once the part has ended by itself with success."""
        if self._process.returncode is not None:
            return self._process.returncode == 0
        # Not waited for: its CPU time is read until the end of the run.
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None and (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0)

    def check(self) -> None:
        """Raises ``RunFailed`` if the part has ended by itself: the page would wait until its timeout."""
        if (code := self._process.poll()) is not None:
            raise RunFailed(f"{self.name} ended under way with {code}: {self._why()}")

    def stop(self, timeout_s: float = 20.0) -> dict[str, Any]:
        """Asks the part to finish and returns its summary; raises ``RunFailed`` when it gives none."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        summary = self._line(timeout_s)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RunFailed(f"{self.name} did not stop within {timeout_s:.0f} s") from None
        if code != 0 or summary is None:
            raise RunFailed(
                f"{self.name} ended with {code} and {'no' if summary is None else 'a'} summary: {self._why()}"
            )
        return summary

    def kill(self) -> None:
        """Ends the part at once if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _why(self) -> str:
        self._log.flush()
        try:
            tail = Path(self._log.name).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return "see the log"
        if tail:
            return tail[-1]
        code = self._process.poll()
        return "no answer in time" if code is None else f"exit code {code}"

    def _line(self, timeout_s: float) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._output:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                return None
            data = os.read(fd, 65536)
            if not data:
                return None
            self._output += data
        line, _, self._output = self._output.partition(b"\n")
        return json.loads(line)
