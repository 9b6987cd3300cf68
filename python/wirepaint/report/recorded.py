"""The response headers of a run's page, from the run description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.errors import UsageError, cut

PADDING = "x-wirepaint-pad"
"""Fills the head of a synthetic answer to its recorded size; its value says nothing."""
LONGEST_VALUE = 400
"""Characters of a header's value that are shown."""

Headers = list[list[str]]


def headers(run_file: Path | None, objects: pl.DataFrame) -> tuple[list[Headers], list[int | None]]:
    """The different sets of headers (name, value), and for each object the number of its set or None.

    ``run_file`` is the run.json of either back end. Raises UsageError if it is damaged.
    """
    known = _by_request(run_file)
    sets: dict[str, int] = {}
    numbers: list[int | None] = []
    for method, url in objects.select("method", "url").iter_rows():
        found = known.get((method, url.partition("#")[0]))
        text = None if found is None else json.dumps(found)
        numbers.append(None if text is None else sets.setdefault(text, len(sets)))
    return [json.loads(text) for text in sets], numbers


def _by_request(run_file: Path | None) -> dict[tuple[str, str], Headers]:
    if run_file is None:
        return {}
    try:
        run: dict[str, Any] = json.loads(run_file.read_bytes())
        answers = [answer for page in run.get("pages", {}).values() for answer in page["resources"]]
        answers += [answer for site in run.get("sites", {}).values() for answer in site["responses"]]
        return {(answer["method"], answer["url"]): _shown(answer["headers"]) for answer in answers}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(str(run_file), f"a damaged file ({error})", "the run.json of a run") from None


def _shown(recorded: list[tuple[str, str]]) -> Headers:
    return [[name, cut(value, LONGEST_VALUE)] for name, value in recorded if name != PADDING]
