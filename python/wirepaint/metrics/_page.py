"""Readings of the one page visit of a run."""

from __future__ import annotations

from typing import Any

import polars as pl

from wirepaint.metrics._metric import Frame, Missing, Trace, rows, shared

NS_PER_MS = 1e6


@shared
def visit(trace: Trace) -> dict[str, Any]:
    """The row of table ``page``."""
    page = trace("page")
    if page.height != 1:
        raise Missing(f"the run holds {page.height} page visits, not one")
    return page.row(0, named=True)


def known(row: dict[str, Any], column: str) -> Any:
    """A value of the row that must not be null."""
    if row[column] is None:
        raise Missing(f"the visit has no {column}")
    return row[column]


def since_navigation(trace: Trace, column: str) -> float:
    """Milliseconds from navigation start to an instant of the visit."""
    row = visit(trace)
    return (known(row, column) - known(row, "navigation_start")) / NS_PER_MS


def since_first_request(trace: Trace, column: str) -> float:
    """Milliseconds from the first request sent (before any redirect) to an instant of the visit."""
    row = visit(trace)
    first: Any = trace("object")["sent"].min()
    if first is None:
        raise Missing("no request was sent")
    return (known(row, column) - first) / NS_PER_MS


_UNUSED = "no connection carried a request"


def used_connections(trace: Trace) -> Frame:
    """Rows of table ``connection`` that carried at least one request."""
    connections = trace("connection").filter(pl.col("objects") > 0)
    if connections.is_empty():
        raise Missing(_UNUSED)
    return connections


def used(trace: Trace, *columns: str) -> list[list[Any]]:
    """The same rows of some columns as Python values."""
    every = rows(trace("connection"), "objects", *columns)
    found = [values for objects, *values in every if objects is not None and objects > 0]
    if not found:
        raise Missing(_UNUSED)
    return found
