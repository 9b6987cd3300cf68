"""Removes the user's own cookies and headers from the stored recording.

A page often repeats a token of the request: in a link, a form, a script's settings. Each
such value is overwritten by ``x`` of the same length everywhere, so that lengths and references stay valid.
Values below :data:`SHORTEST` characters are kept: they identify nobody, and overwriting each ``1`` or
``en-GB`` would break the page.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from wirepaint.recording.wish import Wish

SHORTEST = 8

_NAMES = re.compile(
    r"(?i)(^|[_.-])(access|api|auth|jwt|key|password|passwd|pwd|secret|session|sessionid|sid|sig|signature|"
    r"token|apikey|accesstoken|authtoken|jsessionid|phpsessid)s?($|[_.-])"
)


class Secrets:
    """The values to hide, and how often each was found."""

    def __init__(self, wish: Wish) -> None:
        self._owner: dict[bytes, str] = {}
        self.found: Counter[str] = Counter()
        for name, value in wish.headers:
            if name.lower() != "user-agent":
                for secret in _of_header(name, value):
                    self._add(secret, f"the value of header {name}")
        for cookie in wish.cookies:
            self._add(cookie["value"], f"the value of cookie {cookie['name']}")
        # Longest first: a secret may contain another.
        longest = sorted(self._owner, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest))) if longest else None

    def hidden(self, data: bytes) -> bytes:
        """``data`` without secrets, with the same length."""
        if self._pattern is None:
            return data
        return self._pattern.sub(self._cover, data)

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        return self.hidden(text.encode()).decode() if self._pattern else text

    def _cover(self, match: re.Match[bytes]) -> bytes:
        self.found[self._owner[match[0]]] += 1
        return b"x" * len(match[0])

    def _add(self, secret: str, owner: str) -> None:
        if len(secret) < SHORTEST:
            return
        escaped = json.dumps(secret)[1:-1]
        ways = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), escaped}
        ways |= {escaped.replace("/", "\\/"), html.escape(secret)}
        # JavaScript and servers write %2f as well as %2F.
        ways |= {re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), way) for way in tuple(ways)}
        for way in ways:
            self._owner.setdefault(way.encode(), owner)


def suspects(urls: Iterable[str]) -> list[str]:
    """Names of parameters in addresses that usually carry a secret."""
    names: set[str] = set()
    for url in urls:
        pairs = parse_qsl(urlsplit(url).query)
        names |= {name for name, value in pairs if len(value) >= SHORTEST and _NAMES.search(name)}
    return sorted(names)


def _of_header(name: str, value: str) -> set[str]:
    """The value, and its parts that may occur elsewhere alone."""
    secrets = {value, *value.split()}
    scheme, _, credentials = value.partition(" ")
    if name.lower() == "authorization" and scheme.lower() == "basic":
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            secrets.add(base64.b64decode(credentials, validate=True).decode().partition(":")[2])
    return secrets
