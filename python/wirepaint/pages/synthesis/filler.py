"""Text of an exact decoded size that encodes to a given size on the wire.

Filler lines hold random characters up to a column and one sentence after it. The column sets how
well the text compresses. The share of random characters is the same throughout, as in real text, so that
a decoder or parser makes steady progress while bytes arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import accumulate

import numpy as np

from wirepaint.pages.codings import Coding, encode, pad_to

_LINE = 64
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._", np.uint8)
_SENTENCE = b"The quick brown fox jumps over the lazy dog while pages load.  "
_LEVEL = {"identity": 0, "gzip": 6, "br": 4}
_ATTEMPTS = 12
_TOLERANCE = 48
"""Bytes below the wanted size at which the search stops; padding in the coding fills the rest."""

_LARGE = 2**23
"""Bytes of filler beyond which each encoding takes seconds: then a sample gives the random share."""
_SAMPLE = 2**21
_FAST = {"gzip": 1, "br": 2}
_TILE = 2**24
"""Random bytes repeat after N: no coding's window reaches that far."""
_BLOCK = 2**14
"""Lines that are made at once."""

Text = Callable[[int], bytes]
"""The text with N random characters."""


def random_bytes(seed: str, size: int, before: bytes = b"") -> bytes:
    """``before`` and ``size`` bytes that depend only on ``seed``."""
    tile = hashlib.shake_128(seed.encode()).digest(min(size, _TILE))
    whole, rest = divmod(size, _TILE)
    return b"".join([before, *[tile] * whole, tile[:rest]])


def fit(
    parts: list[bytes],
    decoded: int,
    wire: int,
    coding: Coding,
    seed: str,
    ending: bytes = b"\n",
    weights: list[int] | None = None,
) -> tuple[bytes, bytes]:
    """``parts`` joined by filler to ``decoded`` bytes, and its encoding in ``wire`` bytes.

    ``weights`` are shares of the gaps between the parts; by default they are equal.
    Returns the text and the encoding. They are longer than asked if ``parts`` alone are too long, or
    if ``decoded`` bytes cannot be encoded in ``wire`` bytes.
    """
    room = max(0, decoded - sum(map(len, parts)))
    gaps = len(parts) - 1
    passed = [0, *accumulate(weights or [1] * gaps)]
    lines = -(-room // _LINE)
    noise = random_bytes(seed, min(lines * _LINE, _TILE))

    def text(random_chars: int) -> bytes:
        if not room:
            return b"".join(parts)
        filler = memoryview(_filler(noise, lines, random_chars, _SENTENCE + ending))[:room]
        cuts = [room * weight // passed[-1] for weight in passed]
        joined: list[bytes | memoryview] = [parts[0]]
        for gap in range(gaps):
            joined += (filler[cuts[gap] : cuts[gap + 1]], parts[gap + 1])
        return b"".join(joined)

    if coding == "identity":
        result = text(room // 2)
        return result, result
    if room < _LARGE:
        level = _LEVEL[coding]
        _, best, encoded = _nearest(text, room, wire, coding, level)
    else:
        level = _FAST[coding]
        sample: Text = lambda chars: _filler(noise, _SAMPLE // _LINE, chars, _SENTENCE + ending)  # noqa: E731
        few, _, _ = _nearest(sample, _SAMPLE, wire * _SAMPLE // room, coding, level)
        best, encoded = _below(text, few * room // _SAMPLE, wire, coding, level)
    return best, pad_to(best, coding, level, wire, encoded)


def _nearest(text: Text, room: int, wire: int, coding: Coding, level: int) -> tuple[int, bytes, bytes]:
    """The text of ``room`` characters whose encoding comes nearest to ``wire`` from below.

    Returns the number of random characters, the text and its encoding.
    """
    low, high = 0, room  # random characters known to be few enough, and too many
    best = text(0)
    best_encoded = encode(best, coding, level)
    low_size, high_size = len(best_encoded), round(0.8 * room) + len(best_encoded)
    for _ in range(_ATTEMPTS):
        if not 0 < wire - len(best_encoded) > _TOLERANCE or low >= high:
            break
        share = (wire - _TOLERANCE / 2 - low_size) / max(1, high_size - low_size)
        guess = min(high, max(low + 1, low + round(share * (high - low))))
        candidate = text(guess)
        encoded = encode(candidate, coding, level)
        if len(encoded) <= wire:
            low, low_size, best, best_encoded = guess, len(encoded), candidate, encoded
        else:
            high, high_size = guess - 1, len(encoded)
    return low, best, best_encoded


def _below(text: Text, guess: int, wire: int, coding: Coding, level: int) -> tuple[bytes, bytes]:
    """A text with about ``guess`` random characters, fewer if its encoding would exceed ``wire``."""
    for share in (0.99, 0.9, 0.0):
        best = text(round(guess * share))
        encoded = encode(best, coding, level)
        if len(encoded) <= wire:
            break
    return best, encoded


def _filler(noise: bytes, lines: int, random_chars: int, sentence: bytes) -> bytes:
    """Lines that begin with characters drawn from ``noise``, ``random_chars`` in all, then ``sentence``."""
    made = bytearray(lines * _LINE)
    columns, rest = np.arange(_LINE)[None, :], np.frombuffer(sentence, np.uint8)[None, :]
    known = len(noise) // _LINE
    for start in range(0, lines, _BLOCK):
        count, at = min(_BLOCK, lines - start), start % known * _LINE
        drawn = np.frombuffer(noise[at : at + count * _LINE], np.uint8).reshape(-1, _LINE)
        edge = random_chars // lines + (np.arange(start, start + count) < random_chars % lines)
        random = (columns < edge[:, None]) & (columns < _LINE - 1)
        block = np.where(random, _ALPHABET[drawn & 63], rest).tobytes()
        made[start * _LINE : start * _LINE + len(block)] = block
    return bytes(made)
