"""A load graph has only wanted resources, each cause before its effects."""

from __future__ import annotations

from typing import Any

from wirepaint.pages.order import ordered


def resource(name: str, cause: dict[str, Any] | None = None, **other: Any) -> dict[str, Any]:
    return {"url": name} | ({"cause": cause} if cause else {}) | other


def script(by: int) -> dict[str, Any]:
    return {"kind": "script", "by": by, "after_ns": 5}


def names(resources: list[dict[str, Any]]) -> list[str]:
    return [each["url"] for each in resources]


def test_a_cause_comes_first_although_its_effect_was_recorded_before_it():
    found, place = ordered(
        [resource("page"), resource("image", script(2)), resource("script", script(0))],
        [True] * 3,
        [0, 10, 20],
    )
    assert names(found) == ["page", "script", "image"]
    assert [each["cause"]["by"] for each in found[1:]] == [0, 1]
    assert place == {0: 0, 2: 1, 1: 2}


def test_what_nobody_asks_for_is_left_out_and_its_effects_follow_its_cause():
    markup = {"kind": "markup", "by": 1, "at": 3, "element": "image"}
    found, _ = ordered(
        [resource("page"), resource("frame", script(0)), resource("image", markup)],
        [True, False, True],
        [0, 10, 20],
    )
    assert names(found) == ["page", "image"]
    assert found[1]["cause"] == {"kind": "script", "by": 0, "after_ns": 0}


def test_all_causes_are_renumbered_and_a_circle_is_opened_at_its_earliest():
    found, _ = ordered(
        [
            resource("page"),
            resource("a", script(2)),
            resource("b", script(1)),
            resource("c", script(1), also=[2]),
        ],
        [True] * 4,
        [0, 10, 20, 30],
    )
    assert names(found) == ["page", "a", "b", "c"]
    assert [each["cause"]["by"] for each in found[1:]] == [0, 1, 1]
    assert found[3]["also"] == [2]
