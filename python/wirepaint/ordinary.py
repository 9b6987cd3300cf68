"""Works on strangers' recordings as an ordinary user, even if root runs the command.

:func:`done` calls a function with a folder. Without root that is a plain call. As root, a child process
becomes :data:`USER` first: it may write only that folder and world-writable places. Root
reads back JSON, and copies regular files by :func:`take`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, NoReturn

from wirepaint import errors, linux
from wirepaint.errors import MachineLacks, PageFailed, WirepaintError, cut
from wirepaint.scratch import scratch

USER = 65_532
"""Numeric user and group of the child. It differs from that of browser and replay server on the testbed, so
that none can touch another, and from the user who called sudo, whose account can become root."""
KEPT = (linux.CAP_DAC_READ_SEARCH,)
"""The child may read like root: recordings, and this program, may be in homes that others cannot enter."""
MOST_SAID, MOST_TAKEN = 2**28, 2**29
"""Limits in bytes for the JSON and the files that root reads back."""
_FIRST_TO_GO = b"500"
"""If memory runs out, the kernel kills the child, not the process that waits for it."""

Say = Callable[[str], None]
Work = Callable[[Path, Say], Any]
"""Work in a folder, which may report progress; returns a JSON value."""


@contextmanager
def done(
    work: Work, of: str, say: Say = lambda _: None, *, fresh: bool = False, browser: bool = False
) -> Iterator[tuple[Path, Any]]:
    """Does work in a temporary folder; gives that folder and the result of the work to the body.

    ``of`` names the source in errors. ``fresh`` starts the child as a new process; work with Polars
    needs it (a fork loses its threads), and ``work`` must be picklable then. ``browser``: it starts one.
    Raises the errors of ``work``: those of wirepaint and of the system unchanged, others with their name and
    text. Raises :class:`PageFailed` if the child dies, ``MachineLacks`` if root cannot become another
    user.
    """
    with scratch(browser=browser) as outer:
        folder = outer / "own"
        folder.mkdir(mode=0o700)
        if os.geteuid() != 0:
            with _temporaries(folder):
                value = work(folder, say)
        else:
            outer.chmod(0o711)
            try:
                os.chown(folder, USER, USER)
            except OSError as error:
                raise _lack(error) from None
            value = _by_child(work, folder, of, say, fresh)
        yield folder, value


def take(made: Path, target: Path, *folders: str) -> None:
    """Copies the files in ``made``, and in these folders of it, to ``target``.

    The maker may still be at work, so links are not followed. Raises :class:`PageFailed` for anything but
    regular files of the owner, and for more than :data:`MOST_TAKEN` bytes.
    """
    left = MOST_TAKEN
    for name in ("", *folders):
        descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            owner = os.fstat(descriptor).st_uid
            if name:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
                (target / name).mkdir(exist_ok=True)
            with os.scandir(descriptor) as entries:
                found = [entry.name for entry in entries]
            for each in found:
                if name or each not in folders:
                    left -= _copy(descriptor, each, owner, target / name / each, left)
        finally:
            os.close(descriptor)


def _copy(descriptor: int, name: str, owner: int, target: Path, most: int) -> int:
    """Copies a file of the folder behind ``descriptor``; returns its size."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
    except OSError as error:
        raise _strange(name, error.strerror or "an error") from None
    try:
        found, size = os.fstat(file), 0
        if not S_ISREG(found.st_mode) or found.st_uid != owner or found.st_nlink != 1:
            raise _strange(name, "no regular file of its own")
        with target.open("xb", buffering=0) as copied:
            while size <= most and (sent := os.sendfile(copied.fileno(), file, None, 2**20)):
                size += sent
        if size > most:
            raise _strange(name, f"more than {MOST_TAKEN // 2**20} MiB in all")
        return size
    finally:
        os.close(file)


def _strange(name: str, what: str) -> PageFailed:
    return PageFailed(f"what was made of the page is refused: {cut(name, 80)} ({what})")


def _by_child(work: Work, folder: Path, of: str, say: Say, fresh: bool) -> Any:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as lines:
        start = _begun if fresh else _forked
        try:
            child = start(work, folder, writer)
        finally:
            os.close(writer)
        status, answer = 0, None
        try:
            answer = _answer(lines, of, say)
        finally:
            # Its child programs, too: the child leads a process group of its own.
            for kill in (os.kill, os.killpg):
                with contextlib.suppress(ProcessLookupError):
                    kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    if answer is None:
        raise PageFailed(f"{of}: the process that read it {_ended(status)}")
    if "value" in answer:
        return answer["value"]
    raise _error(answer)


def _forked(work: Work, folder: Path, writer: int) -> int:
    parent = os.getpid()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        child = os.fork()
        if child == 0:
            _serve(lambda: work, folder, writer, parent)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return child


def _begun(work: Work, folder: Path, writer: int) -> int:
    """Starts a new process that shares nothing with this one. It unpickles only root's own data."""
    program = "from wirepaint.ordinary import serve; serve()"
    parent = os.getpid()
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=(writer,),
        start_new_session=True,
        # Again in `_give_up`: a change of user clears it.
        preexec_fn=lambda: linux.die_with_parent(parent),
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as request:
        request.write(pickle.dumps((folder, writer, parent)))
        request.write(pickle.dumps(work))
    process.returncode = 0  # it is waited for by its pid
    return process.pid


def serve() -> NoReturn:
    """The new process: reads its work from its standard input."""
    folder, writer, parent = pickle.load(sys.stdin.buffer)
    os.set_inheritable(writer, False)
    _serve(lambda: pickle.load(sys.stdin.buffer), folder, writer, parent)


def _serve(work: Callable[[], Work], folder: Path, writer: int, parent: int) -> NoReturn:
    """The child: gives up its rights, works, and writes a JSON line for each message."""
    try:
        out = os.fdopen(writer, "w", encoding="utf-8", errors="surrogatepass")

        def tell(**line: Any) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        try:
            wanted = work()
            try:
                _give_up(parent, writer)
            except OSError as error:
                raise _lack(error) from None
            with _temporaries(folder):
                value = wanted(folder, lambda text: tell(say=text))
            tell(value=value)
        except BaseException as error:
            if os.environ.get("WIREPAINT_DEBUG"):
                traceback.print_exc()
            tell(**_told(_unreadable(error) or error))
    finally:
        os._exit(0)


def _unreadable(error: BaseException) -> MachineLacks | None:
    """What to do about a file that the child cannot read, where root cannot let it read like root."""
    denied = isinstance(error, PermissionError) or os.strerror(errno.EACCES).lower() in str(error).lower()
    if not denied or linux.has(linux.CAP_DAC_READ_SEARCH):
        return None
    why = f"{error} for user {USER}, and root here has no CAP_DAC_READ_SEARCH, such as in a container"
    do = "Run it without root, or put pages and XDG_CACHE_HOME into folders that others can enter."
    return MachineLacks(why, do)


def _give_up(parent: int, writer: int) -> None:
    """Becomes the ordinary user, detached from the terminal, with only ``writer`` open.

    Otherwise the child could use root's open files (results, the pipe to the launcher of cells).
    """
    if os.getsid(0) != os.getpid():
        os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_GO)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1) if os.environ.get("WIREPAINT_DEBUG") else (0, 1, 2):
        os.dup2(nothing, number)
    os.closerange(3, writer)
    os.closerange(writer + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    linux.become(USER, KEPT)
    linux.die_with_parent(parent)


def _lack(error: OSError) -> MachineLacks:
    why = f"root cannot become an ordinary user here ({error.strerror})"
    return MachineLacks(why, "Run the command without root, or with all rights of root.")


@contextmanager
def _temporaries(folder: Path) -> Iterator[None]:
    """In the body, temporary files are made in ``folder``, which is removed when this process ends."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _told(error: BaseException) -> dict[str, Any]:
    """An error as JSON; :func:`_error` is the inverse."""
    if isinstance(error, WirepaintError):
        return {"error": type(error).__name__, "text": str(error), "fields": dict(vars(error))}
    if isinstance(error, OSError) and error.errno is not None:
        name = error.filename if isinstance(error.filename, str) else None
        return {"system": [error.errno, error.strerror or "", name]}
    return {"fault": type(error).__name__, "text": str(error)}


def _error(answer: dict[str, Any]) -> Exception:
    match answer:
        case {"error": str(name), "text": str(text), "fields": dict(fields)}:
            kind = getattr(errors, name, None)
            if not (isinstance(kind, type) and issubclass(kind, WirepaintError)):
                kind = PageFailed
            # Not by its constructor, which would format the message again.
            error = kind.__new__(kind, text)
            vars(error).update({key: str(value) for key, value in fields.items()})
            return error
        case {"system": [int(number), str(why), (str() | None) as name]}:
            return OSError(number, why, name)
        case {"fault": str(name), "text": str(text)}:
            return type(cut(name, 80), (Exception,), {})(text)
        case _:
            return PageFailed("the process that read the page gave no answer that can be understood")


def _answer(lines: IO[bytes], of: str, say: Say) -> dict[str, Any] | None:
    """The child's last line, None without one; passes on the messages before it."""
    left = MOST_SAID
    while line := lines.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise PageFailed(f"{of}: more than {MOST_SAID // 2**20} MiB were made of it")
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return None if not line.endswith(b"\n") else {}
        if not isinstance(told, dict):
            return {}
        if not isinstance(said := told.get("say"), str):
            return told
        say(cut(said))
    return None


def _ended(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"ended with {os.waitstatus_to_exitcode(status)} and no answer"
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"was ended by {name}" + (": was there enough memory?" if number == signal.SIGKILL else "")
