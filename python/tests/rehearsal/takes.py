"""Takes made by hand: what each of some rehearsals saw."""

from __future__ import annotations

from wirepaint.rehearsal.takes import Request, Take

URL = "https://a.test/"


def request(number: int | None, start: float, end: float | None, **other: object) -> Request:
    """A request of resource ``number``, in ms."""
    values = {
        "method": "GET",
        "url": URL if number == 0 else f"{URL}{number}",
        "type": "js",
        "priority": "Low",
        "initiator": None,
        "initiator_type": "parser",
        "frame": "F",
        "status": 200,
        "failed": None,
    }
    return Request(resource=number, start=start, end=end, **(values | other))  # type: ignore[arg-type]


def take(requests: list[Request], load: float = 1_000, content_loaded: float | None = 500) -> Take:
    """A rehearsal that saw ``requests``."""
    return Take(requests, load, content_loaded, 400.0, 450.0, {}, "Chromium 1")
