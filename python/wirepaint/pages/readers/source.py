"""Reads the bytes of a file, plain or gzip, in order and up to the limit of its format."""

from __future__ import annotations

import zlib
from typing import IO
from zipfile import BadZipFile

from wirepaint.errors import UsageError

_BLOCK = 2**18
_PIECE = 2**15
"""Bytes per read. It is small, since the data after each member of a gzip file is copied."""
_LINE = 2**16
_LINES = 2_500_000
_MEMBERS = 200_000
"""Largest number of members of a gzip file: a web archive has one for each record."""


class Source:
    """Reads ``file`` once from its start to its end, unpacking gzip of several members.

    ``place`` and ``accepted`` are for errors: a broken file always raises
    :class:`UsageError`. ``limit`` bounds the unpacked bytes; ``left`` is the rest of it.
    Without ``unpack`` gzip is not unpacked.
    """

    def __init__(
        self, file: IO[bytes], place: str, limit: int, accepted: str, *, unpack: bool = True
    ) -> None:
        self.place, self.accepted = place, accepted
        self._file, self.left = file, limit
        self._buffer, self._at = b"", 0
        self._members, self._lines = 1, 0
        self._input = self._read()
        packed = unpack and self._input[:2] == b"\x1f\x8b"
        self._decoder = zlib.decompressobj(31) if packed else None

    def refused(self, found: str) -> UsageError:
        """The error for ``found`` in the file."""
        return UsageError(self.place, found, self.accepted)

    def peek(self, size: int) -> bytes:
        """The next bytes, without consuming them; fewer than ``size`` at the end."""
        while len(self._buffer) - self._at < size and self._fill():
            pass
        return self._buffer[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end."""
        parts: list[bytes] = []
        while size > 0 and (self._at < len(self._buffer) or self._fill()):
            part = self._buffer[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def line(self) -> bytes:
        """The next line with its line end; empty at the end of the file."""
        self._lines += 1
        if self._lines > _LINES:
            raise self.refused(f"more than {_LINES:,} lines")
        if (end := self._buffer.find(b"\n", self._at) + 1) > 0:
            line, self._at = self._buffer[self._at : end], end
            return line
        self.peek(1)
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if len(self._buffer) - self._at > _LINE:
                raise self.refused(f"a line of more than {_LINE} bytes")
            if not self._fill():
                end = len(self._buffer) - 1
                break
        return self.read(end + 1 - self._at)

    def _fill(self) -> bool:
        """Unpacks some more; False at the end."""
        more = self._next()
        if len(more) > self.left:
            raise self.refused("more than that")
        self.left -= len(more)
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return bool(more)

    def _next(self) -> bytes:
        if self._decoder is None:
            more, self._input = self._input, b""
            return more or self._read()
        while True:
            if self._decoder.eof and not self._next_member():
                return b""
            self._input = self._input or self._read()
            if not self._input:
                raise self.refused("gzip that ends too early")
            try:
                more = self._decoder.decompress(self._input, _BLOCK)
            except zlib.error as error:
                raise self.refused(f"broken gzip ({error})") from None
            self._input = self._decoder.unconsumed_tail
            if more:
                return more

    def _next_member(self) -> bool:
        """Begins the next member of the gzip file, after padding of zeros; False at the end."""
        rest = self._decoder.unused_data.lstrip(b"\0") if self._decoder else b""
        while len(rest) < 2 and (more := self._read()):
            rest = (rest + more).lstrip(b"\0")
        if rest and rest[:2] != b"\x1f\x8b":
            raise self.refused("gzip with something else after it")
        self._members += 1
        if self._members > _MEMBERS:
            raise self.refused(f"gzip of more than {_MEMBERS:,} members")
        if rest:
            self._input, self._decoder = rest, zlib.decompressobj(31)
        return bool(rest)

    def _read(self) -> bytes:
        try:
            return self._file.read(_PIECE) or b""
        except (OSError, EOFError, zlib.error, BadZipFile, RuntimeError, NotImplementedError) as error:
            raise self.refused(f"a file that cannot be read ({error})") from None
