"""Text of an exact decoded size that encodes to a given size on the wire.

Filler lines hold random characters up to a column and one sentence after it. The column sets how
well the text compresses; the share of random characters is the same all along, as a decoder or a
parser that works while bytes arrive would meet it in real text.
"""

from __future__ import annotations

import hashlib

import numpy as np

from wirepaint.pages.codings import Coding, encode, pad_to

_LINE = 64
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._", np.uint8)
_SENTENCE = b"The quick brown fox jumps over the lazy dog while pages load.  "
_LEVEL = {"identity": 0, "gzip": 6, "br": 4}
_ATTEMPTS = 12
_TOLERANCE = 48
"""Bytes below the wanted size at which the search stops; padding in the coding fills the rest."""


def random_bytes(seed: str, size: int) -> bytes:
    """``size`` bytes that depend on ``seed`` alone."""
    return hashlib.shake_128(seed.encode()).digest(size)


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

    ``weights`` are shares of the gaps between the parts; without them they are alike.
    Returns the text and the encoding; both are longer than asked where ``parts`` alone are, or
    where ``decoded`` bytes cannot be encoded in ``wire`` bytes.
    """
    room = max(0, decoded - sum(map(len, parts)))
    gaps = len(parts) - 1
    weights = weights or [1] * gaps
    passed = [sum(weights[:gap]) for gap in range(gaps + 1)]
    lines = -(-room // _LINE)
    noise = _ALPHABET[np.frombuffer(random_bytes(seed, lines * _LINE), np.uint8) & 63].reshape(lines, _LINE)
    columns = np.arange(_LINE)[None, :]
    sentence = np.frombuffer(_SENTENCE + ending, np.uint8)[None, :]

    def text(random_chars: int) -> bytes:
        if not room:
            return b"".join(parts)
        edge = np.full((lines, 1), random_chars // lines)
        edge[: random_chars % lines] += 1
        filler = np.where((columns < edge) & (columns < _LINE - 1), noise, sentence).tobytes()[:room]
        cuts = [room * weight // passed[-1] for weight in passed]
        joined = [parts[0]]
        for gap in range(gaps):
            joined += (filler[cuts[gap] : cuts[gap + 1]], parts[gap + 1])
        return b"".join(joined)

    if coding == "identity":
        result = text(room // 2)
        return result, result
    level = _LEVEL[coding]
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
    return best, pad_to(best, coding, level, wire, best_encoded)
