"""Reads the user's wishes for a recording from options and files."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wirepaint.errors import UsageError
from wirepaint.pages.model import DESKTOP
from wirepaint.runners.testbed.browser.chromium import phone

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN = {"host", "content-length", "connection", "transfer-encoding", "upgrade", "te", "trailer"}


@dataclass(frozen=True)
class Wish:
    """The options of one recording."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with requests to the page's own host; see :meth:`own`."""
    cookies: tuple[dict[str, Any], ...] = ()
    """In the form of DevTools' Network.setCookies."""
    viewport: tuple[int, int] = DESKTOP
    mobile: bool = False
    wait_s: float = 0.0
    """How long to continue after the network has become quiet."""
    timeout_s: float = 60.0
    """A page that has not fired its load event by then fails."""
    insecure: bool = False
    """Accepts any certificate."""
    resolve: dict[str, str] = field(default_factory=dict)
    """Addresses of some hosts: ``host:port`` to ``address:port``; all others are looked up."""

    @property
    def user_agent(self) -> str | None:
        """The User-Agent in ``headers``."""
        return next((value for name, value in self.headers if name.lower() == "user-agent"), None)

    @property
    def host(self) -> str:
        """Host of the address."""
        return urlsplit(self.url).hostname or ""

    def own(self, url: str) -> bool:
        """True for the page's own host, without ``www.``, and the hosts below it."""
        base, host = self.host.removeprefix("www."), urlsplit(url).hostname or ""
        return host == base or host.endswith(f".{base}")


def read(
    url: str,
    *,
    header: Sequence[str] = (),
    cookie_file: Path | None = None,
    viewport: str | None = None,
    mobile: bool = False,
    wait: float = 0.0,
    timeout: float = 60.0,
    insecure: bool = False,
    resolve: Sequence[str] = (),
) -> Wish:
    """The wish in the options of ``page record``; raises :class:`UsageError`."""
    url = _address(url)
    headers = tuple(map(_header, header))
    cookies = _cookies(cookie_file) if cookie_file else []
    # The browser writes the header Cookie itself, from its jar.
    for name, value in headers:
        if name.lower() == "cookie":
            pairs = (pair.strip().partition("=") for pair in value.split(";"))
            cookies += [{"name": key, "value": content, "url": url} for key, _, content in pairs if key]
    return Wish(
        url=url,
        headers=tuple(pair for pair in headers if pair[0].lower() != "cookie"),
        cookies=tuple(cookies),
        viewport=_viewport(viewport) if viewport else phone.VIEWPORT if mobile else DESKTOP,
        mobile=mobile,
        wait_s=_seconds("--wait", wait, 0, 600),
        timeout_s=_seconds("--timeout", timeout, 1, 3600),
        insecure=insecure,
        resolve=dict(map(_place, resolve)),
    )


def _address(text: str) -> str:
    accepted = "an address such as https://example.com/"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise UsageError("URL", repr(text[:100]), accepted) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError("URL", repr(text[:100]), accepted)
    if any(ord(c) <= 32 or ord(c) == 127 for c in text):
        raise UsageError("URL", f"a space in {text[:100]!r}", accepted)
    if parts.username is not None:
        raise UsageError("URL", "a user's name in it", "it by --header 'Authorization: Basic ...'")
    # The browser encodes non-ASCII names and paths.
    return parts._replace(path=parts.path or "/", fragment="").geturl()


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not _TOKEN.fullmatch(name) or not value.isprintable():
        # The value may be a secret: it is not repeated.
        raise UsageError("--header", f"{name[:40]!r}" if colon else "no colon", "'Name: value'")
    if name.lower() in _FORBIDDEN:
        raise UsageError("--header", name, "any but those that the browser itself must write")
    return name, value


def _viewport(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    width, height = map(int, found.groups()) if found else (0, 0)
    if not (50 <= width <= 8192 and 50 <= height <= 8192):
        raise UsageError("--viewport", repr(text[:40]), "WIDTHxHEIGHT in CSS pixels, 50 to 8192: 1280x800")
    return width, height


def _seconds(option: str, value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise UsageError(option, f"{value:g}", f"{least:g} to {most:g} seconds")
    return value


def _place(text: str) -> tuple[str, str]:
    """Parses ``host:port:address`` as in curl, or with another port at the end."""
    accepted = "host:port:address or host:port:address:port, an IPv6 address in brackets"
    found = re.fullmatch(r"([^:,\s]+):(\d{1,5}):(\[[0-9a-fA-F:.]+\]|[^:,\s]+)(?::(\d{1,5}))?", text)
    if not found:
        raise UsageError("--resolve", repr(text[:100]), accepted)
    host, port, address, at = found.groups()
    try:
        ip_address(address.strip("[]"))
    except ValueError:
        raise UsageError("--resolve", f"{address[:60]!r} for an address", accepted) from None
    if not all(0 < int(number) < 65536 for number in (port, at or port)):
        raise UsageError("--resolve", repr(text[:100]), "ports 1 to 65535")
    return f"{host}:{port}", f"{address}:{at or port}"


def _cookies(path: Path) -> list[dict[str, Any]]:
    """Cookies of a Netscape cookies.txt, without expired ones."""
    accepted = "a cookies.txt as curl -c and wget --save-cookies write it"
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(str(path), error.strerror or "no file", accepted) from None
    except UnicodeDecodeError:
        raise UsageError(str(path), "what is no UTF-8 text", accepted) from None
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (line.startswith("#") and not line.startswith("#HttpOnly_")):
            continue
        place, fields = f"{path}: line {number}", line.removeprefix("#HttpOnly_").split("\t")
        if len(fields) == 6:  # wget writes no tab after the name of an empty cookie
            fields.append("")
        if len(fields) != 7:
            raise UsageError(place, f"{len(fields)} fields", f"7 fields between tabs: {accepted}")
        domain, below, folder, secure, expires, name, value = fields
        if not (folder.startswith("/") and expires.isdecimal() and domain.strip(".") and name):
            raise UsageError(
                place, "no cookie", "domain, TRUE or FALSE, path, TRUE or FALSE, expiry, name, value"
            )
        if 0 < int(expires) < time.time():
            continue
        cookie = {
            "name": name,
            "value": value,
            "path": folder,
            "secure": secure.upper() == "TRUE",
            "httpOnly": line.startswith("#HttpOnly_"),
        }
        host = domain.lstrip(".")
        if below.upper() == "TRUE":
            cookie["domain"] = f".{host}"
        else:  # without a domain it is for this host alone
            cookie["url"] = f"{'https' if cookie['secure'] else 'http'}://{host}{folder}"
        if int(expires):
            cookie["expires"] = int(expires)
        found.append(cookie)
    return found
