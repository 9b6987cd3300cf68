"""A lock that admits one command at a time to a results folder, or to the testbed of a machine."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from wirepaint.errors import UsageError
from wirepaint.results import provenance

_PATIENCE_S = 1.0
"""How long to wait for a lock: leftover processes of a killed command end within milliseconds."""


class Lock:
    """An exclusive lock; the kernel releases it when the process dies."""

    def __init__(self, path: Path, place: str, accepted: str) -> None:
        """Locks the file ``path`` for ``place``.

        Raises UsageError, with the owner and ``accepted``, if another command has the lock.
        """
        self._path = path
        # Through a link, another file would be emptied.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o644)
        patience = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > patience:
                    owner = self._owner()
                    os.close(self._descriptor)
                    raise UsageError(place, owner, accepted) from None
                time.sleep(0.05)
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
