"""Turns a page of plain http into one of https, as HSTS would: browsers speak HTTP/2 only over TLS.

The browser upgrades references to ``http://`` in its documents (``upgrade-insecure-requests``).
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from wirepaint.pages import bodies, cache
from wirepaint.pages.headers import replaced
from wirepaint.pages.model import INDEX, Page, Resource, keeping, load, read_index, save_index

NOTE = "http addresses asked for by https, as HSTS would"
_POLICY = "content-security-policy"


def is_plain(page: Page) -> bool:
    """True if some of its requests use http."""
    return any(resource.url.startswith("http:") for resource in page.resources)


def secured(folder: Path) -> Path:
    """Folder in the cache with the https version of the page in ``folder``; made once."""
    target = place(folder)
    if not (target / INDEX).is_file():
        cache.make_folder(target.parent)
        scratch = Path(tempfile.mkdtemp(prefix=".securing.", dir=target.parent))
        try:
            bodies.copy(folder, scratch)
            save_index(by_https(load(scratch)), scratch)
            scratch.chmod(0o755)
            cache.hand_over(scratch)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def place(folder: Path) -> Path:
    """Where the https version of the page in ``folder`` is, or will be."""
    digest = hashlib.sha256(read_index(folder) + NOTE.encode()).hexdigest()[:32]
    return cache.cache_dir().parent / "secured" / digest


def by_https(page: Page) -> Page:
    """The page with https addresses, each once; redirects from http to the same https address are removed."""
    kept: dict[tuple[str, str], Resource] = {}
    names: dict[int, tuple[str, str]] = {}
    for resource in page.resources:
        name = resource.method, https_address(resource.url)
        known = kept.get(name)
        if known is None or (300 <= known.status < 400 and resource.cause.by == known.id):
            cause = resource.cause if known is None else known.cause
            headers = [
                (key, https_address(value) if key.lower() == "location" else value)
                for key, value in resource.headers
            ]
            if "html" in (resource.header("content-type") or "") and not 300 <= resource.status < 400:
                policy = resource.header(_POLICY)
                headers = replaced(
                    headers,
                    _POLICY,
                    f"{policy}; upgrade-insecure-requests" if policy else "upgrade-insecure-requests",
                )
            kept[name] = resource.model_copy(update={"url": name[1], "headers": headers, "cause": cause})
        names[resource.id] = name
    numbers = {name: number for number, name in enumerate(kept)}
    place = {number: numbers[name] for number, name in names.items()}
    made = keeping(page, list(kept.values()), place)
    resources = []
    for number, resource in enumerate(made.resources):
        cause = resource.cause
        if number and (cause.by is None or cause.by >= number):
            cause = cause.model_copy(update={"by": 0, "kind": "other"})
        resources.append(resource.model_copy(update={"cause": cause, "rehearsed": None}))
    return page.model_copy(
        update={
            "url": resources[0].url,
            "resources": resources,
            "rehearsal": None,
            "notes": [*page.notes, NOTE],
        }
    )


def https_address(url: str) -> str:
    """The address by https, on its default port if it had that of http."""
    if not url.startswith("http:"):
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}s://{host.removesuffix(':80')}{slash}{path}"
