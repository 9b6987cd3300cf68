"""Bodies in a coding and of an exact size on the wire."""

from __future__ import annotations

import gzip

import brotli
from hypothesis import given, settings
from hypothesis import strategies as st

from wirepaint.pages.codings import coding_of, encode, encode_near

DECODE = {"gzip": gzip.decompress, "br": brotli.decompress}


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(["gzip", "br"]), st.integers(0, 70_000))
def test_padding_never_changes_what_is_decoded(body: bytes, coding: str, padding: int) -> None:
    encoded = encode(body, coding, 5, padding)  # pyright: ignore[reportArgumentType]
    assert DECODE[coding](encoded) == body
    assert len(encoded) >= padding


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=3000), st.sampled_from(["gzip", "br"]), st.integers(0, 20_000))
def test_the_size_asked_for_is_met_wherever_the_body_fits(body: bytes, coding: str, wire: int) -> None:
    encoded = encode_near(body, coding, wire)  # pyright: ignore[reportArgumentType]
    assert DECODE[coding](encoded) == body
    smallest = len(encode(body, coding, 9 if coding == "gzip" else 11))  # pyright: ignore[reportArgumentType]
    if wire >= smallest + 2:
        assert len(encoded) == wire
    else:
        assert len(encoded) <= smallest + 2


def test_codings_that_are_not_kept_become_gzip() -> None:
    assert [coding_of(c) for c in (None, "", "identity", "GZIP", "br", "zstd", "deflate", "gzip, br")] == [
        "identity", "identity", "identity", "gzip", "br", "gzip", "gzip", "gzip"
    ]  # fmt: skip
