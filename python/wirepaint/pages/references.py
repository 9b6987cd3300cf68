"""Finds the addresses that a document or a stylesheet makes the browser ask for, with their positions.

Text is decoded as Latin-1, so that positions are byte positions in any charset. Scripts are
not run, so their requests are not found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from wirepaint.pages.room import Room
from wirepaint.pages.tags import Tag, srcset, tokens, unescape

MOST_READ = 4 * 2**20
"""Bytes of a document or stylesheet that importers read for addresses: some 3 seconds at worst."""

_ATTRIBUTES = {
    "script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",),
    "frame": ("src",), "embed": ("src",), "object": ("data",), "video": ("src", "poster"), "audio": ("src",),
    "track": ("src",), "input": ("src",), "body": ("background",), "link": ("href", "imagesrcset"),
    "image": ("href", "xlink:href"), "use": ("href", "xlink:href"),
}  # fmt: skip
_FETCHING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "prerender", "manifest",
                   "preconnect", "dns-prefetch"}  # fmt: skip
_CSS = re.compile(
    r"""/\*(?:[^*]|\*(?!/))*+(?:\*/)?
    |@import[ \t\n\f\r]*+(?:"(?P<import1>[^"\n]*+)"|'(?P<import2>[^'\n]*+)')
    |url\([ \t\n\f\r]*+(?:"(?P<url1>[^"\n]*+)"|'(?P<url2>[^'\n]*+)'|(?P<url3>[^"'() \t\n\f\r]++))
        [ \t\n\f\r]*+\)""",
    re.I | re.X,
)
_QUOTES = re.compile(r"&(?:quot|apos|#0*(?:34|39));", re.I)
_EMPTY_SEGMENT = re.compile("(?<=/)(?=/)")
_HELD = "\N{OBJECT REPLACEMENT CHARACTER}"
_SPACE = " \t\n\f\r"
_PORTS = {"http": ":80", "https": ":443"}
LONGEST_ADDRESS = 65_536
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*+\.?", re.I)


@dataclass(frozen=True)
class Reference:
    """``text[start:end]`` holds the address ``url`` (absolute, without fragment)."""

    start: int
    end: int
    url: str
    element: str = "css"
    """The tag that makes the request; ``css`` for a style."""


@dataclass
class Markup:
    """The references and scripts in a document or stylesheet."""

    found: list[Reference] = field(default_factory=list)
    icons: set[str] = field(default_factory=set)
    """Addresses of its icons; a headless browser does not ask for them."""
    scripts: list[str] = field(default_factory=list)
    """The scripts within it."""


def in_css(text: str, base: str, room: Room | None = None) -> Iterator[Reference]:
    """The references in a stylesheet at ``base``, without ``data:`` and fragments of the document."""
    for start, end, raw in _addresses((room or Room()).take(text)):
        if url := absolute(raw.strip(_SPACE), base):
            yield Reference(start, end, url)


def in_html(text: str, base: str, room: Room | None = None) -> list[Reference]:
    """The references in a document at ``base``, for a browser with scripts."""
    return read_html(text, base, room).found


def read_html(text: str, base: str, room: Room | None = None) -> Markup:
    """Reads a document at ``base``, as far as there is room."""
    reader = _Reader(text, base, room)
    reader.read()
    return reader.markup


def join(base: str, url: str) -> str:
    """``url`` against ``base`` (RFC 3986, section 5.2); raises ValueError if it is no address.

    ``urljoin`` drops empty segments of a path (``a//b``), browsers keep them.
    """

    def held(address: str) -> str:
        if "//" not in (parts := urlsplit(address)).path:
            return address
        return urlunsplit(parts._replace(path=_EMPTY_SEGMENT.sub(_HELD, parts.path)))

    return urljoin(held(base), held(url)).replace(_HELD, "")


def plain(url: str) -> str:
    """``url`` as it is requested: without fragment and default port, scheme and host in lower case."""
    url = url.partition("#")[0]
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.scheme not in _PORTS:
        return url
    host = parts.netloc if "@" in parts.netloc else parts.netloc.lower()
    host = host.removesuffix(_PORTS[parts.scheme]).removesuffix(":")
    query = f"?{parts.query}" if parts.query or url.endswith("?") else ""
    return f"{parts.scheme}://{host}{parts.path or '/'}{query}"


def is_address(url: str) -> bool:
    """True for an address that a browser can ask for: http or https, no fragment or user, host and port
    valid in DNS and TCP."""
    if not url.startswith(("http://", "https://")) or len(url) > LONGEST_ADDRESS:
        return False
    if "#" in url or " " in url or not url.isprintable():  # other spaces are not printable
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.port == 0 or "@" in parts.netloc:
            return False
        if ":" in host:
            return ip_address(host).version == 6 and "%" not in host
        number = host.rstrip(".").rpartition(".")[2].isdigit()
        return bool(ip_address(host)) if number else _HOST.fullmatch(host) is not None
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def absolute(url: str, base: str) -> str | None:
    """``url`` against ``base`` as it is requested; None if it causes no request."""
    if not url or url.startswith("#"):
        return None
    try:
        joined = join(base, "".join(url.split("\n")).strip(_SPACE))
        parts = urlsplit(joined)
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return quote(plain(joined).encode("latin-1", "replace"), safe="!#$%&'()*+,/:;=?@[]~|^{}")


@lru_cache(maxsize=1024)
def key(url: str) -> str:
    """A normal form of an address, without the scheme and without escapes."""
    try:
        parts = urlsplit(plain(url))
    except ValueError:
        return url
    return unquote(f"//{(parts.netloc or '').lower()}{parts.path or '/'}?{parts.query}")


def blank(text: str, references: list[Reference], keep: Callable[[str], bool]) -> tuple[str, int]:
    """``text`` with each address that ``keep`` refuses overwritten by spaces, and their number.

    Browsers never ask for an empty address, and the text keeps its length.
    """
    pieces: list[str] = []
    position = count = 0
    for reference in references:
        if reference.start < position or keep(reference.url):
            continue
        begin = reference.start
        if reference.element != "css":
            equals = len(text[position:begin].rstrip(_SPACE)) - 1
            if equals >= 0 and text[position + equals] == "=":
                # Without quotes, what follows the spaces would become the value.
                begin = position + equals
        pieces += (text[position:begin], " " * (reference.end - begin))
        position = reference.end
        count += 1
    return "".join([*pieces, text[position:]]), count


def _addresses(text: str) -> Iterator[tuple[int, int, str]]:
    """Positions and raw texts of the addresses in a style."""
    for match in _CSS.finditer(text):
        if match.lastgroup:
            yield *match.span(match.lastgroup), match[match.lastgroup]


class _Reader:
    def __init__(self, text: str, base: str, room: Room | None) -> None:
        self.markup = Markup()
        self._room = room
        self._text, self._base = text, base
        self._based = False

    def read(self) -> None:
        self.markup.icons.add(self._address("/favicon.ico") or "")
        unseen = 0  # depth inside elements whose content is not loaded
        loaded = False
        for token in tokens(self._text, self._room):
            if not isinstance(token, Tag):
                if token.within == "style" and not unseen:
                    self._css(token.start, token.end)
                elif token.within == "script" and not unseen and not loaded:
                    self.markup.scripts.append(self._text[token.start : token.end])
            elif token.name == "template":
                unseen = max(0, unseen - 1) if token.closing else unseen + 1
            elif not token.closing and not unseen:
                loaded = any(name == "src" for name, _, _ in token.fields)
                self._element(token)

    def _element(self, tag: Tag) -> None:
        wanted = _ATTRIBUTES.get(tag.name, ())
        if tag.name == "base":
            self._rebase(tag.attributes(self._text).get("href", ""))
        elif tag.name == "link":
            attributes = tag.attributes(self._text)
            relation = attributes.get("rel", "").lower()
            if not _FETCHING_LINKS & set(relation.split()):
                wanted = ()
            if "icon" in relation and (href := attributes.get("href")):
                self.markup.icons.add(self._address(href) or "")
        for name, start, end in tag.fields:
            if name == "style":
                self._css(start, end, escaped=True)
            elif name not in wanted:
                continue
            elif name.endswith("srcset"):
                for begin, stop, last in srcset(self._text, start, end):
                    self._add(begin, stop, last, tag.name)
            else:
                self._add(start, end, end, tag.name)

    def _rebase(self, href: str) -> None:
        """Sets the base of addresses; only the first ``base`` counts."""
        if self._based or not href:
            return
        self._based = True
        self._base = absolute(href, self._base) or self._base

    def _css(self, start: int, end: int, *, escaped: bool = False) -> None:
        text = self._text[start:end]
        if escaped and "&" in text:  # quotes of the same length, so that positions hold
            text = _QUOTES.sub(lambda match: '"'.ljust(len(match[0])), text)
        for begin, stop, raw in _addresses(text):
            if url := self._address(unescape(raw) if escaped else raw):
                self.markup.found.append(Reference(start + begin, start + stop, url))

    def _add(self, begin: int, stop: int, last: int, element: str) -> None:
        if url := self._address(unescape(self._text[begin:stop])):
            self.markup.found.append(Reference(begin, last, url, element))

    def _address(self, written: str) -> str | None:
        return absolute(written.strip(_SPACE), self._base)
