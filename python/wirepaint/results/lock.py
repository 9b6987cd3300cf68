"""A lock that admits one command at a time to a results folder, or to the testbed of a machine."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path

from wirepaint.errors import UsageError
from wirepaint.results import provenance

_PATIENCE_S = 1.0
"""How long to wait for a lock: leftover processes of a killed command end within milliseconds."""


class Lock:
    """An exclusive lock; the kernel releases it when the process dies."""

    def __init__(self, path: Path, place: str, accepted: str, wait_s: float = 0.0) -> None:
        """Locks the file ``path`` for ``place``; a lock that another command has is waited for.

        Raises UsageError, with the owner and ``accepted``, if it has the lock for longer than ``wait_s``.
        """
        self._path = path
        # Through a link, another file would be emptied.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o644)
        begin = time.monotonic()
        said = False
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - begin
                if waited > max(wait_s, _PATIENCE_S):
                    owner = self._owner()
                    os.close(self._descriptor)
                    raise UsageError(place, owner, accepted) from None
                if waited > _PATIENCE_S and not said:
                    said = True
                    print(f"{place}: found {self._owner()}; waiting", file=sys.stderr, flush=True)
                time.sleep(0.05)
            except BaseException:
                os.close(self._descriptor)
                raise
        owner = {"pid": os.getpid(), "command": provenance.command_line(), "since": provenance.now()}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(owner).encode(), 0)

    def in_place(self) -> bool:
        """False if the file was removed or replaced, so that another command can lock it as well."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _owner(self) -> str:
        try:
            owner = json.loads(os.pread(self._descriptor, 4096, 0))
            return f"it in use by process {owner['pid']} ({owner['command']}) since {owner['since']}"
        except (ValueError, KeyError, TypeError):
            return "it in use by another command"
