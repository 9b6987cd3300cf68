"""Content codings with an exact size on the wire.

A recording states how many bytes a body took on the wire, but not which encoder made them. The body is
encoded at the nearest level and padded: both gzip (a comment field, RFC 1952 section 2.3.1) and Brotli
(metadata meta-blocks, RFC 7932 section 9.2) can carry bytes that a decoder skips.
"""

from __future__ import annotations

import zlib
from typing import Literal

import brotli

Coding = Literal["identity", "gzip", "br"]

_BROTLI_END = b"\x03"
_GZIP_LEVELS = (9, 6, 4, 1)
_BROTLI_LEVELS = (11, 9, 5, 1)
_SLOW_BROTLI_LIMIT = 262_144
"""Brotli 11 takes about 2 s per MB: only for bodies up to this size."""
_SLOW_LIMIT = 4 * 2**20
"""Gzip 9 takes up to 1 s per MB in the worst case, Brotli 9 half a second: only up to this size."""


def coding_of(content_encoding: str | None) -> Coding:
    """The coding in which a body of this content-encoding is stored.

    gzip and br stay. Others (deflate, zstd, compress and lists) become gzip.
    """
    name = (content_encoding or "").strip().lower()
    if name in ("", "identity"):
        return "identity"
    return "br" if name == "br" else "gzip"


def decoded(body: bytes, content_encoding: str, limit: int) -> bytes:
    """``body`` after undoing each coding of a content-encoding.

    Raises OverflowError if it would be longer than ``limit``, ValueError if it is broken or in
    an unknown coding (zstd).
    """
    for name in reversed([part.strip().lower() for part in content_encoding.split(",") if part.strip()][:4]):
        if name in ("gzip", "x-gzip"):
            body = _inflated(body, 31, limit)
        elif name == "deflate":
            zlib_head = len(body) > 1 and body[0] & 15 == 8 and not (body[0] << 8 | body[1]) % 31
            body = _inflated(body, 15 if zlib_head else -15, limit)
        elif name == "br":
            body = _unbrotlied(body, limit)
        elif name not in ("identity", "none"):
            raise ValueError(f"unknown coding {name[:20]}")
    return body


def _inflated(body: bytes, window: int, limit: int) -> bytes:
    if not body:
        return body
    decoder = zlib.decompressobj(window)
    try:
        plain = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(plain) > limit:
        raise OverflowError
    if not decoder.eof:
        raise ValueError("it ends too early")
    return plain


def _unbrotlied(body: bytes, limit: int) -> bytes:
    if not body:
        return body
    decoder, parts, size = brotli.Decompressor(), [], 0
    try:
        while not decoder.is_finished():
            part = decoder.process(body, output_buffer_limit=2**18)
            body = b""
            size += len(part)
            parts.append(part)
            if size > limit:
                raise OverflowError
            if not part and decoder.can_accept_more_data():
                break
    except brotli.error as error:
        raise ValueError(str(error)) from None
    if not decoder.is_finished():
        raise ValueError("it ends too early")
    return b"".join(parts)


def encode(body: bytes, coding: Coding, level: int, padding: int = 0) -> bytes:
    """``body`` in ``coding``, with ``padding`` bytes that a decoder skips before or after it."""
    if coding == "gzip":
        return _gzip(body, level, padding)
    if coding == "br":
        if not padding:
            return brotli.compress(body, quality=level)
        return _brotli_stream(body, level) + _brotli_metadata(padding) + _BROTLI_END
    return body


def encode_near(body: bytes, coding: Coding, wire_bytes: int | None) -> bytes:
    """``body`` in ``coding`` at the level nearest to ``wire_bytes``, padded to it if it is smaller.

    Without ``wire_bytes``: gzip 6, Brotli 5, the usual levels of servers for dynamic content.
    """
    if coding == "identity":
        return body
    if wire_bytes is None:
        return encode(body, coding, 6 if coding == "gzip" else 5)
    levels = _GZIP_LEVELS if coding == "gzip" else _BROTLI_LEVELS
    best, best_level = b"", levels[0]
    for level in levels:
        if len(body) > (_SLOW_BROTLI_LIMIT if level == 11 else _SLOW_LIMIT if level == 9 else len(body)):
            continue
        encoded = encode(body, coding, level)
        if not best or len(best) < len(encoded) <= wire_bytes:
            best, best_level = encoded, level
        if len(encoded) >= wire_bytes:
            break
    return pad_to(body, coding, best_level, wire_bytes, best)


def pad_to(body: bytes, coding: Coding, level: int, wire_bytes: int, encoded: bytes) -> bytes:
    """``encoded`` (``body`` at ``level``) padded to ``wire_bytes`` if it is smaller."""
    missing = wire_bytes - len(encoded)
    if coding == "identity" or missing <= 0:
        return encoded
    if coding == "gzip":
        return _gzip_head(missing) + encoded[len(_gzip_head(0)) :]
    stream = _brotli_stream(body, level)
    missing = wire_bytes - len(stream) - len(_BROTLI_END)
    return stream + _brotli_metadata(missing) + _BROTLI_END if missing > 0 else encoded


def _gzip(body: bytes, level: int, padding: int) -> bytes:
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    deflated = compressor.compress(body) + compressor.flush()
    trailer = zlib.crc32(body).to_bytes(4, "little") + (len(body) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join([_gzip_head(padding), deflated, trailer])


def _gzip_head(padding: int) -> bytes:
    flags, comment = (b"\x10", b" " * (padding - 1) + b"\0") if padding else (b"\0", b"")
    return b"\x1f\x8b\x08" + flags + bytes(4) + b"\0\xff" + comment


def _brotli_stream(body: bytes, level: int) -> bytes:
    """``body`` without the end of the stream."""
    compressor = brotli.Compressor(quality=level)
    return compressor.process(body) + compressor.flush()


def _brotli_metadata(size: int) -> bytes:
    """Meta-blocks of exactly ``size`` bytes that a decoder skips."""
    blocks = bytearray()
    while size:
        # An empty block takes 1 byte; one of n content bytes takes 1 + (bytes of n - 1) + n.
        length_bytes = 2 if size >= 260 else 1 if size >= 3 else 0
        content = min(size - 1 - length_bytes, 256**length_bytes) if length_bytes else 0
        header = 0b0110 | length_bytes << 4 | (max(content - 1, 0) << 6)
        blocks += header.to_bytes(1 + length_bytes, "little") + b" " * content
        size -= 1 + length_bytes + content
    return bytes(blocks)
