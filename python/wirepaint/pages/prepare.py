"""Makes a page ready to be served: every body is a file, every header is final.

The result is cached under the hash of the page's index, so that preparing it again only reads
one small file. Several processes may prepare the same page at once.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from wirepaint import ordinary
from wirepaint.errors import PageFailed
from wirepaint.pages.bodies import check, stored
from wirepaint.pages.cache import hand_over, make_folder, sweep, unwritable
from wirepaint.pages.model import BODIES, INDEX, Page, Resource, faults_named, parsed, read_index
from wirepaint.pages.synthesis import synthesise
from wirepaint.pages.synthesis.markup import Driver

_PREPARED = "prepared.json"
NO_CLOCK_MS = 1_600_000_000_000
"""Start of the page's clock if the recording has no time (September 2020)."""


@dataclass(frozen=True)
class PreparedPage:
    """The data of a page that a run needs."""

    name: str
    url: str
    origins: list[tuple[str, str, int]]
    """Scheme, host and port, in the order in which the page first uses them."""
    responses: list[dict[str, Any]]
    """One ``Response`` of the run description for each resource; ``body`` is an absolute path."""
    resources: list[dict[str, Any]]
    """As in page.json, with the served sizes and headers, and ``expected``: true if every rehearsal asked
    for the resource. If the page was never rehearsed: true for the navigation and for the requests of
    synthesised bodies."""
    clock_ms: int = NO_CLOCK_MS
    seed: int = 1
    mobile: bool = False
    rehearsed: bool = False
    paints: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """Causes of the first and the largest contentful paint, if the rehearsals found them."""
    processor_ms: float | None = None
    """Speed of the machine that rehearsed it (``rehearsal.speed``)."""

    @property
    def answering(self) -> list[int]:
        """The resource of each response that is served: the server grants preflights itself."""
        return [r["id"] for r in self.resources if not (r.get("stand_in") and r["method"] == "OPTIONS")]

    @property
    def served(self) -> list[dict[str, Any]]:
        """The responses that are served."""
        return [self.responses[number] for number in self.answering]


def prepare(page_dir: Path, cache_folder: Path) -> PreparedPage:
    """Prepares the page in ``page_dir``; missing bodies are made once and kept in ``cache_folder``.

    Raises :class:`UsageError` for a page folder that is damaged and a cache that cannot be written.
    """
    index = read_index(page_dir)
    return _prepared(index, lambda: parsed(index, Path(page_dir) / INDEX), Path(page_dir), cache_folder)


def prepare_as(page: Page, page_dir: Path, cache_folder: Path) -> PreparedPage:
    """Prepares ``page`` with the bodies in ``page_dir``, but without the index there."""
    return _prepared(page.model_dump_json().encode(), lambda: page, Path(page_dir), cache_folder)


def _prepared(index: bytes, page: Callable[[], Page], page_dir: Path, cache_folder: Path) -> PreparedPage:
    folder = Path(cache_folder).absolute() / hashlib.sha256(index + _maker()).hexdigest()[:32]
    data = _read(folder) or _make(page(), page_dir, folder)
    bodies = page_dir.absolute() / BODIES
    for response, own in zip(data["responses"], data["own"], strict=True):
        if response["body"] is not None:
            response["body"] = str((folder if own else bodies) / response["body"])
    origins = [(scheme, host, port) for scheme, host, port in data["origins"]]
    more = {key: data[key] for key in ("clock_ms", "seed", "mobile", "rehearsed", "paints", "processor_ms")}
    return PreparedPage(data["name"], data["url"], origins, data["responses"], data["resources"], **more)


@cache
def _maker() -> bytes:
    """Hash of the code that makes bodies: if it changes, pages are made again."""
    files = sorted(p for p in Path(__file__).parent.rglob("*") if p.suffix in (".py", ".js"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).digest()


class _Served(BaseModel):
    """A prepared page: each resource as served, whether it has a new body, and which are certain."""

    resources: list[Resource]
    own: list[bool]
    certain: set[int]


def _make(page: Page, page_dir: Path, folder: Path) -> dict[str, Any]:
    """Makes the bodies as an ordinary user, and keeps them in ``folder``."""

    def work(made: Path, _: ordinary.Say) -> dict[str, Any]:
        for resource in page.resources:
            if resource.body:
                check(page_dir, resource)
        served: dict[str, Any] = {"resources": [], "own": [], "certain": sorted(_certain(page))}
        for resource, wire in synthesise(page):
            if wire is not None:
                (made / _name(resource.id)).write_bytes(wire)
            served["own"].append(wire is not None)
            served["resources"].append(resource.model_dump(mode="json"))
        return served

    with ordinary.done(work, str(page_dir)) as (made, said):
        with faults_named(str(page_dir)):
            served = _Served.model_validate(said)
        _check(page, served, page_dir)
        return _keep(page, served, made, folder)


def _check(page: Page, served: _Served, page_dir: Path) -> None:
    """Raises unless it is the same page, with stored bodies in its folder: the maker is not trusted."""
    asked = [(resource.id, resource.method, resource.url, resource.body) for resource in page.resources]
    answered = [(resource.id, resource.method, resource.url, resource.body) for resource in served.resources]
    if asked != answered or len(served.own) != len(asked):
        raise PageFailed(f"{page_dir}: what was made ready is another page")
    for resource in page.resources:
        if resource.body:
            stored(page_dir, resource)


def _keep(page: Page, served: _Served, made: Path, folder: Path) -> dict[str, Any]:
    make_folder(folder.parent)
    sweep(folder.parent, ".making.*")
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".making.", dir=folder.parent))
    except OSError as error:
        raise unwritable(folder.parent, error) from None
    try:
        ordinary.take(made, scratch)
        data = _described(page, served, scratch)
        text = json.dumps(data).encode()
        (scratch / _PREPARED).write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
        scratch.chmod(0o755)
        hand_over(scratch)
        try:
            scratch.rename(folder)
        except OSError:  # another process was faster, or the present folder is damaged
            if _read(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
                scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return json.loads(text)


def _described(page: Page, served: _Served, folder: Path) -> dict[str, Any]:
    """The cached description of a page, with its new bodies in ``folder``."""
    data: dict[str, Any] = {
        "name": page.name,
        "url": page.url,
        "responses": [],
        "own": served.own,
        "resources": [],
        "clock_ms": NO_CLOCK_MS if page.clock_ms is None else page.clock_ms,
        "seed": page.seed,
        "mobile": page.mobile,
        "rehearsed": page.rehearsal is not None,
        "paints": _paints(page),
        "processor_ms": page.rehearsal.processor_ms if page.rehearsal else None,
    }
    origins: dict[tuple[str, str, int], None] = {}
    for number, (resource, own) in enumerate(zip(served.resources, served.own, strict=True)):
        name = _name(number) if own else resource.body
        parts = urlsplit(resource.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        origins[parts.scheme, (parts.hostname or "").lower(), port] = None
        data["responses"].append(
            {
                "method": resource.method,
                "url": resource.url,
                "status": resource.status,
                "headers": resource.headers,
                "body": name,
                "body_sha256": _digest(folder / _name(number)) if own else resource.body,
                "patterns": resource.patterns,
                "think_ns": round(resource.think_ms * 1e6),
            }
        )
        data["resources"].append(resource.model_dump(mode="json") | {"expected": number in served.certain})
    data["origins"] = list(origins)
    return data


def _name(number: int) -> str:
    """File of a body that was made."""
    return f"{number:05d}"


def _paints(page: Page) -> dict[str, dict[str, Any] | None]:
    found = page.rehearsal
    if found is None:
        return {}
    paints = {"first": found.first_contentful_paint, "largest": found.largest_contentful_paint}
    return {name: paint.model_dump() if paint else None for name, paint in paints.items()}


def _certain(page: Page) -> set[int]:
    """The resources that each visit must ask for."""
    if page.rehearsal is None:
        return set(Driver(page).driven) | {0}
    return {r.id for r in page.resources if r.rehearsed and r.rehearsed.asked == 1}


def _read(folder: Path) -> dict[str, Any] | None:
    """The cached page, None if damaged: its index and bodies must have their original hashes."""
    try:
        digest, _, text = (folder / _PREPARED).read_bytes().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None
        data = json.loads(text)
        for response, own in zip(data["responses"], data["own"], strict=True):
            if own and _digest(folder / response["body"]) != response["body_sha256"]:
                return None
    except (OSError, ValueError):
        return None
    return data


def _digest(file: Path) -> str:
    with file.open("rb") as body:
        return hashlib.file_digest(body, "sha256").hexdigest()
