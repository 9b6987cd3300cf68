"""Reads a recording of any known format; ``read`` detects the format.

One file each: ``har_file`` (HAR, also JSONP, and with bodies in files beside), ``zipped``, ``warc``,
``wacz``, ``devtools`` (logs of Chrome's DevTools protocol). ``source`` reads their bytes within bounds,
``json_text`` detects the kinds of JSON, ``refusals`` names files that are no recording of a page load.
No file is unpacked to the disk by its name, no script of a page runs, and the network is not used.
"""

from __future__ import annotations

from pathlib import Path

from wirepaint import files
from wirepaint.errors import UsageError, show
from wirepaint.pages.har import Log
from wirepaint.pages.model import faults_named
from wirepaint.pages.readers import devtools, har_file, json_text, refusals, warc, zipped
from wirepaint.pages.readers.source import Source

ACCEPTED = (
    f"a HAR or DevTools log of at most {json_text.MAX_BYTES // 2**20} MiB of JSON, plain or gzip; "
    "a zip of a HAR, WARC or WACZ"
)


_BLANKS, _SHOWN = 4096, 20
"""Bytes in which the text of a recording begins, and those of another file that are shown."""


def read(path: Path, page: str | None = None) -> Log:
    """Reads a recording; raises a :class:`UsageError` of one line for other files.

    ``page`` is the wanted page of an archive; only its bodies are kept.
    """
    with files.opened(path, ACCEPTED) as file, faults_named(str(path)):
        if zipped.is_zip(file, str(path)):
            log = zipped.read(file, path, page)
        else:
            source = Source(file, str(path), warc.MAX_BYTES, ACCEPTED)
            log = _unzipped(source, path, page)
    if not log.entries:
        raise UsageError(f"{path}: log.entries", "an empty list", "at least one entry")
    for place, entry in enumerate(log.entries):
        entry.place = place
    return log


def _unzipped(source: Source, path: Path, page: str | None) -> Log:
    if source.peek(5) == b"WARC/":
        return warc.read([source], page)
    refusals.check(source)
    data = json_text.read(source)
    start = data[:_BLANKS].lstrip()[:_SHOWN].decode("utf-8", "replace")
    if not start.startswith(("{", "[")):
        raise source.refused(f"a file that begins with {show(start)}" if start else "an empty file")
    match json_text.kind(data, source):
        case "devtools":
            return devtools.read(data, source.place)
        case "devtools lines":
            return devtools.read_lines(data, source.place)
        case _:
            return har_file.read(data, source.place, har_file.beside(path))
