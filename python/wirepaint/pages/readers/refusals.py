"""Refuses files that people may take for a recording of a page load, and says what to use instead."""

from __future__ import annotations

import re
from pathlib import Path

from wirepaint.errors import UsageError
from wirepaint.pages.readers.source import Source
from wirepaint.printing import command_line

INSTEAD = (
    "a HAR (DevTools, Network, Save all as HAR), a log of the DevTools protocol, or the page recorded by "
    "`wirepaint page record URL`"
)

_BY_START: list[tuple[bytes, str, str]] = [
    (b"\x1f\x8b", "gzip within gzip", "it packed once: unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "it unpacked: zstd -d FILE"),
    (b"\x42\x5a\x68", "a bzip2 file", "it unpacked: bunzip2 FILE"),
    (b"\xfd7zXZ", "an xz file", "it unpacked: unxz FILE"),
    (b"filedesc://", "an ARC archive", "a WARC: warcio recompress FILE NEW.warc.gz"),
    (b"bplist00", "a Safari web archive (bodies without requests)", INSTEAD),
    (b"\xd4\xc3\xb2\xa1", "a packet capture (pcap)", INSTEAD),
    (b"\xa1\xb2\xc3\xd4", "a packet capture (pcap)", INSTEAD),
    (b"\x0a\x0d\x0d\x0a", "a packet capture (pcapng)", INSTEAD),
]
_SAVED = re.compile(rb"\s*(from: <saved by|mime-version:)", re.I)
_DOCUMENT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:!--|(?:!doctype\s+html|html|head|title|meta|link|script|style|body)\b)", re.I
)
_XML = re.compile(rb"\s*<\?xml")


def check(source: Source) -> None:
    """Raises :class:`UsageError` for a file that begins like a known other format."""
    head = source.peek(4096)
    for start, found, accepted in _BY_START:
        if head.startswith(start):
            raise UsageError(source.place, found, accepted)
    if _SAVED.match(head):
        raise UsageError(source.place, "a saved page (MHTML: bodies without requests)", INSTEAD)
    if _DOCUMENT.match(head):
        raise UsageError(source.place, "an HTML document", f"{_site(Path(source.place))}, or {INSTEAD}")
    if _XML.match(head):
        raise UsageError(source.place, "an XML file", INSTEAD)


def _site(document: Path) -> str:
    """How the static site is imported to which an HTML document belongs."""
    start = () if document.name == "index.html" else ("--start", document.name)
    arguments = ("page", "import", str(document.parent), *start, "-o", "PAGE")
    return f"the folder that it lies in: `{command_line(*arguments)}`"


def check_json(data: bytes, key: str, source: Source) -> None:
    """Raises :class:`UsageError` for JSON of Chrome that is no recording; ``key`` is its first key."""
    if key == "log":
        return
    head = data[: 2**16]
    listed = data.lstrip()[:1] == b"["
    if b'"traceEvents"' in head or (listed and re.search(rb'"ph"\s*:', head) and b'"ts"' in head):
        found = "a performance trace of Chrome, which lacks headers and most sizes"
        raise UsageError(source.place, found, INSTEAD)
    if key == "constants" or b'"logEventTypes"' in head:
        found = "a NetLog of Chrome, which lacks who asked for what"
        raise UsageError(source.place, found, INSTEAD)
    if b'"lighthouseVersion"' in head:
        found = "a report of Lighthouse, which lacks most of the page load"
        raise UsageError(source.place, found, f"its devtoolslog.json (lighthouse -GA), or {INSTEAD}")
