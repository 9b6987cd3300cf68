"""Packet captures of testbed runs, as an evaluation file asks for them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from wirepaint.evaluation import quantities
from wirepaint.evaluation.quantities import Size, between
from wirepaint.reading import Table

LEAST_SNAP, MOST_SNAP = 94, 65_535
"""Bytes. The headers of Ethernet, IP and TCP with all options; the longest IP packet."""
FULL = "full"


def _snap_length(value: object) -> int | None:
    if value == FULL:
        return None
    accepted = f'"{FULL}", or {LEAST_SNAP} B (all headers) to {MOST_SNAP} B'
    try:
        length = quantities.size(value)
    except PydanticCustomError:
        length = 0
    if not LEAST_SNAP <= length <= MOST_SNAP:
        raise PydanticCustomError("quantity", "not {accepted}", {"accepted": accepted})
    return length


_WRITTEN: dict[str, Any] = {
    "anyOf": [{"const": FULL}, {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(B|kB|KiB)\s*$"}]
}
SnapLength = Annotated[int | None, BeforeValidator(_snap_length), WithJsonSchema(_WRITTEN)]
"""Bytes kept of each packet, with its Ethernet header; None for all."""


class CaptureTable(Table):
    """Keeps the packets of each testbed run, at the device of each user and at the server's."""

    snap_length: SnapLength = None
    """All by default: a TLS record that is cut cannot be decrypted."""
    size_limit: Annotated[Size, between("100 kB", "10 GB", quantities.size)] = 100_000_000
    """A file that has grown to this size takes no more packets."""
