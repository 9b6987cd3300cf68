"""Finds the tags and texts of a document with their positions, in one pass.

It is the tokenizer of the HTML standard (section 13.2.5) as far as positions need it. It scans no
character twice, so the time is linear in the length, even for broken markup; ``html.parser`` scans again
from each ``<`` of broken markup. Not done: the escaped states of scripts (a ``</script`` in a comment of a
script ends it).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from wirepaint.pages.room import Room

RAW = {"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript"}
"""Their content is text; that of ``noscript`` is for browsers without scripts."""

_MARKUP = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME = re.compile(r"[a-zA-Z][^ \t\n\f\r/>]*+")
_FIELD = re.compile(r"[ \t\n\f\r/]*+(=?[^ \t\n\f\r/>=]*+)[ \t\n\f\r]*+(=[ \t\n\f\r]*+)?")
_UNQUOTED = re.compile(r"[^ \t\n\f\r>]*+")
_COMMENT_END = re.compile(r"--!?>")
_RAW_END = {name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.I) for name in RAW}
_CANDIDATE = re.compile(r"[ \t\n\f\r,]*+([^ \t\n\f\r]++)")
_CANDIDATE_END = re.compile(r"(?:[^,(]|\([^)]*+(?:\)|\Z))*+")


class Field(NamedTuple):
    """An attribute; ``start`` and ``end`` enclose its value as written, quotes left out."""

    name: str
    start: int
    end: int


class Text(NamedTuple):
    """Text between tags; ``within`` names the raw-text element (``RAW``) around it, or is empty."""

    start: int
    end: int
    within: str


@dataclass(slots=True)
class Tag:
    """``text[start:end]`` is the tag; ``name`` is in lower case."""

    name: str
    start: int
    end: int
    closing: bool
    empty: bool
    """It ends with ``/>``."""
    fields: list[Field]

    def attributes(self, text: str) -> dict[str, str]:
        """Values by name, character references resolved; the first if a name occurs several times."""
        values: dict[str, str] = {}
        for name, start, end in self.fields:
            values.setdefault(name, unescape(text[start:end]))
        return values


def unescape(text: str) -> str:
    """``text`` with its character references resolved; unchanged if one has thousands of digits."""
    try:
        return html.unescape(text) if "&" in text else text
    except ValueError:
        return text


def tokens(text: str, room: Room | None = None) -> Iterator[Tag | Text]:
    """Tags and texts in order, as far as there is room; without comments and declarations."""
    room = room or Room()
    at = foreign = 0
    while room.marks > 0 and (found := _MARKUP.search(text, at)) is not None:
        start = found.start()
        if start > at:
            yield Text(at, start, "")
        closing = text[start + 1] == "/"
        name = _NAME.match(text, start + 1 + closing)
        if name is None:
            at = _after_other(text, start)
            continue
        tag = _tag(text, start, name, closing, room)
        if tag is None:  # the document, or the room, ends within it
            return
        yield tag
        at = tag.end
        if tag.name in ("svg", "math"):
            foreign = max(0, foreign - 1) if closing else foreign + (not tag.empty)
        if closing or (foreign and (tag.empty or tag.name == "title")):
            continue
        if tag.name in RAW:
            ends = _RAW_END[tag.name].search(text, at)
            at = ends.start() if ends else len(text)
            if at > tag.end:
                yield Text(tag.end, at, tag.name)
        elif tag.name == "plaintext":
            break
    if at < len(text) and room.marks > 0:
        yield Text(at, len(text), "")


def srcset(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Start and end of each address of a ``srcset``, and the end of its descriptors."""
    while (found := _CANDIDATE.match(text, start, end)) is not None:
        begin, start = found.span(1)
        bare = begin + len(found[1].rstrip(","))
        if bare == start and (rest := _CANDIDATE_END.match(text, start, end)):
            start = rest.end()
            yield begin, bare, start
        elif bare > begin:
            yield begin, bare, bare


def _after_other(text: str, start: int) -> int:
    """The end of the comment, declaration or bogus markup that begins at ``start``."""
    if text.startswith("<!--", start):
        ends = _COMMENT_END.search(text, start + 2)
        return ends.end() if ends else len(text)
    closed = text.find(">", start)
    return closed + 1 if closed >= 0 else len(text)


def _tag(text: str, start: int, name: re.Match[str], closing: bool, room: Room) -> Tag | None:
    at, fields = name.end(), []
    room.marks -= 2  # with the text before it
    while room.marks > 0:
        found = _FIELD.match(text, at)
        assert found is not None  # it matches nothing, too
        at = found.end()
        written = found[1]
        if not written and found[2] is None:
            break
        begin = end = at
        if found[2] is not None:
            if (quote := text[at : at + 1]) in ('"', "'"):
                begin, end = at + 1, text.find(quote, at + 1)
                if end < 0:
                    return None
                at = end + 1
            else:
                value = _UNQUOTED.match(text, at)
                at = end = value.end() if value else at
        fields.append(Field(written.lower(), begin, end))
        room.marks -= 1
    if room.marks <= 0 or at >= len(text):
        return None
    empty = text[at - 1] == "/" and not (fields and fields[-1].end == at)
    return Tag(name[0].lower(), start, at + 1, closing, empty, fields)
