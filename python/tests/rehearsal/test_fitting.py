"""A fitted set of causes takes the place of the page's own ones if the page load time allows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wirepaint.pages import PreparedPage
from wirepaint.pages.model import Page, Rehearsed
from wirepaint.rehearsal import fitting
from wirepaint.rehearsal.causes import Fitted
from wirepaint.rehearsal.fitting import Part, fit
from wirepaint.rehearsal.prediction import Predicted
from wirepaint.rehearsal.takes import Take

from .takes import URL, request, take

HTML = """<!doctype html><script src="/1"></script><img src="/2">"""
ENDS = (120.0, 250.0, 180.0, 300.0)
"""Of the script; the image is asked for 10 ms after it in each take."""


def a_part(folder: Path) -> Part:
    kinds = ("html", "js", "image")
    resources: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        (folder / str(number)).write_bytes(HTML.encode() if number == 0 else b"//")
        size = (folder / str(number)).stat().st_size
        resources.append(
            {"id": number, "url": f"{URL}{number or ''}", "type": kind, "rehearsed": {"asked": 1}}
            | {"wire_bytes": size, "decoded_bytes": size, "headers": []}
            | {"cause": {"by": 0 if number else None, "kind": "parser" if number else "navigation"}}
        )
    responses = [
        {"method": "GET", "url": each["url"], "status": 200, "headers": [], "body": str(folder / str(number))}
        for number, each in enumerate(resources)
    ]
    prepared = PreparedPage("page", URL, [("https", "a.test", 443)], responses, resources)
    page = Page.model_validate({"name": "page", "url": URL, "resources": resources})
    return Part(prepared, page.resources, prepared.origins, (1280, 800))


def seen(end: float) -> Take:
    image = request(2, end + 10, end + 60, type="image")
    return take([request(0, 0, 10, type="html"), request(1, 20, end), image], load=end + 60)


@pytest.mark.parametrize(("load_after", "taken"), [(60.0, True), (90.0, False)])
def test_a_set_that_spoils_the_page_load_time_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load_after: float, taken: bool
) -> None:
    """The simulator finds the image too early; with the set its page load takes ``load_after``."""
    part = a_part(tmp_path)
    image = part.resources[2]

    def predict(graph: object, delays: Sequence[object], http: str) -> list[Predicted]:
        assert image.rehearsed is not None
        fitted = image.rehearsed.by == [0, 1]
        starts = [end + 10 if fitted else 12.0 for end in ENDS]
        loads = [end + (load_after if fitted else 60) for end in ENDS]
        return [
            Predicted(
                {part.key(0): 0.0, part.key(1): 20.0, part.key(2): start},
                {part.key(0): 10.0, part.key(1): end, part.key(2): start + 50},
                load,
                400.0,
                450.0,
            )
            for start, end, load in zip(starts, ENDS, loads, strict=True)
        ]

    monkeypatch.setattr(fitting, "predict", predict)
    fit(part, [seen(end) for end in ENDS])
    expected = Rehearsed(asked=1, by=[0, 1], after_ms=10.0) if taken else Rehearsed(asked=1)
    assert image.rehearsed == expected


@pytest.mark.parametrize(
    ("errors", "taken"),
    [
        ({(): 0.05, (1,): 0.2, (2,): 0.2, (1, 2): 0.01}, {1, 2}),
        ({(): 0.05, (1,): 0.01, (2,): 0.2, (1, 2): 0.2}, {1}),
        ({(): 0.05, (1,): 0.2, (2,): 0.2, (1, 2): 0.2}, set()),
    ],
)
def test_causes_of_a_chain_are_taken_together_where_one_alone_spoils_the_page_load_time(
    tmp_path: Path, errors: dict[tuple[int, ...], float], taken: set[int]
) -> None:
    part = a_part(tmp_path)

    def has_it(number: int) -> bool:
        rehearsed = part.resources[number].rehearsed
        return rehearsed is not None and rehearsed.by == [0]

    def missed() -> float:
        return errors[tuple(number for number in (1, 2) if has_it(number))]

    better = {number: Fitted((0,), "resources", 5.0, 1.0) for number in (1, 2)}
    assert fitting._taken(part, better, errors[()], missed) == taken
    assert {number for number in (1, 2) if has_it(number)} == taken
