"""Stored bodies: files of exactly the sizes (on the wire and decoded) in the index of their page."""

from __future__ import annotations

import hashlib
from pathlib import Path

from wirepaint import files
from wirepaint.errors import UsageError
from wirepaint.pages import codings
from wirepaint.pages.model import BODIES, INDEX, Resource, parsed, read_index


def decoded(file: Path, wire_bytes: int, decoded_bytes: int, coding: str | None, place: str = "") -> bytes:
    """The decoded body in ``file``; raises :class:`UsageError` at ``place``, by default the file.

    It has exactly the stated numbers of bytes before and after decoding.
    """
    place = place or str(file)
    wire = _stored(file, wire_bytes, place)
    accepted = f"a body of {decoded_bytes} bytes in the coding {coding or 'identity'}, as {INDEX} says"
    try:
        plain = codings.decoded(wire, coding or "", decoded_bytes)
    except OverflowError:
        raise UsageError(place, "a larger body", accepted) from None
    except ValueError as error:
        raise UsageError(place, f"what is not in that coding ({error})", accepted) from None
    if len(plain) != decoded_bytes:
        raise UsageError(place, f"a body of {len(plain)} bytes", accepted)
    return plain


def check(page_dir: Path, resource: Resource) -> None:
    """Raises :class:`UsageError` unless the stored body of ``resource`` is what the index says."""
    file = stored(page_dir, resource)
    place = f"{page_dir / INDEX}: resources[{resource.id}].body"
    digest = hashlib.sha256(_stored(file, resource.wire_bytes, place)).hexdigest()
    if digest != resource.body:
        raise UsageError(place, digest, f"a file of this hash at {file}")
    decoded(file, resource.wire_bytes, resource.decoded_bytes, resource.header("content-encoding"), place)


def copy(page_dir: Path, target: Path) -> None:
    """Copies the index and the bodies that it names into the folder ``target``, and nothing else.

    A damaged body is left out; :func:`wirepaint.pages.prepare.prepare` reports it.
    """
    index = read_index(page_dir)
    (target / BODIES).mkdir()
    for resource in parsed(index, page_dir / INDEX).resources:
        if resource.body and not (target / BODIES / resource.body).exists():
            try:
                wire = _stored(stored(page_dir, resource), resource.wire_bytes, "")
            except UsageError:
                continue
            (target / BODIES / resource.body).write_bytes(wire)
    (target / INDEX).write_bytes(index)


def stored(page_dir: Path, resource: Resource) -> Path:
    """The file of a stored body; raises :class:`UsageError` for one that is not in the folder of the page."""
    file = page_dir / BODIES / (resource.body or "")
    if not file.resolve().is_relative_to(page_dir.resolve()):
        place = f"{page_dir / INDEX}: resources[{resource.id}].body"
        raise UsageError(place, f"a link out of the folder, {file}", "a file in the folder of the page")
    return file


def _stored(file: Path, size: int, place: str) -> bytes:
    wire = files.content(file, size, f"a file of {size} bytes at {file}", place)
    if len(wire) < size:
        raise UsageError(place, f"{len(wire)} bytes", f"a file of {size} bytes at {file}")
    return wire
