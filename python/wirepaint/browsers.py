"""Browsers of the catalogue: the numbers that the page model takes, each with its source."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from wirepaint import catalogue

USUAL = "chromium-156"
"""The browser of every simulated visit."""


@cache
def numbers(name: str) -> dict[str, Any]:
    """The numbers of a browser, as the run description holds them; raises UsageError for an unknown name.

    An entry that is ``like`` another has that one's numbers where it gives none.
    """
    entry = tomllib.loads(catalogue.find("browser", name, Path()).read_text("utf-8"))
    others = numbers(entry["like"]) if "like" in entry else {}
    return others | _plain(entry["browser"])


def light(model: str, connections: int, pipelining: int) -> dict[str, Any]:
    """The numbers of a light browser: those of ``model``, with its own connections to a host and its own
    requests on a connection before an answer."""
    return numbers(model) | {"connections_per_origin": connections, "pipeline": pipelining}


def _plain(value: Any) -> Any:
    """``{value = V, from = SOURCE}`` as V, at any depth."""
    if not isinstance(value, dict):
        return value
    return value["value"] if "from" in value else {key: _plain(part) for key, part in value.items()}
