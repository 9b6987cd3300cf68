"""The few Linux calls that Python 3.11 lacks."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x4_0000
CAP_DAC_READ_SEARCH = 2
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 8, 36, 38
_CAPABILITIES_VERSION_3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, attempt: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{attempt}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Moves the caller into new namespaces (unshare(2))."""
    _check(_libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd: int, kind: int = CLONE_NEWNET) -> None:
    """Moves the calling thread into the namespace behind a descriptor (setns(2))."""
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(done, f"mount {kind} on {target}")


def unmount(target: str) -> None:
    """umount(2)."""
    _check(_libc.umount2(target.encode(), 0), f"umount {target}")


def sync_filesystem(descriptor: int) -> None:
    """Writes all changed files of the file system of a descriptor to the disk (syncfs(2))."""
    _check(_libc.syncfs(descriptor), "syncfs")


def become_subreaper() -> None:
    """Makes this process the parent of descendants whose own parent dies (prctl(2))."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl PR_SET_CHILD_SUBREAPER")


def die_with_parent(parent: int | None = None) -> None:
    """Asks the kernel to kill this process when the thread that forked it dies.

    ``parent`` is the pid that must still be the parent; this closes the race with a parent that died
    before the call.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl PR_SET_PDEATHSIG")
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def has(capability: int) -> bool:
    """Whether this process has a capability that takes effect."""
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> capability & 1)


def become(user: int, keep: Iterable[int] = ()) -> None:
    """Becomes an ordinary user permanently: the group of the same number, no other groups, no capabilities.

    The process keeps the capabilities ``keep`` that it has; its child programs do not get
    them. No program can regain rights (no_new_privs). Cancels a parent-death signal.
    """
    _check(_libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl PR_SET_KEEPCAPS")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION_3, 0)
    # Effective, permitted and inheritable: of capabilities 0 to 31, then of 32 to 63.
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, sets), "capget")
    kept = sets[1] & sum(1 << each for each in keep)
    sets = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    _check(_libc.capset(header, sets), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")


def ended(code: int) -> str:
    """How a process ended, from its return code as Python tells it: "exit code 3", "killed by SIGSEGV"."""
    if code >= 0:
        return f"exit code {code}"
    known = {each.value: each.name for each in signal.Signals}
    return f"killed by {known.get(-code, f'signal {-code}')}"
