"""Response bytes by where they came from."""

from __future__ import annotations

from wirepaint.metrics._metric import Missing, Trace, rows, shared


def byte_share(trace: Trace, served_by: str) -> float:
    """Bytes of the responses from there, as transferred, in per cent of those of all responses."""
    found = origins(trace)
    every = sum(found.values())
    if not every:
        raise Missing("no response came over the network")
    return 100 * found.get(served_by, 0) / every


@shared
def origins(trace: Trace) -> dict[str, int]:
    """Bytes of responses by where they came from."""
    found: dict[str, int] = {}
    for served_by, size in rows(trace("object"), "served_by", "encoded_bytes"):
        if served_by is not None:
            found[served_by] = found.get(served_by, 0) + (size or 0)
    return found
