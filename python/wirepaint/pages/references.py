"""The addresses that a document or a stylesheet makes the browser ask for, and where they stand.

Text is decoded as Latin-1, so that positions are byte positions whatever the charset. Scripts are
not run: what they ask for is not seen here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit, urlunsplit

_ATTRIBUTES = {
    "script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",),
    "frame": ("src",), "embed": ("src",), "object": ("data",), "video": ("src", "poster"), "audio": ("src",),
    "track": ("src",), "input": ("src",), "body": ("background",), "link": ("href", "imagesrcset"),
    "image": ("href", "xlink:href"), "use": ("href", "xlink:href"),
}  # fmt: skip
_FETCHING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "prerender", "manifest",
                   "preconnect", "dns-prefetch"}  # fmt: skip
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?""")
_CSS = re.compile(
    r"""/\*.*?\*/|@import\s+(?P<q>["'])(?P<import>.*?)(?P=q)|url\(\s*(?P<r>["']?)(?P<url>.*?)(?P=r)\s*\)""",
    re.S | re.I,
)
_EMPTY_SEGMENT = re.compile("(?<=/)(?=/)")
_HELD = "\N{OBJECT REPLACEMENT CHARACTER}"
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*[^\s,])[^,]*")


@dataclass(frozen=True)
class Reference:
    """``text[start:end]`` holds the address ``url`` (absolute, without fragment)."""

    start: int
    end: int
    url: str


def in_css(text: str, base: str) -> Iterator[Reference]:
    """What a stylesheet at ``base`` refers to; ``data:`` and fragments of the document are left out."""
    for match in _CSS.finditer(text):
        group = "import" if match["import"] is not None else "url"
        if match[group] and (url := absolute(match[group].strip(), base)):
            yield Reference(*match.span(group), url)


def in_html(text: str, base: str) -> list[Reference]:
    """What a document at ``base`` makes a browser with scripts ask for."""
    parser = _Parser(text, base)
    parser.feed(text)
    parser.close()
    return parser.found


def icons(text: str, base: str) -> set[str]:
    """Addresses of the icons that a document at ``base`` names, which a headless browser leaves alone."""
    parser = _Parser(text, base)
    parser.feed(text)
    parser.close()
    return parser.icons | {urljoin(base, "/favicon.ico")}


def join(base: str, url: str) -> str:
    """``url`` against ``base`` (RFC 3986, section 5.2); raises ValueError for what is no address.

    ``urljoin`` drops empty segments of a path (``a//b``), browsers keep them.
    """

    def held(address: str) -> str:
        if "//" not in (parts := urlsplit(address)).path:
            return address
        return urlunsplit(parts._replace(path=_EMPTY_SEGMENT.sub(_HELD, parts.path)))

    return urljoin(held(base), held(url)).replace(_HELD, "")


def absolute(url: str, base: str) -> str | None:
    """``url`` against ``base`` without fragment, as it is requested; None where nothing is requested."""
    if not url or url.startswith("#"):
        return None
    try:
        joined = urldefrag(join(base, "".join(url.split("\n")).strip())).url
        parts = urlsplit(joined)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return quote(joined.encode("latin-1", "replace"), safe="!#$%&'()*+,/:;=?@[]~|^{}")


def key(url: str) -> str:
    """A form in which two writings of one address are equal, whatever the scheme and escapes."""
    parts = urlsplit(url)
    return unquote(f"//{(parts.netloc or '').lower()}{parts.path or '/'}?{parts.query}")


def blank(text: str, references: list[Reference], keep: Callable[[str], bool]) -> tuple[str, int]:
    """``text`` with each address that ``keep`` refuses overwritten by spaces, and how many.

    An empty address is never asked for, and the length of the text stays.
    """
    pieces: list[str] = []
    position = count = 0
    for reference in references:
        if reference.start < position or keep(reference.url):
            continue
        pieces += (text[position : reference.start], " " * (reference.end - reference.start))
        position = reference.end
        count += 1
    return "".join([*pieces, text[position:]]), count


class _Parser(HTMLParser):
    def __init__(self, text: str, base: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Reference] = []
        self.icons: set[str] = set()
        self._base = base
        self._lines = [0]
        self._lines += [match.end() for match in re.finditer("\n", text)]
        self._unseen = 0  # depth inside elements whose content is not loaded
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("noscript", "template"):
            self._unseen += 1
        self._style = tag == "style"
        if tag == "base" and values.get("href"):
            self._base = join(self._base, values["href"] or "")
        if self._unseen:
            return
        wanted = _ATTRIBUTES.get(tag, ())
        if tag == "link" and not _FETCHING_LINKS & set((values.get("rel") or "").lower().split()):
            wanted = ()
        if tag == "link" and "icon" in (values.get("rel") or "").lower() and values.get("href"):
            self.icons.add(absolute(values["href"] or "", self._base) or "")
        source = self.get_starttag_text() or ""
        line, column = self.getpos()
        start = self._lines[line - 1] + column
        for match in _ATTRIBUTE.finditer(source, len(tag) + 1):
            name, value = match[1].lower(), match[2]
            if not value:
                continue
            quoted = value[0] in "\"'"
            begin, end = match.start(2) + quoted, match.end(2) - quoted
            if name == "style":
                self._css(source[begin:end], start + begin)
            elif name.endswith("srcset") and name in wanted:
                for candidate in _CANDIDATE.finditer(source, begin, end):
                    self._add(candidate[1], start + candidate.start(1), start + candidate.end(0))
            elif name in wanted:
                self._add(source[begin:end], start + begin, start + end)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("noscript", "template") and self._unseen:
            self._unseen -= 1
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style and not self._unseen:
            line, column = self.getpos()
            self._css(data, self._lines[line - 1] + column)

    def _css(self, text: str, start: int) -> None:
        for reference in in_css(html.unescape(text) if "&" in text else text, self._base):
            if "&" not in text:  # positions hold
                self.found.append(Reference(start + reference.start, start + reference.end, reference.url))

    def _add(self, raw: str, start: int, end: int) -> None:
        if url := absolute(html.unescape(raw).strip(), self._base):
            self.found.append(Reference(start, end, url))
