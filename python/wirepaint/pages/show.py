"""Shows a page: its requests, left-out resources, and the waterfall of its rehearsal.

:func:`facts` gives all of it as a dictionary for programs, :func:`lines` as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from wirepaint.columns import aligned
from wirepaint.pages.model import Page, Resource

Paint = Callable[[str, str], str]
"""``text`` in the colour for ``word``: a type of resource or a verdict."""

MOST_ROWS = 40
"""Requests that an abridged waterfall shows."""
BUSY = 0.25
"""Share of the machine's CPU time: if others use more, rehearsed delays are longer than the page's own."""
_MOST_NAMED = 5
_NARROWEST_BAR, _NARROWEST_PATH = 8, 16
_VERDICTS = {"replays": "replays", "shape": "replays as a shape", "does not": "does not replay"}


def verdict(page: Page) -> str:
    """Whether the page replays, in a few words."""
    found = page.rehearsal
    if found is None:
        return "never rehearsed: the recorded causes serve"
    if found.verdict == "replays without":
        return f"replays without {_number(found.left_out, 'request')}"
    return _VERDICTS[found.verdict]


def simulator(page: Page) -> str | None:
    """The simulator's error on this page; None if no rehearsal gives it."""
    found = page.rehearsal
    if found is None or found.verdict == "does not" or (found.error is None and not found.judged):
        return None
    if found.error is None:
        return "the simulator does not load it"
    times = _number(found.judged, "rehearsal") if found.judged else "rehearsals"
    return f"simulator {100 * found.error:.1f} % off in {times} kept out of the fit"


def is_busy(others: float | None) -> bool:
    """Whether others had so much of the CPU time that rehearsed delays are too long; False if unknown."""
    return others is not None and others > BUSY


def disturbance(page: Page) -> str | None:
    """That other programs kept the machine busy while the page was rehearsed; None on a calm machine."""
    others = page.rehearsal.others_cpu if page.rehearsal is not None else None
    if others is None or not is_busy(others):
        return None
    return f"others had {100 * others:.0f} % of the CPU time: rehearse it again on a calm machine"


def facts(page: Page) -> dict[str, Any]:
    """All that :func:`lines` shows, with every request and address; times in ms."""
    asked = [resource for resource in page.resources if _is_asked(page, resource)]
    rows = [_row(page, resource) for resource in asked]
    rows.sort(key=lambda row: (row["start_ms"], row["id"]))
    hosts: dict[str, list[Resource]] = {}
    for resource in asked:
        hosts.setdefault(_host(resource), []).append(resource)
    ids = {resource.id for resource in asked}
    types = dict.fromkeys(sorted({resource.type for resource in asked}))
    return {
        **page.model_dump(mode="json", exclude={"resources", "rehearsal", "format"}),
        "verdict": verdict(page),
        "simulator": simulator(page),
        "rehearsal": page.rehearsal.model_dump(mode="json") if page.rehearsal else None,
        "total": _sums(asked),
        "before_load": _sums(r for r in asked if not _after_load(r)),
        "after_load": _sums(r for r in asked if _after_load(r)),
        "types": {kind: _sums(r for r in asked if r.type == kind) for kind in types},
        "hosts": {host: _sums(of) for host, of in hosts.items()},
        "left_out": [_address(r) for r in page.resources if r.id not in ids],
        "stand_ins": [_address(r) for r in page.resources if r.stand_in],
        "patterns": {_address(r): r.patterns for r in page.resources if r.patterns},
        "sometimes": {
            _address(r): r.rehearsed.asked for r in asked if r.rehearsed is not None and r.rehearsed.asked < 1
        },
        "aborted": [_address(r) for r in asked if r.rehearsed is not None and r.rehearsed.aborted],
        "waterfall": rows,
    }


def lines(page: Page, width: int, *, whole: bool = False, paint: Paint = lambda text, _: text) -> list[str]:
    """The page as text of ``width`` columns; ``whole`` shows every request and address."""
    known = facts(page)
    return [
        *_head(page, known, paint),
        "",
        *_table(page, known),
        "",
        *_remarks(page, known, whole),
        *_waterfall(page, known["waterfall"], width, whole, paint),
    ]


def _head(page: Page, known: dict[str, Any], paint: Paint) -> list[str]:
    found = page.rehearsal
    total = known["total"]
    word = found.verdict if found else "never"
    text = [
        f"{page.name}: {page.title}" if page.title and page.title != page.name else page.name,
        page.url,
        f"{_number(total['requests'], 'request')}, {_number(len(known['hosts']), 'host')}, "
        f"{_size(total['wire_bytes'])} on the wire",
        paint(known["verdict"], word) + (f"; {known['simulator']}" if known["simulator"] else ""),
    ]
    if found is not None and found.reason:
        text.append(found.reason)
    if found is not None:
        by = f"{found.viewport[0]}x{found.viewport[1]}, {found.browser}"
        load = "" if found.load_ms is None else f", load event after {found.load_ms:.0f} ms"
        text += filter(None, [disturbance(page)])
        text.append(f"{_number(found.loads, 'load')} in {found.seconds:.0f} s at {by}{load}")
    origin = [
        page.source and f"source: {page.source}",
        page.licence and f"licence: {page.licence}",
        page.recorded and f"recorded: {page.recorded}",
        page.viewport and f"recorded at {page.viewport[0]}x{page.viewport[1]}",
        page.mobile and "as a phone",
    ]
    return [*text, *filter(None, ["; ".join(str(part) for part in origin if part)])]


def _table(page: Page, known: dict[str, Any]) -> list[str]:
    asked = [resource for resource in page.resources if _is_asked(page, resource)]

    def row(name: str, of: list[Resource]) -> list[str | int]:
        before = [r for r in of if not _after_load(r)]
        return [
            name,
            len(of),
            _wire(of),
            len(before),
            _wire(before),
            len(of) - len(before),
            _wire(of) - _wire(before),
        ]

    head: list[str | int] = ["", "requests", "bytes", "before load", "bytes", "after load", "bytes"]
    kinds = [row(kind, [r for r in asked if r.type == kind]) for kind in known["types"]]
    hosts = sorted(known["hosts"], key=lambda host: -known["hosts"][host]["wire_bytes"])
    named = [row(host, [r for r in asked if _host(r) == host]) for host in hosts[:_MOST_NAMED]]
    more = len(hosts) - _MOST_NAMED
    if more > 0:
        named.append(
            row(f"{_number(more, 'other host')}", [r for r in asked if _host(r) in hosts[_MOST_NAMED:]])
        )
    return aligned([head, *kinds, *named, row("all", asked)])


def _remarks(page: Page, known: dict[str, Any], whole: bool) -> list[str]:
    """Differences from the recording, each with its addresses."""
    patterns = [f"{url} as {pattern}" for url, all_of in known["patterns"].items() for pattern in all_of]
    sometimes = [f"{url} ({100 * share:.0f} %)" for url, share in known["sometimes"].items()]
    text: list[str] = []
    never = "left out, never asked for" if page.rehearsal else "lying in the folder, named by nothing"
    for what, urls in {
        never: known["left_out"],
        "not recorded, answered by a stand-in": known["stand_ins"],
        "answered under other addresses too": patterns,
        "asked for in some rehearsals, not in all": sometimes,
        "given up by the page": known["aborted"],
    }.items():
        if urls:
            shown = urls if whole else urls[:_MOST_NAMED]
            text += [f"{what}: {len(urls):,}", *(f"  {url if whole else _short(url, 100)}" for url in shown)]
            if len(shown) < len(urls):
                text.append(f"  and {len(urls) - len(shown):,} more")
    if page.notes:
        text += ["notes:", *(f"  {note}" for note in page.notes)]
    return [*text, ""] if text else []


def _waterfall(page: Page, rows: list[dict[str, Any]], width: int, whole: bool, paint: Paint) -> list[str]:
    shown = rows if whole or len(rows) <= MOST_ROWS else rows[:MOST_ROWS]
    load = page.rehearsal.load_ms if page.rehearsal else None
    until = max([*(row["end_ms"] or row["start_ms"] for row in rows), load or 0.0, 1.0])
    parts = [
        [
            row["id"],
            round(row["start_ms"]),
            round(row["end_ms"] or row["start_ms"]),
            row["type"],
            row["wire_bytes"],
        ]
        for row in shown
    ]
    causes = [row["cause"] for row in shown]
    head = ["id", "start", "end", "type", "bytes"]
    used = max(map(len, aligned([head, *parts]))) + max(map(len, causes)) + 3 * 2
    bar = max(_NARROWEST_BAR, (width - used) * 2 // 5)
    path = max(_NARROWEST_PATH, width - used - bar)
    table: list[list[str | int]] = [[*head[:2], "", *head[2:], "address", "after"]]
    for row, part, cause in zip(shown, parts, causes, strict=True):
        drawn = _bar(row["start_ms"], row["end_ms"] or row["start_ms"], load, until, bar)
        table.append([*part[:2], drawn, *part[2:], _short(row["address"], path), cause])
    first, *rest = aligned(table)
    what = "rehearsal with every answer at once" if page.rehearsal else "recording"
    text = [f"waterfall of the {what}, in ms{'; | is the load event' if load is not None else ''}", first]
    for line, row in zip(rest, shown, strict=True):
        text.append(re.sub("=+", lambda found, kind=row["type"]: paint(found[0], kind), line, count=1))
    if len(shown) < len(rows):
        text.append(f"and {len(rows) - len(shown):,} more (--all shows them)")
    return text


def _bar(start: float, end: float, load: float | None, until: float, width: int) -> str:
    first = min(width - 1, int(start / until * width))
    last = max(first + 1, min(width, round(end / until * width)))
    cells = [" "] * width
    if load is not None:
        cells[min(width - 1, int(load / until * width))] = "|"
    cells[first:last] = "=" * (last - first)
    return "".join(cells)


def _row(page: Page, resource: Resource) -> dict[str, Any]:
    found, recorded = resource.rehearsed, resource.recorded
    if found is not None:
        start, end = found.start_ms or 0.0, found.end_ms
    else:
        start = recorded.start_ms
        end = start + recorded.wait_ms + recorded.receive_ms
    parts = urlsplit(resource.url)
    own = parts.netloc == urlsplit(page.url).netloc
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return {
        "id": resource.id,
        "method": resource.method,
        "url": resource.url,
        "address": path if own else f"{parts.netloc}{path}",
        "status": resource.status,
        "type": resource.type,
        "wire_bytes": resource.wire_bytes,
        "start_ms": start,
        "end_ms": end,
        "asked": found.asked if found else None,
        "after_load": _after_load(resource),
        "stand_in": resource.stand_in,
        "cause": _cause(page, resource),
    }


def _cause(page: Page, resource: Resource) -> str:
    """The cause of the request in the simulator."""
    cause, found = resource.cause, resource.rehearsed
    if cause.by is None:
        return "navigation"
    if cause.kind == "redirect":
        return f"redirect: {cause.by}"
    if found is not None and found.by:
        by, after = ", ".join(map(str, found.by)), found.after_ms
        if found.after == "first":
            by = f"the first of {by}"
        elif found.after == "run":
            by = f"run of {by}"
        elif found.after != "resources":
            by = "DOMContentLoaded" if found.after == "content_loaded" else "load event"
        return f"after: {by} + {after:.0f} ms"
    parent = page.resources[cause.by].type
    if cause.kind == "css" or (found is not None and parent == "css"):
        return f"style: {cause.by}"
    if parent == "html" and (found is not None or cause.kind == "parser"):
        return f"markup: {cause.by}"
    if found is not None:
        return "style" if resource.type == "font" else "markup"
    return f"after: {cause.by} + {cause.after_ms:.0f} ms"


def _is_asked(page: Page, resource: Resource) -> bool:
    """Whether a rehearsal asked for it; without a rehearsal, whether it was recorded or a file names it."""
    if page.rehearsal is None or page.rehearsal.loads == 0:
        return resource.file != "listed"
    return resource.rehearsed is not None


def _after_load(resource: Resource) -> bool:
    if resource.rehearsed is not None:
        return resource.rehearsed.load == "after"
    return resource.recorded.after_load


def _sums(resources: Iterable[Resource]) -> dict[str, int]:
    of = list(resources)
    return {"requests": len(of), "wire_bytes": _wire(of), "decoded_bytes": sum(r.decoded_bytes for r in of)}


def _wire(resources: Sequence[Resource]) -> int:
    return sum(resource.wire_bytes for resource in resources)


def _host(resource: Resource) -> str:
    return urlsplit(resource.url).netloc


def _address(resource: Resource) -> str:
    return resource.url if resource.method == "GET" else f"{resource.method} {resource.url}"


def _short(text: str, width: int) -> str:
    """``text`` without its middle if it is too long."""
    if len(text) <= width:
        return text
    end = (width - 3) * 2 // 3
    return f"{text[: width - 3 - end]}...{text[-end:]}"


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}" if count == 1 else f"{count:,} {of}s"
