"""The page archive: a folder with ``page.json`` and ``bodies/<sha256>``.

A body is stored exactly as it goes on the wire, after content-encoding. A resource with ``synthetic``
has no stored body: :func:`wirepaint.pages.prepare` makes one with the
recorded sizes. ``docs/guide/pages.md`` describes every key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from wirepaint import files
from wirepaint.errors import UsageError, cut, show
from wirepaint.pages import counted, references

FORMAT = 1
INDEX = "page.json"
BODIES = "bodies"
DESKTOP = (1280, 800)
"""Default width and height of a view port in CSS pixels."""
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"

Kind = Literal["html", "css", "js", "image", "font", "media", "data", "other"]
CauseKind = Literal["navigation", "parser", "css", "script", "redirect", "other"]
After = Literal["resources", "first", "run", "content_loaded", "load"]
Element = Literal[
    "stylesheet", "script", "async_script", "deferred_script", "image", "lazy", "frame", "preload", "other"
]

MOST_BODY = 2**27
"""Bytes of a body, on the wire and decoded."""
MOST_POST = 2**30
"""Bytes of a request's body; only its size is kept."""
MOST_BODIES = 2**28
"""Decoded bytes of all bodies of a page."""
_LARGEST_INDEX = 2**27
_MOST_HEADERS = 300_000


def _words(value: Any) -> Any:
    """Text for people, in one line that any terminal can show."""
    return cut(value, 2_000) if isinstance(value, str) else value


def _asked_for(url: str) -> str:
    if not references.is_address(url):
        raise ValueError("an http or https address as a browser asks for it")
    return url


_Text = Annotated[str, Field(pattern=r"^[^\r\n\x00]*$", max_length=65_536)]
_Words = Annotated[str, BeforeValidator(_words)]
_Address = Annotated[str, AfterValidator(_asked_for)]
_Bytes = Annotated[int, Field(ge=0, le=MOST_BODY)]
_Count = Annotated[int, Field(ge=0, le=10_000_000)]
_Side = Annotated[int, Field(ge=1, le=100_000)]
_Milliseconds = Annotated[float, Field(ge=0, le=3_600_000)]
_Id = Annotated[int, Field(ge=0, lt=5_000)]
_Ids = Annotated[list[_Id], Field(max_length=100)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Cause(_Strict):
    """The cause of a request: resource ``by``, ``after_ms`` after its last byte arrived."""

    by: int | None
    kind: CauseKind
    after_ms: _Milliseconds = 0.0
    also: _Ids = []
    """Further resources whose last bytes must have arrived; ``after_ms`` counts from the latest."""
    after: After = "resources"
    """``after_ms`` counts from the resources, or from an event of the page after them."""
    holds_load: bool | None = None
    """Whether the load event waits for the request to begin; null: see ``recorded.after_load``."""


class Place(_Strict):
    """An element of a document that loads resource ``of``."""

    of: int
    at: _Bytes
    """Bytes of the decoded document before it."""
    element: Element
    anonymous: bool = False
    """The request is without credentials (``crossorigin``)."""
    urgent: bool | None = None
    """Its ``fetchpriority``: true for high, false for low."""


class Outline(_Strict):
    """The structure of a document whose body was dropped; offsets in bytes of the decoded document."""

    body_at: _Bytes
    elements: int = Field(ge=0, le=300_000)
    """Elements in the body."""
    inline_scripts: list[_Bytes] = Field(default=[], max_length=2_000)
    places: list[Place] = Field(default=[], max_length=5_000)
    rendering_ms: _Milliseconds = 0.0
    callbacks_ms: _Milliseconds = 0.0
    """Time of the main thread for styles, layout and paint, and for callbacks of scripts."""


class Recorded(_Strict):
    """The transfer in the recording; times in ms, ``start_ms`` since the navigation."""

    protocol: _Words | None = None
    connection: _Words | None = None
    start_ms: _Milliseconds = 0.0
    wait_ms: _Milliseconds = 0.0
    receive_ms: _Milliseconds = 0.0
    after_load: bool = False
    """True when the request began after the recorded load event."""
    post_bytes: int = Field(default=0, ge=0, le=MOST_POST)
    """Size of the request's body."""
    server: _Count | None = None
    """A number for the address that answered, equal for equal addresses; null if unknown."""


class Rehearsed(_Strict):
    """The findings of the rehearsals on a request (docs/guide/pages.md, "Rehearsal"); times in ms."""

    asked: float = Field(ge=0, le=1)
    """Share of the rehearsals that asked for it."""
    start_ms: _Milliseconds | None = None
    end_ms: _Milliseconds | None = None
    """Since the navigation, in rehearsals without delays; null if none of these asked for it."""
    aborted: bool = False
    """The page aborted the request in at least one rehearsal."""
    load: Literal["before", "after", "either"] = "before"
    """Whether the requests began before or after the load event."""
    by: _Ids = []
    """The causes of the request; empty if documents and style sheets give them."""
    after: After = "resources"
    """``after_ms`` counts from the last byte of the latest of ``by`` (``resources``) or of the first of
    them, from the last run of scripts (``run``), or from an event."""
    after_ms: _Milliseconds = 0.0
    priority: _Words | None = None
    """The browser's priority for it when it asked, in DevTools' words."""
    compute_ms: _Milliseconds | None = None
    """Main thread time for a script before its effects, or for a style sheet; null if unknown. For the page's
    own document: style, layout and paint until the first paint."""
    style_ms: _Milliseconds | None = None
    """For the page's own document: what of that were styles; null if unknown. Then ``compute_ms`` and
    ``layout_wait_ms`` are those until the load event."""
    style_wait_ms: _Milliseconds | None = None
    """For the page's own document: further time of these styles, waiting for a CPU."""
    layout_wait_ms: _Milliseconds | None = None
    """For the page's own document: further time of these layouts and paints, waiting for the browser process,
    which looks up fonts."""
    later_layouts_ms: _Milliseconds = 0.0
    """For the page's own document: styles, layouts and paints after the first paint, until the load event."""
    inline_ms: list[_Milliseconds] = Field(default=[], max_length=2_000)
    """For a document: main thread time of each script in its text."""
    content_loaded_ms: _Milliseconds | None = None
    load_event_ms: _Milliseconds | None = None
    """For the page's own document: time of the handlers of DOMContentLoaded and of the load event."""
    callbacks_ms: _Milliseconds | None = None
    """For the page's own document: time of callbacks of scripts until the load event, with these handlers."""
    pool: int | None = Field(default=None, ge=0, le=1)
    """The connections that carried it: 0 with credentials, 1 without; null if the elements decide."""
    holds_load: bool = True
    """False if the load event did not wait for it in a rehearsal that asked for it before the event."""


class Follows(_Strict):
    """A time that follows the latest end of resources, or the latest run of scripts, by ``after_ms``."""

    by: _Ids
    after: Literal["resources", "run"] = "resources"
    after_ms: _Milliseconds


class Rehearsal(_Strict):
    """The findings of the rehearsals on the page as a whole."""

    browser: _Words
    """Product and version."""
    maker: _Words
    """Version of the rehearsal's own code."""
    viewport: tuple[_Side, _Side] = DESKTOP
    """In CSS pixels."""
    loads: _Count
    seconds: float = Field(ge=0)
    verdict: Literal["replays", "replays without", "shape", "does not"]
    reason: _Words = ""
    """Why it replays in part, as a shape or not at all."""
    left_out: _Count = 0
    """Recorded requests that no rehearsal asked for."""
    error: float | None = None
    """The simulator's error: median of |simulated - rehearsed| / rehearsed page load time, in rehearsals kept
    out of the fit; null if it did not load the page in one of them."""
    judged: _Count = 0
    """Rehearsals kept out of the fit."""
    others_cpu: float | None = None
    """Share of the machine's CPU time that others used; median of the loads."""
    processor_ms: _Milliseconds | None = None
    """Time of a fixed piece of work on the machine (``rehearsal.speed``)."""
    load_ms: _Milliseconds | None = None
    """Page load time without delays."""
    first_contentful_paint: Follows | None = None
    largest_contentful_paint: Follows | None = None
    """The causes of the paints, if they fit better than the simulator's own estimate."""
    unstable: list[_Words] = Field(default=[], max_length=5_000)
    """Addresses that some rehearsals asked for and others did not."""
    unstable_share: float = 0.0
    """Their share of the bytes."""


class Resource(_Strict):
    """One request and its response."""

    id: int
    method: str = Field(default="GET", pattern=r"^[A-Z]{1,16}$")
    url: _Address
    status: int = Field(default=200, ge=200, le=599)
    headers: list[tuple[_Text, _Text]] = Field(default=[], max_length=2_000)
    body: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    synthetic: bool = False
    type: Kind
    wire_bytes: _Bytes
    """Bytes of the body on the wire, after content-encoding."""
    decoded_bytes: _Bytes
    compressibility: float | None = None
    """``wire_bytes / decoded_bytes`` of a body with a content-encoding, else null."""
    think_ms: _Milliseconds = 0.0
    """Time the server takes between the request's last byte and the response's first."""
    cause: Cause
    priority: _Words | None = None
    residual_bytes: int = Field(default=0, gt=-(2**53), lt=2**53)
    """``wire_bytes`` minus the size that the recording states."""
    recorded: Recorded = Recorded()
    stand_in: bool = False
    """True: the page asks for it, but the recording lacks it; a stored 404 answers."""
    patterns: list[_Text] = Field(default=[], max_length=1_000)
    """Further addresses that it answers; ``*`` stands for any text."""
    rehearsed: Rehearsed | None = None
    outline: Outline | None = None
    """For a document of a shape that was made from rehearsals."""
    compute_ms: _Milliseconds | None = None
    """Computing time of a synthesised script, or of the scripts in a synthesised document; null if
    unknown."""
    file: Literal["named", "mentioned", "listed"] | None = None
    """For a file of a static site: a document, style sheet or import names it; a script contains its name;
    it is only in the folder. Null for a recorded resource."""

    @model_validator(mode="after")
    def _coding_is_known(self) -> Self:
        coding = self.header("content-encoding") or "identity"
        if coding not in ("identity", "gzip", "br"):
            raise ValueError(f"content-encoding is {show(coding)}, it must be identity, gzip or br")
        return self

    def header(self, name: str) -> str | None:
        """Value of the first header of this name (lower case)."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Page(_Strict):
    """A recorded page; ``resources[0]`` is the navigation, ids are positions in order of start."""

    format: Literal[1] = FORMAT
    name: str = Field(pattern=NAME)
    title: _Words = ""
    summary: _Words = ""
    source: _Words = ""
    licence: _Words = ""
    recorded: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    clock_ms: int | None = Field(default=None, ge=0, lt=2**53)
    """Time of the navigation in the recording, in milliseconds of Unix time; null if unknown."""
    viewport: tuple[_Side, _Side] | None = None
    """Width and height of the recording's view port in CSS pixels, the default for visits; null if
    unknown."""
    mobile: bool = False
    """True when it was recorded as a phone, and is loaded as one."""
    url: str
    seed: int = Field(default=1, ge=0, lt=2**63)
    notes: list[_Words] = Field(default=[], max_length=1_000)
    """What the import changed or left out, one sentence each."""
    rehearsal: Rehearsal | None = None
    """Null if the page was never rehearsed."""
    resources: list[Resource] = Field(min_length=1, max_length=5_000)

    @property
    def usual_viewport(self) -> tuple[int, int]:
        """The default view port of its visits."""
        return self.viewport or DESKTOP

    @model_validator(mode="after")
    def _causes_come_first(self) -> Self:
        seen: set[tuple[str, str]] = set()
        for position, resource in enumerate(self.resources):
            where = f"resources.{position}"
            by = resource.cause.by
            if resource.id != position:
                raise ValueError(f"{where}.id is {resource.id}, it must be its position {position}")
            if (by is None) != (position == 0):
                raise ValueError(f"{where}.cause.by: the first resource has no cause, all others have one")
            if by is not None and not 0 <= by < position:
                raise ValueError(f"{where}.cause.by is {by}, a cause must come before its effect")
            for also in resource.cause.also:
                if not 0 <= also < position:
                    raise ValueError(f"{where}.cause.also names {also}, a cause must come before its effect")
            for place in resource.outline.places if resource.outline else ():
                if not position < place.of < len(self.resources):
                    raise ValueError(
                        f"{where}.outline.places names {place.of}, which must come after {position}"
                    )
            if (resource.method, resource.url) in seen:
                raise ValueError(f"{where}: {resource.method} {resource.url[:100]} occurs twice")
            seen.add((resource.method, resource.url))
        if self.url != self.resources[0].url:
            raise ValueError("url is not that of the first resource")
        if (size := sum(resource.decoded_bytes for resource in self.resources)) > MOST_BODIES:
            raise ValueError(f"bodies are together {size} bytes, they may be {MOST_BODIES}")
        if (count := sum(len(resource.headers) for resource in self.resources)) > _MOST_HEADERS:
            raise ValueError(f"there are {count} headers, there may be {_MOST_HEADERS}")
        return self

    def children(self, parent: int) -> list[Resource]:
        """Resources that ``parent`` causes, in order of start."""
        return [r for r in self.resources if r.cause.by == parent]


def own_document(resources: Sequence[Resource]) -> Resource:
    """The page's own document: the end of the navigation's redirects."""
    base = resources[0]
    for resource in resources:
        if resource.cause.kind == "redirect" and resource.cause.by == base.id:
            base = resource
    return base


def keeping(page: Page, resources: Sequence[Resource], place: Mapping[int, int] | None = None) -> Page:
    """``page`` with only ``resources``, numbered from 0, and with all references renumbered.

    Effects of a removed resource follow the first one instead. ``place`` gives the new number by the old
    one; pass it if several resources became one.
    """
    place = {resource.id: number for number, resource in enumerate(resources)} if place is None else place

    def at(numbers: Sequence[int]) -> list[int]:
        return list(dict.fromkeys(place[number] for number in numbers if number in place))

    made = []
    for number, resource in enumerate(resources):
        cause, found, outline = resource.cause, resource.rehearsed, resource.outline
        by = None if cause.by is None else place.get(cause.by, 0)
        also = [other for other in at(cause.also) if other < number]
        if found is not None:
            found = found.model_copy(update={"by": at(found.by)})
        if outline is not None:
            places = [
                each.model_copy(update={"of": place[each.of]}) for each in outline.places if each.of in place
            ]
            outline = outline.model_copy(update={"places": places})
        cause = cause.model_copy(update={"by": by if number else None, "also": also})
        changes = {"id": number, "cause": cause, "rehearsed": found, "outline": outline}
        made.append(resource.model_copy(update=changes))
    rehearsal = page.rehearsal
    if rehearsal is not None:
        paints = {}
        for name in ("first_contentful_paint", "largest_contentful_paint"):
            paint = getattr(rehearsal, name)
            paints[name] = paint and paint.model_copy(update={"by": at(paint.by)})
        rehearsal = rehearsal.model_copy(update=paints)
    return page.model_copy(update={"resources": made, "rehearsal": rehearsal})


def describe(error: ValidationError) -> tuple[str, str, str]:
    """The first fault that pydantic reports: key, found value, accepted values."""
    first = error.errors(include_url=False)[0]
    key = ".".join(f"[{part}]" if isinstance(part, int) else str(part) for part in first["loc"])
    key = key.replace(".[", "[")
    given = first.get("input")
    if first["type"] == "missing":
        found = "nothing"
    elif first["type"] == "json_invalid":
        return key, f"what is no JSON ({first['msg'].removeprefix('Invalid JSON: ')})", "JSON"
    elif first["type"] == "value_error" and isinstance(given, dict | BaseModel):
        found = "a contradiction"
    else:
        found = show(given, 80)
    accepted = "this key, it must be there" if first["type"] == "missing" else first["msg"]
    return key, found, accepted.removeprefix("Value error, ")


@contextmanager
def faults_named(place: str) -> Iterator[None]:
    """Turns a pydantic error in the body into a :class:`UsageError` with the key in ``place``."""
    try:
        yield
    except ValidationError as error:
        key, found, accepted = describe(error)
        raise UsageError(f"{place}: {key}" if key else place, found, accepted) from None
    except RecursionError:
        raise UsageError(place, "something nested too deeply", "a file as a program writes it") from None


def checked(name: str | None, seed: int) -> None:
    """Raises :class:`UsageError` for a name or seed that no page can have."""
    if name is not None and not re.fullmatch(NAME, name):
        raise UsageError(
            "--name", repr(name[:80]), "1 to 64 of a-z, 0-9, '.', '_', '-', first a letter or digit"
        )
    if not 0 <= seed < 2**63:
        raise UsageError("--seed", str(seed), "0 to 2^63 - 1")


def load(page_dir: Path) -> Page:
    """Reads and checks a page folder's index; raises :class:`UsageError` with file and key."""
    index = Path(page_dir) / INDEX
    return parsed(read_index(page_dir), index)


def read_index(page_dir: Path) -> bytes:
    """The bytes of a page folder's index; raises :class:`UsageError`."""
    index = Path(page_dir) / INDEX
    accepted = "a page folder with page.json"
    if index.is_symlink():
        raise UsageError(str(index), "a link", accepted)
    data = files.content(index, _LARGEST_INDEX, accepted)
    if too_much := counted.too_much(data):
        raise UsageError(str(index), too_much, accepted)
    return data


def parsed(data: bytes, index: Path) -> Page:
    """The page of an index that was read from the file ``index``; raises :class:`UsageError`."""
    with faults_named(str(index)):
        return Page.model_validate_json(data)


def save_index(page: Page, folder: Path) -> None:
    """Writes ``page.json``; the caller has written the bodies."""
    keys = page.model_dump(mode="json", exclude={"resources"})
    lines = [json.dumps(r.model_dump(mode="json"), ensure_ascii=False) for r in page.resources]
    head = json.dumps(keys, ensure_ascii=False, indent=1)[:-2]
    text = f'{head},\n "resources": [\n' + ",\n".join(f"  {line}" for line in lines) + "\n ]\n}\n"
    (folder / INDEX).write_text(text, encoding="utf-8")
