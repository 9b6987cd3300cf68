"""A page that loses resources stays of one piece."""

from __future__ import annotations

from typing import Any

from wirepaint.pages.model import Page, keeping

URL = "https://a.test/"


def resource(number: int, kind: str, **more: Any) -> dict[str, Any]:
    cause = {"by": 0, "kind": "script"} if number else {"by": None, "kind": "navigation"}
    sizes = {"wire_bytes": 9, "decoded_bytes": 9}
    return {"id": number, "url": f"{URL}{number or ''}", "type": kind, "cause": cause} | sizes | more


def test_what_names_resources_names_the_same_ones_by_their_new_numbers():
    places = [{"of": of, "at": of, "element": "script"} for of in (1, 2, 3)]
    follows = {"by": [1, 3], "after_ms": 5}
    page = Page.model_validate(
        {
            "name": "page",
            "url": URL,
            "resources": [
                resource(0, "html", outline={"body_at": 0, "elements": 3, "places": places}),
                resource(1, "js"),
                resource(2, "js"),
                resource(3, "js", cause={"by": 1, "kind": "script", "also": [2]}),
                resource(4, "image", rehearsed={"asked": 1, "by": [1, 3]}),
            ],
            "rehearsal": {"browser": "b", "maker": "1", "loads": 1, "seconds": 1, "verdict": "replays"}
            | {"first_contentful_paint": follows},
        }
    )
    made = keeping(page, [r for r in page.resources if r.id != 1])
    document, second, third, image = made.resources
    assert [r.url[-1] for r in made.resources] == ["/", "2", "3", "4"]
    assert [r.id for r in made.resources] == [0, 1, 2, 3]
    assert document.outline is not None and image.rehearsed is not None and made.rehearsal is not None
    assert [(each.of, each.at) for each in document.outline.places] == [(1, 2), (2, 3)]
    assert (second.cause.by, third.cause.by, third.cause.also) == (0, 0, [1])
    assert image.rehearsed.by == [2]
    assert made.rehearsal.first_contentful_paint is not None
    assert made.rehearsal.first_contentful_paint.by == [2]
    assert page.resources[3].cause.also == [2]


def test_two_that_became_one_are_named_by_one_number():
    named = resource(2, "js", cause={"by": 1, "kind": "parser"})
    listed = [resource(0, "html"), resource(1, "html"), named]
    page = Page.model_validate({"name": "page", "url": URL, "resources": listed})
    made = keeping(page, [page.resources[0], page.resources[2]], {0: 0, 1: 0, 2: 1})
    assert made.resources[1].cause.by == 0
