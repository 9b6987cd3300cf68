"""Turns a page into a size-only record: the facts of a page load without its content or names.

It keeps sizes, types, times, causes, statuses, priorities, content-encodings and which hosts share a
site. Host names become descriptive ``.example`` names, paths and queries random letters
of the same length, headers a padding of the same length. Bodies are dropped.
"""

from __future__ import annotations

import random
from collections import Counter
from urllib.parse import urlsplit

from wirepaint.pages import headers
from wirepaint.pages.model import Page, Resource

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_KEPT_HEADERS = {"content-type", "content-encoding", "access-control-allow-credentials"}
_ROLE = {"js": "script", "image": "image", "html": "frame", "css": "style", "font": "font", "media": "media"}
_SECOND_LEVEL = {"co", "com", "org", "net", "gov", "ac", "edu"}


def anonymise(page: Page, *, seed: int = 1) -> Page:
    """``page`` as a size-only record; the same seed gives the same names."""
    rng = random.Random(seed)
    hosts = _hosts(page)
    urls: dict[str, str] = {}
    for resource in page.resources:
        if resource.url not in urls:
            urls[resource.url] = _address(resource, hosts, rng, set(urls.values()))
    resources = [_stripped(resource, urls, page) for resource in page.resources]
    return page.model_copy(update={"url": resources[0].url, "resources": resources})


def site(host: str) -> str:
    """The registrable domain of ``host``, roughly: two labels, three below ``co.uk`` and the like."""
    labels = host.split(".")
    short = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3 if short else -2 :])


def _hosts(page: Page) -> dict[str, str]:
    """A new name for each host: sites stay sites, named after the type that they mostly serve."""
    members: dict[str, list[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    for resource in page.resources:
        host = urlsplit(resource.url).hostname or ""
        owner = site(host)
        if host not in members.setdefault(owner, []):
            members[owner].append(host)
        kinds.setdefault(owner, Counter())[_ROLE.get(resource.type, "api")] += 1
    base = next((r for r in page.resources if r.type == "html" and r.status < 300), page.resources[0])
    own = site(urlsplit(base.url).hostname or "")
    names: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for owner, hosts in members.items():
        role = kinds[owner].most_common(1)[0][0]
        if owner == own:
            domain = f"{page.name}.example"
        else:
            numbers[role] += 1
            domain = f"{role}{numbers[role]}.example"
        for position, host in enumerate(hosts):
            label = ("www." if owner == own else "") if position == 0 else f"h{position}."
            names[host] = label + domain
    return names


def _address(resource: Resource, hosts: dict[str, str], rng: random.Random, taken: set[str]) -> str:
    parts = urlsplit(resource.url)
    port = f":{parts.port}" if parts.port else ""
    start = f"{parts.scheme}://{hosts[parts.hostname or '']}{port}/"
    path = parts.path.removeprefix("/")
    suffix = path[path.rindex(".") :] if "." in path[-6:] and "/" not in path[-6:] else ""
    suffix = suffix if suffix[1:].isalnum() else ""
    while True:
        letters = "".join(rng.choices(_LETTERS, k=len(path) - len(suffix)))
        url = start + letters + suffix
        if parts.query:
            url += "?" + "".join(rng.choices(_LETTERS, k=len(parts.query)))
        if url not in taken:
            return url
        path += "x"


def _stripped(resource: Resource, urls: dict[str, str], page: Page) -> Resource:
    kept: headers.Headers = []
    removed = 0
    for name, value in resource.headers:
        if name == "content-type":
            short = value.split(";")[0].strip()[:40]
            kept.append((name, short))
            removed += len(value) - len(short)
        elif name in _KEPT_HEADERS:
            kept.append((name, value))
        elif name != "location":
            removed += len(name) + len(value) + 4
    kept = headers.padded(kept, removed)
    target = next(
        (r for r in page.resources if r.cause.kind == "redirect" and r.cause.by == resource.id), None
    )
    if target is not None:
        kept.append(("location", urls[target.url]))
    empty = resource.status == 204 or resource.method == "HEAD" or not (resource.wire_bytes or resource.body)
    return resource.model_copy(
        update={
            "url": urls[resource.url],
            "headers": kept,
            "body": None,
            "synthetic": not empty,
            "residual_bytes": 0,
        }
    )
