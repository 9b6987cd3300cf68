"""The cause of a request is the set of resources whose latest end, and a constant, explain it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from wirepaint.rehearsal.causes import Causes
from wirepaint.rehearsal.takes import Take

from .takes import URL, request, take


def rehearsed(count: int, make) -> list[Take]:
    """``count`` takes; ``make`` gives the requests, and other times of a take, for ends drawn at random."""
    drawn = random.Random(5)
    return [make([drawn.uniform(50, 300) for _ in range(8)]) for _ in range(count)]


def test_a_request_follows_the_script_that_asks_for_it():
    takes = rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                *(request(n, 12, ends[n]) for n in range(1, 6)),
                request(6, ends[3] + 20, 900, initiator=f"{URL}3"),
            ]
        ),
    )
    found = Causes(takes, [], {}).fit(6)
    assert found is not None
    assert (found.by, found.after, round(found.after_ms)) == ((3,), "resources", 20)
    assert found.spread < 0.01
    assert Causes(takes, [], {}).held_out(6) < 0.01


def test_a_request_that_waits_for_two_follows_the_later_one():
    takes = rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                *(request(n, 12, ends[n]) for n in range(1, 6)),
                request(6, max(ends[2], ends[4]) + 7, 900, initiator=f"{URL}2"),
            ]
        ),
    )
    found = Causes(takes, [], {}).fit(6)
    assert found is not None
    assert (set(found.by), round(found.after_ms)) == ({2, 4}, 7)


def after_2(end_of_3: Callable[[float], float], wait: float = 9) -> list[Take]:
    """Scripts 2 and 3 are asked for together by script 1. Some ms after the end of 2, script 4 is."""
    return rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                request(1, 12, 40),
                request(2, 42, ends[2], initiator=f"{URL}1"),
                request(3, 45, end_of_3(ends[3]), initiator=f"{URL}1"),
                request(4, ends[2] + wait, 900, initiator=f"{URL}1"),
            ]
        ),
    )


def test_what_waits_for_all_scripts_of_a_loader_is_known_where_none_of_them_is_mostly_the_latest():
    """A font that the application asks for once its four scripts are there; other scripts end before it."""
    latest = iter([1, 2, 3, 4, 1, 2])

    def seen(ends: list[float]) -> Take:
        late, mine = next(latest), [0.0, *(100 + 40 * n + ends[n] / 4 for n in range(4))]
        mine[late] += 300
        together = [request(1 + n, 42 + n / 2, mine[n], initiator=f"{URL}1") for n in range(1, 5)]
        others = [request(n, 12, ends[n]) for n in range(6, 8)]
        after = request(8, max(mine) + 250 + ends[0] / 10, 2_000, type="font", initiator=URL)
        return take([request(0, 0, 10), request(1, 12, 40), *together, *others, after], load=3_000)

    found = Causes(rehearsed(6, seen), [], {}).fit(8)
    assert found is not None
    assert {2, 3, 4, 5} <= set(found.by) and found.spread < 12


def test_what_follows_a_loader_waits_for_all_that_it_asked_for_together():
    found = Causes(after_2(lambda _: 49), [], {}).fit(4)
    assert found is not None
    assert (set(found.by), round(found.after_ms)) == ({1, 2, 3}, 9)


@pytest.mark.parametrize("wait", [9, 300])
def test_what_follows_one_script_does_not_wait_for_another(wait: float):
    """With 300 ms the other script has always ended before, but does not explain the times."""
    found = Causes(after_2(lambda end: end, wait), [], {}).fit(4)
    assert found is not None
    assert (set(found.by), round(found.after_ms)) == ({1, 2}, wait)


def test_an_inline_script_follows_what_the_parser_waits_for_before_it():
    # 1 and 2 block the parser before the inline script, 3 after it.
    takes = rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                *(request(n, 12, ends[n]) for n in range(1, 6)),
                request(6, max(ends[1], ends[2]) + 3, 900, initiator=URL),
            ]
        ),
    )
    found = Causes(takes, blocking=[1, 2, 3], handlers={}).fit(6)
    assert found is not None
    assert set(found.by) == {0, 1, 2}
    assert round(found.after_ms) == 3


def test_a_request_follows_an_event_of_the_page_where_no_resources_explain_it():
    drawn = random.Random(1)
    takes = []
    for _ in range(6):
        loaded = drawn.uniform(400, 900)
        takes.append(take([request(0, 0, 10), request(1, 12, 40), request(2, loaded + 15, 990)], load=loaded))
    found = Causes(takes, [], {}).fit(2)
    assert found is not None
    assert (found.after, round(found.after_ms)) == ("load", 15)


def test_chance_does_not_make_a_cause():
    # The request comes at random: nothing explains it, and nothing is added to the script that asked.
    drawn = random.Random(9)
    takes = rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                *(request(n, 12, min(ends[n], 290)) for n in range(1, 6)),
                request(6, 300 + drawn.uniform(0, 200), 990, initiator=f"{URL}3"),
            ]
        ),
    )
    causes = Causes(takes, [], {})
    found = causes.fit(6)
    assert found is not None
    assert len(found.by) <= 2 and found.spread > 20
    assert causes.held_out(6) > found.spread


def test_the_navigation_and_what_was_asked_for_once_have_no_fitted_cause():
    takes = [take([request(0, 0, 10), request(1, 12, 40)]), take([request(0, 0, 10)])]
    assert Causes(takes, [], {}).fit(0) is None
    assert Causes(takes, [], {}).fit(1) is None
    assert Causes(takes, [], {}).held_out(1) == math.inf


def test_a_request_can_follow_the_first_of_several_scripts():
    # 2 and 4 name the same module; the loader asks for it when the first of them has come.
    takes = rehearsed(
        6,
        lambda ends: take(
            [
                request(0, 0, 10),
                *(request(n, 12, ends[n]) for n in range(1, 6)),
                request(6, min(ends[2], ends[4]) + 4, 900, initiator=f"{URL}1"),
            ]
        ),
    )
    found = Causes(takes, [], {}).fit(6)
    assert found is not None
    assert (set(found.by), found.after, round(found.after_ms)) == ({2, 4}, "first", 4)


def test_what_handlers_ask_for_follows_their_event():
    # Events count from the end of their handlers, which ask before it.
    drawn = random.Random(1)
    takes = []
    for _ in range(6):
        loaded = drawn.uniform(400, 900)
        takes.append(take([request(0, 0, 10), request(1, 12, 40), request(2, loaded - 15, 990)], load=loaded))
    follows = [Causes(takes, [], {"load": handlers}).fit(2) for handlers in (0.0, 20.0)]
    assert [found.after if found else None for found in follows] == ["resources", "load"]
