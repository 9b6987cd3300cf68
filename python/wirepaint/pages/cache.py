"""The cache of imported and prepared pages, and its ownership."""

from __future__ import annotations

import os
import pwd
import shutil
import time
from pathlib import Path

from wirepaint.errors import UsageError


def cache_dir() -> Path:
    """Where prepared pages are kept: ``$XDG_CACHE_HOME/wirepaint/pages``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(root).absolute() / "wirepaint" / "pages"


def make_folder(folder: Path) -> None:
    """Makes ``folder`` and the folders above it; raises :class:`UsageError` if that fails.

    In the cache, all of them then belong to the user who called sudo, even folders that root made before.
    """
    root, path = cache_dir().parent, (folder, *folder.parents)
    try:
        ours = [each for each in path if each.is_relative_to(root) or not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if user := _user(folder):
            for each in ours:
                os.chown(each, *user, follow_symlinks=False)
    except OSError as error:
        raise unwritable(folder, error) from None


def hand_over(folder: Path) -> None:
    """Gives a folder in the cache, with its content, to the user who called sudo.

    Under ``sudo -E`` the cache is that user's, who later uses it without root.
    """
    if user := _user(folder):
        for each in (folder, *folder.rglob("*")):
            os.chown(each, *user, follow_symlinks=False)


def unwritable(folder: Path, error: OSError) -> UsageError:
    """The error for a folder that ``error`` says cannot be written."""
    return UsageError(str(folder), error.strerror or "an error", "a folder that can be made and written")


def _user(folder: Path) -> tuple[int, int] | None:
    """Uid and gid of the user who called sudo, for ``folder`` in the cache unless that is root's own."""
    ids = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not all(map(str.isdigit, ids)):
        return None
    roots_own = folder.is_relative_to(pwd.getpwuid(0).pw_dir)
    if roots_own or not folder.is_relative_to(cache_dir().parent):
        return None
    return int(ids[0]), int(ids[1])


def sweep(folder: Path, pattern: str) -> None:
    """Removes temporary folders older than an hour: their makers were killed."""
    for left in folder.glob(pattern):
        if time.time() - left.stat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)
