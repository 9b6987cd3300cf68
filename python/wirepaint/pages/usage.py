"""Finds the type of a request: first from the page's use of the answer, then from the answer's own type."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from wirepaint.pages.har import Entry
from wirepaint.pages.model import Kind

_BY_DESTINATION: dict[str, Kind] = {
    # Chrome's _resourceType and the Sec-Fetch-Dest header.
    "document": "html", "iframe": "html", "frame": "html", "embed": "other", "object": "other",
    "stylesheet": "css", "style": "css", "script": "js", "worker": "data", "image": "image",
    "font": "font", "media": "media", "video": "media", "audio": "media", "track": "data",
    "texttrack": "data", "xhr": "data", "fetch": "data", "prefetch": "data", "eventsource": "data",
    "ping": "data", "beacon": "data", "empty": "data", "manifest": "data", "cspviolationreport": "data",
}  # fmt: skip

_BY_MIME: list[tuple[str, Kind]] = [
    ("css", "css"), ("javascript", "js"), ("ecmascript", "js"), ("font", "font"), ("woff", "font"),
    ("opentype", "font"), ("json", "data"), ("image/", "image"), ("video/", "media"), ("audio/", "media"),
    ("mpegurl", "media"), ("xhtml", "html"), ("html", "html"), ("xml", "data"),
]  # fmt: skip

_BY_SUFFIX: dict[str, Kind] = {
    "html": "html", "htm": "html", "php": "html", "css": "css", "js": "js", "mjs": "js", "json": "data",
    "png": "image", "jpg": "image", "jpeg": "image", "gif": "image", "webp": "image", "avif": "image",
    "svg": "image", "ico": "image", "bmp": "image", "woff": "font", "woff2": "font", "ttf": "font",
    "otf": "font", "eot": "font", "mp4": "media", "webm": "media", "mp3": "media", "m3u8": "media",
    "ts": "media", "xml": "data", "txt": "data", "webmanifest": "data", "wasm": "data",
}  # fmt: skip


def by_mime(mime: str, url: str) -> Kind:
    """Type from a content-type, else from the address's suffix."""
    mime = mime.split(";")[0].strip().lower()
    for part, kind in _BY_MIME:
        if part in mime:
            return kind
    suffix = urlsplit(url).path.rpartition("/")[2].rpartition(".")[2].lower()
    return _BY_SUFFIX.get(suffix, "other")


_BY_ELEMENT: dict[str, Kind] = {
    "iframe": "html", "frame": "html", "img": "image", "image": "image", "input": "image", "body": "image",
    "script": "js", "css": "image", "embed": "other", "object": "other",
}  # fmt: skip
_HINTS = ("accept", "sec-fetch-dest", "upgrade-insecure-requests", "x-requested-with")
_DOCUMENT = re.compile(r"\s*(?:<!--.{0,2000}?-->\s*)?(?:<!doctype html|<html\b)", re.I | re.S)


def unhinted(entry: Entry) -> bool:
    """True for HTML whose request gives no hint of its use, as in crawlers' archives."""
    mime = entry.header("content-type") or entry.response.content.mime
    return (
        entry.request.method.upper() == "GET"
        and not entry.resource_type
        and by_mime(mime, "") == "html"
        and not any(entry.request.header(name) for name in _HINTS)
    )


def unhinted_kind(text: str, element: str) -> Kind:
    """The type of such HTML: from the element that names it, else from its text."""
    if element in _BY_ELEMENT:
        return _BY_ELEMENT[element]
    return "html" if _DOCUMENT.match(text[:4096]) else "data"


def kind_of(entry: Entry) -> Kind:
    """How the page used the answer to this request."""
    request = entry.request
    if request.method.upper() != "GET":
        return "data"
    destination = entry.resource_type.lower() or request.header("sec-fetch-dest").lower()
    if destination in _BY_DESTINATION:
        return _BY_DESTINATION[destination]
    kind = by_mime(entry.header("content-type") or entry.response.content.mime, request.url)
    accept = request.header("accept")
    if accept.startswith("image/"):
        return "image"
    if accept.startswith("text/css"):
        return "css"
    navigation = bool(request.header("upgrade-insecure-requests")) or "text/html" in accept
    if kind == "html" and request.headers and not navigation:
        return "data"
    if kind in ("other", "data") and navigation:
        return "html"
    return kind
