"""The rehearsals decide which requests share connections, not the elements."""

from __future__ import annotations

from dataclasses import replace

from wirepaint.pages import PreparedPage
from wirepaint.pages.model import Page
from wirepaint.rehearsal import pools
from wirepaint.rehearsal.fitting import Part, describe

from .takes import URL, request, take


def found(kinds: str, *loads: tuple[int, ...]) -> list[int | None]:
    """Pools of a document's children of other hosts, by the connection of each in each load.

    ``kinds``: s for a script, f for a font, which asks without credentials.
    """
    urls = [URL, *(f"https://other.test/{n}" for n in range(len(kinds)))]
    types = ["html", *({"s": "js", "f": "font"}[kind] for kind in kinds)]
    resources = [
        {
            "id": n,
            "url": url,
            "type": kind,
            "cause": {"by": 0 if n else None, "kind": "parser" if n else "navigation"},
        }
        | {"wire_bytes": 100, "decoded_bytes": 100}
        for n, (url, kind) in enumerate(zip(urls, types, strict=True))
    ]
    page = Page.model_validate({"name": "page", "url": URL, "resources": resources})
    responses = [{"body": None, "headers": []} for _ in resources]
    served = [{"headers": [], "wire_bytes": 100, "decoded_bytes": 100} for _ in resources]
    origins = [("https", "a.test", 443), ("https", "other.test", 443)]
    part = Part(PreparedPage("page", URL, origins, responses, served), page.resources, origins, (1280, 800))
    takes = [
        take(
            [request(0, 0, 10)]
            + [
                replace(request(n, 20, 40), connection=connection, url=urls[n], type=types[n])
                for n, connection in enumerate(load, 1)
            ],
            load=300,
        )
        for load in loads
    ]
    describe(part, takes[0], takes[1:])
    pools.describe(part, takes)
    return [resource.rehearsed.pool if resource.rehearsed else None for resource in page.resources[1:]]


def test_two_connections_of_a_host_are_with_and_without_credentials():
    assert found("sf", (5, 6), (7, 9)) == [0, 1]
    assert found("fs", (5, 6), (7, 9)) == [1, 0]


def test_a_script_that_asks_without_credentials_is_seen():
    assert found("sfs", (5, 6, 6)) == [0, 1, 1]
    # If the elements leave it open, the earliest request has credentials.
    assert found("ss", (5, 6), (8, 7)) == [0, 1]


def test_one_connection_is_one_pool_whatever_elements_say():
    assert found("ssf", (5, 5, 5)) == [0, 0, 0]


def test_a_second_connection_in_some_loads_was_chance():
    assert found("ss", (5, 6), (7, 7)) == [0, 0]


def test_more_than_two_groups_tell_nothing():
    assert found("sss", (5, 6, 7)) == [None, None, None]
