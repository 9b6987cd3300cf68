"""``wirepaint page record``: from an address to a page archive."""

from __future__ import annotations

import tempfile
from pathlib import Path

from wirepaint.pages import Page
from wirepaint.pages.import_har import check_target, import_log, made
from wirepaint.pages.model import checked
from wirepaint.recording import log, wire
from wirepaint.recording.secrets import Secrets
from wirepaint.recording.visit import visit
from wirepaint.recording.wish import Wish


def record(
    wish: Wish,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    licence: str = "not stated",
) -> Page:
    """Loads the page that ``wish`` names and writes it to the page folder ``out``.

    ``out`` must be new, empty or a page folder, which is replaced once all went well. Raises
    :class:`UsageError` for what cannot be asked for, :class:`RunFailed` when the page did not load.
    """
    checked(name, seed=1)
    check_target(out)

    def make(folder: Path) -> None:
        secrets = Secrets(wish)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            netlog = Path(home) / "netlog.json"
            seen = visit(wish, Path(home), netlog)
            recorded, notes = log.har_log(seen, wire.read(netlog), secrets)
        import_log(
            recorded,
            Path(wish.host),
            folder,
            name=name,
            title=title,
            source=source or secrets.text(wish.url),
            licence=licence,
            viewport=wish.viewport,
            mobile=wish.mobile,
            notes=notes,
        )

    return made(make, wish.url, out, browser=True)
