"""``wirepaint page record``: from an address to a page archive."""

from __future__ import annotations

from pathlib import Path

from wirepaint.pages import Page
from wirepaint.pages.import_har import check_target, import_log
from wirepaint.pages.model import checked
from wirepaint.recording import log, wire
from wirepaint.recording.scratch import scratch
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
    secrets = Secrets(wish)
    with scratch() as folder:
        netlog = folder / "netlog.json"
        seen = visit(wish, folder, netlog)
        recorded, notes = log.har_log(seen, wire.read(netlog), secrets)
    return import_log(
        recorded,
        Path(wish.host),
        out,
        name=name,
        title=title,
        source=source or secrets.text(wish.url),
        licence=licence,
        viewport=wish.viewport,
        mobile=wish.mobile,
        notes=notes,
    )
