"""The commands ``wirepaint metric``, and the consent to files of metrics of one's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from wirepaint.errors import NotTrusted, UsageError, show
from wirepaint.printing import Json, print_json, print_rows, say

metric = App(name="metric", help="Metrics: list and show them, agree to files of them.")


def read(named: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Files of metrics that the user trusts, from now on in every command; by the places that name them."""
    from wirepaint import metrics

    entries = []
    for place, path in named.items():
        entries.append(metrics.read(path, place))
        metrics.trust(entries[-1]["sha256"])
    metrics.enrol(entries, next(iter(named)))
    return entries


def check_primary(name: str, place: str) -> None:
    """Raises UsageError at ``place`` unless ``name`` is a metric that can be compared."""
    from wirepaint import metrics

    if metrics.get(name, place).label:
        raise UsageError(place, show(name), "a metric that is a number")


@metric.command(name="list")
def metric_list(results: Path | None = None, /, *, json: Json = False) -> None:
    """List the metrics, with RESULTS also those of its evaluation's own files.

    Parameters
    ----------
    results
        Results folder.
    json
        Print JSON.
    """
    from wirepaint import metrics
    from wirepaint.results import Results

    if results is not None:
        metrics.own(Results.open(results))
    known = metrics.registry().values()
    columns = ("name", "unit", "better", "file", "title")
    print_rows([{column: getattr(one, column) or "" for column in columns} for one in known], json)


@metric.command(name="show")
def metric_show(name: str, results: Path | None = None, /, *, json: Json = False) -> None:
    """Print what a metric is: its definition, unit, source and the tables that it reads.

    Parameters
    ----------
    name
        Name of the metric.
    results
        Results folder, for a metric of its evaluation's own files.
    json
        Print JSON.
    """
    from wirepaint import metrics
    from wirepaint.results import Results

    if results is not None:
        metrics.own(Results.open(results))
    try:
        one = metrics.get(name)
    except UsageError as error:
        if results is None:
            accepted = f"{error.accepted}, or the name and RESULTS, for a metric of their own files"
            raise UsageError(error.place, error.found, accepted) from None
        raise
    said = {
        "name": one.name,
        "title": one.title,
        "definition": one.summary,
        "unit": one.unit,
        "better": one.better or "",
        "of": f"a {one.over}",
        "tables": ", ".join(one.needs),
        "source": one.source,
        "file": one.file or "",
    }
    if json:
        print_json(said)
        return
    for key, value in said.items():
        if value:
            print(f"{key:10} {value}")


@metric.command(name="trust")
def metric_trust(results: Path, /, *, trust: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Agree to run the files of metrics that results of somebody else bring, after a look at them.

    Parameters
    ----------
    results
        Results folder.
    trust
        Agree without being asked.
    """
    from wirepaint import metrics
    from wirepaint.results import Results

    entries = Results.open(results).manifest["evaluation"].get("metrics", [])
    if not entries:
        raise UsageError(
            str(results), "no metrics of its own", "results of an evaluation with the key metrics"
        )
    for entry in entries:
        print(f"# {entry['file']}, SHA-256 {entry['sha256']}\n{entry['text']}")
    if not trust and not _agreed():
        names = ", ".join(entry["file"] for entry in entries)
        raise NotTrusted(str(results), names, "Python that you trust: it runs with your rights")
    for entry in entries:
        metrics.trust(entry["sha256"])


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say("These files run with your rights. Do you trust them? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
