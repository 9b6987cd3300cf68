"""Cells: isolate all processes of a run, and end them with it.

```
CLI ── mother ─┬─ launcher ── middle ── cell (PID 1 of its own PID namespace) ── emulator, server, browser ...
               └─ launcher ...
```
A cell has PID, mount, network and IPC namespaces of its own, and a tmpfs for temporary files.
Each arrow is a parent-death signal: after kill -9 of any process, the CLI included, the kernel
kills the processes below it. The namespaces, devices, mounts and BPF objects of a cell end with
its last process. Nothing has a name on the host, so there is nothing to clean up.

The mother is started once and imports what a run needs, so launchers and cells start in milliseconds. There
is a launcher for each of the runs that go side by side. These processes fork, so they never start a thread.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from wirepaint import linux
from wirepaint.errors import MachineLacks, PageFailed, PageTimeout, Refused, RunFailed, WirepaintError
from wirepaint.results.lock import Lock
from wirepaint.runners import ownership
from wirepaint.runners.testbed.others import Others

SCRATCH = Path("/dev/shm")
"""Inside a cell: a tmpfs of its own."""

LOCK = Path("/run/wirepaint.lock")

_REALTIME_PRIORITY = 40
"""Priority of kernel threads that do a host's work: below the emulator's."""
_PATIENCE_S = 5.0
"""How long launchers may take to end their cells before all are killed."""
_MOST_BYTES = 1024
"""Of a question to the middle and of its answer."""
_outside: socket.socket | None = None
"""In a cell: the socket to its middle process, which is outside."""

ERRORS = {kind.__name__: kind for kind in (PageFailed, PageTimeout, Refused)}
"""Errors that leave a cell with their type; all others become ``RunFailed``."""
_PRELOADED = ("polars", "pyroute2", "wirepaint.runners.testbed.page_run")


class _Mother:
    """The process that forks launchers."""

    def __init__(self) -> None:
        parent = os.getpid()
        self._channel, far = socket.socketpair()
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({far.fileno()})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[far.fileno()],
                preexec_fn=lambda: linux.die_with_parent(parent),
                start_new_session=True,
            )

    def launch(self) -> socket.socket:
        """The channel of a new launcher; raises OSError if this process has died."""
        near, far = socket.socketpair()
        with far:
            socket.send_fds(self._channel, [b"+"], [far.fileno()])
        return near

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends at once, and with it all launchers and cells."""
        self._process.kill()
        self._process.wait()


class Cells:
    """Runs functions in cells, one at a time. A context manager."""

    def __init__(self, wait_s: float = 0.0, *, beside: Cells | None = None) -> None:
        """Takes the machine's testbed, or is there ``beside`` others of the same command, which close later.

        Waits for a testbed that another command uses; raises UsageError after ``wait_s``, MachineLacks
        without root.
        """
        if os.geteuid() != 0:
            raise MachineLacks("the testbed needs root", "Run the command with sudo, or use the simulator.")
        self._first = beside or self
        if beside is None:
            accepted = (
                "one command at a time: two would disturb each other's runs (--wait 30min waits for it)"
            )
            self._lock = Lock(LOCK, "the testbed", accepted, wait_s)
            ownership.claim()
            self._mother = _Mother()
        self._launch()

    def __enter__(self) -> Cells:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the launcher, and with it every process in a cell; the first one leaves the testbed."""
        self._end()
        if self._first is self:
            self._mother.close()
            self._lock.release()

    def renew(self) -> None:
        """Ends the launcher and every process in a cell, and begins with a new one."""
        self._end()
        self._launch()

    def _launch(self) -> None:
        try:
            self._channel = self._first._mother.launch()
        except OSError:
            self._first._mother = _Mother()
            self._channel = self._first._mother.launch()
        self._answers = self._channel.makefile("rb")

    def _end(self) -> None:
        """Waits until no process of a cell is left: until then one has the channel's other end."""
        with self._answers, self._channel, contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
            self._channel.settimeout(_PATIENCE_S)
            try:
                while self._channel.recv(65536):
                    pass
            except TimeoutError:
                self._first._mother.kill()

    def call(self, function: str, argument: Any, *, timeout_s: float, log: Path) -> Any:
        """Calls ``module:function`` with a JSON value inside a new cell and returns its JSON result.

        The cell's standard error goes to ``log``. Raises ``RunFailed`` (or its kinds ``PageFailed`` and
        ``PageTimeout``) or ``Refused`` with the cause when the function raised, the cell died or the time was
        up (then the cell is killed).
        """
        self.begin(function, argument, timeout_s=timeout_s, log=log)
        return self.result()

    def begin(self, function: str, argument: Any, *, timeout_s: float, log: Path) -> None:
        """Begins a call, of which ``result`` gives the end."""
        request = {
            "function": function,
            "argument": argument,
            "timeout_s": timeout_s,
            "log": str(log.absolute()),
        }
        try:
            self._channel.sendall(json.dumps(request).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            raise RunFailed("the launcher of cells died") from None

    def result(self) -> Any:
        """Waits for the call that was begun; returns and raises as ``call`` does."""
        if not (line := self._answers.readline()):
            raise RunFailed("the launcher of cells died")
        answer = json.loads(line)
        if "error" in answer:
            raise ERRORS.get(answer.get("kind"), RunFailed)(answer["error"])
        return answer["result"]

    def fileno(self) -> int:
        """Readable once the call has ended, so that several can be waited for."""
        return self._channel.fileno()


def serve(channel: int) -> None:
    """The mother: a launcher for each socket that comes through ``channel``, until that ends."""
    for module in _PRELOADED:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps launchers
    mother = os.getpid()
    with socket.socket(fileno=channel) as asked:
        while received := socket.recv_fds(asked, 1, 1)[1]:
            with socket.socket(fileno=received[0]) as of_launcher:
                if os.fork() == 0:
                    asked.close()
                    _launch(of_launcher, mother)


def _launch(channel: socket.socket, mother: int) -> None:
    """A launcher: one answer a line to one request a line, until these end."""
    try:
        linux.die_with_parent(mother)
        linux.become_subreaper()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        requests = channel.makefile("rb")
        while line := requests.readline():
            answer = _in_new_cell(json.loads(line), channel)
            channel.sendall(json.dumps(answer).encode() + b"\n")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _in_new_cell(request: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    launcher = os.getpid()
    middle = os.fork()
    if middle == 0:
        _middle(request, launcher, writer)
    os.close(writer)
    try:
        output, ended = _read_all(reader, channel, time.monotonic() + request["timeout_s"])
    finally:
        os.close(reader)
    if not ended:
        os.kill(middle, signal.SIGKILL)
    _, status = os.waitpid(middle, 0)
    # The launcher inherits a cell whose middle died. When the cell ends, so does its PID namespace.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    if not ended:
        return {"error": f"not done within {request['timeout_s']:.0f} s"}
    if not output:
        return {"error": f"the cell died ({_cause(status)}); see {request['log']}"}
    return json.loads(output)


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def _read_all(reader: int, channel: socket.socket, deadline: float) -> tuple[bytes, bool]:
    """All bytes until the other end closes; False when the deadline or the channel's end came first."""
    output = b""
    while True:
        left = deadline - time.monotonic()
        ready = select.select([reader, channel], [], [], max(left, 0))[0]
        if reader in ready:
            data = os.read(reader, 65536)
            if not data:
                return output, True
            output += data
        elif not ready or left <= 0 or channel in ready:
            return output, False


def _middle(request: dict[str, Any], launcher: int, writer: int) -> None:
    """The process between launcher and cell: only children of a process enter a new PID namespace."""
    code = 1
    try:
        linux.die_with_parent(launcher)
        linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC)
        # The cell mounts its own over it.
        proc = os.open("/proc", os.O_RDONLY | os.O_CLOEXEC)
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        cell = os.fork()
        if cell == 0:
            near.close()
            linux.die_with_parent()
            # getppid() is 0 across a PID namespace. If the middle died before the call above, its
            # end of the socket is closed.
            if far.recv(_MOST_BYTES) != b"go":
                os._exit(1)
            _cell(request, writer, far)
        far.close()
        os.close(writer)
        near.send(b"go")
        others = None
        while asked := near.recv(_MOST_BYTES):
            match asked.decode().split():
                case ["realtime", thread, cpus]:
                    near.send(b"y" if _make_realtime(proc, thread, int(cpus)) else b"n")
                case ["watch"]:
                    others = Others(proc, os.getpid())
                    near.send(b"y")
                case _:
                    near.send(json.dumps(others.most() if others else []).encode())
        _, status = os.waitpid(cell, 0)
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        code = os.waitstatus_to_exitcode(status)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def make_realtime(thread: str, cpus: int) -> bool:
    """Gives the kernel thread of that name real-time priority on the first ``cpus`` CPUs.

    False if that fails. Only the first PID namespace shows kernel threads, so a cell asks its middle.
    """
    if _outside is not None:
        _outside.send(f"realtime {thread} {cpus}".encode())
        return _outside.recv(_MOST_BYTES) == b"y"
    proc = os.open("/proc", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _make_realtime(proc, thread, cpus)
    finally:
        os.close(proc)


def watch_others() -> None:
    """Begins to watch the processes that are outside; see ``others``."""
    if _outside is not None:
        _outside.send(b"watch")
        _outside.recv(_MOST_BYTES)


def others() -> list[tuple[str, float]]:
    """Names and CPU seconds of the processes outside that used most since ``watch_others``.

    Empty outside of a cell. A cell sees only its own processes, so it asks its middle.
    """
    if _outside is None:
        return []
    _outside.send(b"others")
    return [(name, seconds) for name, seconds in json.loads(_outside.recv(_MOST_BYTES))]


def _make_realtime(proc: int, thread: str, cpus: int) -> bool:
    for pid in filter(str.isdecimal, os.listdir(proc)):
        with contextlib.suppress(OSError):
            comm = os.open(f"{pid}/comm", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)
            with os.fdopen(comm) as file:
                if file.read().rstrip("\n") != thread:
                    continue
            os.sched_setscheduler(int(pid), os.SCHED_FIFO, os.sched_param(_REALTIME_PRIORITY))
            os.sched_setaffinity(int(pid), range(cpus))
            return True
    return False


def _cell(request: dict[str, Any], writer: int, outside: socket.socket) -> None:
    """PID 1 of the cell: calls the function and writes its answer; its end ends all other processes."""
    global _outside
    _outside = outside
    try:
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        linux.mount("none", "/", "none", linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        linux.mount("tmpfs", str(SCRATCH), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
        os.environ["TMPDIR"] = str(SCRATCH)
        module, _, name = request["function"].partition(":")
        result = getattr(importlib.import_module(module), name)(request["argument"])
        answer = {"result": result}
    except WirepaintError as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    except BaseException as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writer, data) :]
    os._exit(0)
