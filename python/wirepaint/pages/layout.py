"""Estimates the images and the largest text of a recorded document in the first view port.

This is no layout engine. It stacks boxes like block layout and rows of flex boxes. It uses the sizes,
paddings, positions and backgrounds from stylesheets, by selectors without pseudo-classes, and an average
width for the characters of text. It ignores authors' margins, floats, grids and changes by scripts. The
largest contentful paint depends on the visible part of a box (W3C Largest Contentful Paint). The estimate
is mostly good enough for it: the largest element of a page is by far larger than the rest.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from wirepaint.pages import references
from wirepaint.pages.room import Room
from wirepaint.pages.tags import Tag, srcset, tokens, unescape

_DEEPEST = 512
"""Deepest nesting of elements; Chromium too makes deeper ones siblings."""
_MOST_RULES, _MOST_MARKS = 100_000, 150_000
"""Largest numbers of rules, and of tags, attributes and texts of the document, that are read."""
_MOST_CHECKS = 1_000_000
"""Comparisons of rules with elements; after N, rules are ignored. No real page needs as many."""

CHARACTER_EM = 0.48
"""Average width of a character of running text, in font sizes."""
LINE_EM = 1.2
"""Default height of a line, in font sizes."""
_ROOT_PX = 16.0
_ENTROPY = 0.05
"""Bits per displayed pixel below which an image is a placeholder (Chromium, ``kMinimumEntropyForLCP``)."""

_VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
}  # fmt: skip
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html",
    "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
}  # fmt: skip
_UNSEEN = {
    "head", "noscript", "script", "style", "template", "title", "option", "select", "textarea", "video",
    "audio", "object",
}  # fmt: skip
_SELF_CLOSING = {"p", "li", "dt", "dd", "tr", "td", "th", "option"}
_FONT_EM = {"h1": 2.0, "h2": 1.5, "h3": 1.17, "h5": 0.83, "h6": 0.67, "small": 0.83}
_MARGIN_EM = {"h1": 0.67, "h2": 0.83, "h3": 1.0, "h4": 1.33, "h5": 1.67, "h6": 2.33, "p": 1.0, "ul": 1.0}
_KEPT = {
    "display", "position", "height", "min-height", "width", "padding", "padding-top", "padding-bottom",
    "font-size", "background", "background-image", "opacity", "visibility",
}  # fmt: skip
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_AT_RULE = re.compile(r"\s*+@")
_BREAK = re.compile(r"[();]")
_FONTS = re.compile(r"(?:^|[;{\s])font(?:-family)?\s*:")
_LENGTH = re.compile(r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))(px|rem|em|vh|vw|%|)$")
_SIMPLE = re.compile(r"([.#]?)([\w-]+)")
_WIDTH = re.compile(r"\(\s*+(min|max)-width\s*+:\s*+(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(px|em|rem)\s*+\)")


def counted(shown: float, natural: tuple[float, float] | None, size: int, viewport: tuple[int, int]) -> int:
    """The area that counts for the largest contentful paint: an image of ``size`` bytes, ``shown`` pixels.

    Pixels beyond the natural size do not count, nor placeholders, nor images that fill the view port.
    """
    if shown >= viewport[0] * viewport[1] or size * 8 < _ENTROPY * shown:
        return 0
    return round(min(shown, natural[0] * natural[1]) if natural else shown)


@dataclass
class Shown:
    """An image in the first view port; ``area`` as :func:`counted`."""

    visible: bool
    area: int


@dataclass
class Estimate:
    """The content of the first view port."""

    images: dict[int, Shown] = field(default_factory=dict)
    """By resource; the largest if an image occurs several times."""
    text_area: int = 0


@dataclass
class Picture:
    """An image that a document may show: its resource, natural size and bytes."""

    resource: int
    natural: tuple[float, float] | None
    size: int


Find = Callable[[str], Picture | None]
"""The image at an address, None if the page has none there."""


class Styles:
    """The rules of a document's stylesheets."""

    def __init__(self, viewport: tuple[int, int]) -> None:
        self._viewport = viewport
        self.names_fonts = False
        """True when a rule names font families."""
        self._rules: dict[str, list[_Rule]] = defaultdict(list)
        self._count = 0
        self._checks = 0

    def add(self, text: str, base: str) -> None:
        """Reads a stylesheet at ``base``."""
        for selectors, body in self._blocks(_COMMENT.sub("", text)):
            self.names_fonts |= _FONTS.search(body) is not None
            declared = _declarations(body, base)
            if not declared:
                continue
            for selector in selectors.split(",") if self._count < _MOST_RULES else ():
                compounds = [c for c in re.split(r"[\s>+~]+", selector.strip()) if c]
                if not compounds or re.search(r"[:\[*]", selector):
                    continue
                parts = [frozenset(_SIMPLE.findall(compound)) for compound in compounds]
                self._count += 1
                weight = (sum(3 if kind == "#" else 1 for part in parts for kind, _ in part), self._count)
                key = max(parts[-1], key=lambda simple: (simple[0] != "", simple), default=None)
                if key:
                    self._rules["".join(key)].append(_Rule(parts, weight, declared))

    def of(self, element: _Element, above: list[_Element]) -> dict[str, str]:
        """The declarations for an element; for each property the one with the highest weight."""
        found = [rule for name in element.names for rule in self._rules.get(name, ())]
        self._checks += len(found) + sum(len(above) for rule in found if len(rule.parts) > 1)
        if self._checks > _MOST_CHECKS:
            return {}
        fitting = sorted((r for r in found if r.fits(element, above)), key=lambda rule: rule.weight)
        return {key: value for rule in fitting for key, value in rule.declared.items()}

    def _blocks(self, text: str) -> Iterator[tuple[str, str]]:
        """Selectors and declarations of each rule that applies on this view port."""
        holds, start, close = [True], 0, 0
        for match in re.finditer(r"[{};]", text):
            at = match.end()
            if match[0] == "{":
                prelude = text[start : match.start()].strip()
                if close < at and (close := text.find("}", at)) < 0:
                    return  # no rule ends any more
                if prelude.startswith("@"):
                    holds.append(holds[-1] and self._holds(prelude))
                    start = at
                else:
                    if holds[-1]:
                        yield prelude, text[at:close]
                    holds.append(False)
                    start = at
            elif match[0] == "}":
                if len(holds) > 1:
                    holds.pop()
                start = at
            elif len(holds) == 1 or _AT_RULE.match(text, start):
                start = at

    def _holds(self, prelude: str) -> bool:
        if not prelude.startswith("@media"):
            return prelude.startswith(("@supports", "@layer"))
        if "print" in prelude and "screen" not in prelude:
            return False
        for bound, value, unit in _WIDTH.findall(prelude):
            limit = float(value) * (1 if unit == "px" else _ROOT_PX)
            if (self._viewport[0] < limit) if bound == "min" else (self._viewport[0] > limit):
                return False
        return True


@dataclass
class _Rule:
    parts: list[frozenset[tuple[str, str]]]
    weight: tuple[int, int]
    declared: dict[str, str]

    def fits(self, element: _Element, above: list[_Element]) -> bool:
        """True if the last compound matches the element, and the others match ancestors in order."""
        if not element.has(self.parts[-1]):
            return False
        wanted = list(self.parts[:-1])
        for other in reversed(above):
            if wanted and other.has(wanted[-1]):
                wanted.pop()
        return not wanted


def _declarations(body: str, base: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for declaration in _split(body):
        key, _, value = declaration.partition(":")
        key = key.strip().lower()
        if key in _KEPT:
            value = value.replace("!important", "").strip()
            if key.startswith("background"):
                urls = [reference.url for reference in references.in_css(value, base)]
                key, value = "background", urls[0] if urls else ""
            found[key] = value
    return found


def _split(body: str) -> Iterator[str]:
    """The declarations of a rule, split at semicolons outside of parentheses."""
    start, within = 0, False
    for match in _BREAK.finditer(body):
        if match[0] == ";" and not within:
            yield body[start : match.start()]
            start = match.end()
        within = match[0] == "(" or (within and match[0] != ")")
    yield body[start:]


def candidates(attributes: dict[str, str]) -> list[str]:
    """The addresses in ``srcset``."""
    text = attributes.get("srcset", "")
    return [text[start:end] for start, end, _ in srcset(text, 0, len(text))]


@dataclass
class _Element:
    tag: str
    names: set[str]
    style: dict[str, str] = field(default_factory=dict)
    font: float = _ROOT_PX
    block: bool = False
    unseen: bool = False
    hidden: bool = False
    row: bool = False
    start: float = 0.0
    lowest: float = 0.0
    text: float = 0.0
    """Pixels of its text, without that of inner blocks."""
    holder: _Element | None = None
    """The block that its text belongs to: itself, or the nearest around it."""

    def has(self, compound: frozenset[tuple[str, str]]) -> bool:
        return all(kind + name in self.names for kind, name in compound)


class Layout:
    """Lays out a document while it reads it; ``find`` knows the page's images."""

    def __init__(self, base: str, styles: Styles, viewport: tuple[int, int], find: Find) -> None:
        self.estimate = Estimate()
        self._base, self._styles, self._find = base, styles, find
        self._width, self._height = viewport
        root = _Element("", set(), block=True)
        root.holder = root
        self._open: list[_Element] = [root]
        self._tags: Counter[str] = Counter()
        """Names of the open elements."""
        self._y = self._x = self._line = 0.0
        self._sources: list[str] = []
        """Addresses from the ``source`` elements before an image in its ``picture``."""

    def read(self, text: str) -> None:
        """Lays out a whole document."""
        for token in tokens(text, Room(_MOST_MARKS)):
            if not isinstance(token, Tag):
                if not token.within:
                    self._text(unescape(text[token.start : token.end]))
            elif token.closing:
                self._end(token.name)
            else:
                self._start(token.name, token.attributes(text))
                if token.empty and token.name not in _VOID:
                    self._end(token.name)
        while len(self._open) > 1:
            self._close()

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _SELF_CLOSING and self._open[-1].tag == tag:
            self._close()
        above = self._open[-1]
        names = {tag, *(f".{name}" for name in attributes.get("class", "").split())}
        if attributes.get("id"):
            names.add(f"#{attributes['id']}")
        element = _Element(tag, names, unseen=above.unseen or tag in _UNSEEN, hidden=above.hidden)
        if not element.unseen:
            own = _declarations(attributes.get("style", ""), self._base)
            element.style = self._styles.of(element, self._open) | own
            self._begin(element, above, attributes)
        if tag == "picture":
            self._sources = []
        if tag == "source":
            self._sources += candidates(attributes)
        if tag == "img" and not element.unseen:
            self._image(element, attributes)
        if tag == "br":
            self._break()
        element.holder = element if element.block else above.holder
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(element)
            self._tags[tag] += 1

    def _end(self, tag: str) -> None:
        if self._tags[tag]:
            while self._close() != tag:
                pass

    def _text(self, data: str) -> None:
        element = self._open[-1]
        letters = len(" ".join(data.split()))
        if element.unseen or not letters:
            return
        if not element.hidden and self._y < self._height:
            block = element.holder or element
            block.text += letters * CHARACTER_EM * LINE_EM * element.font**2
        self._x += letters * CHARACTER_EM * element.font
        self._line = max(self._line, LINE_EM * element.font)

    def _begin(self, element: _Element, above: _Element, attributes: dict[str, str]) -> None:
        style = element.style
        size = style.get("font-size", "")
        element.font = above.font * _FONT_EM.get(element.tag, 1.0)
        element.font = self._length(size, above.font, above.font) or element.font
        display = style.get("display", "block" if element.tag in _BLOCKS else "inline")
        element.unseen = display == "none" or "hidden" in attributes
        if element.unseen:
            return
        element.hidden |= style.get("visibility") == "hidden" or style.get("opacity") in ("0", "0.0")
        element.block = display not in ("inline", "inline-block", "contents") or above.row
        element.row = display in ("flex", "inline-flex")
        if element.block:
            self._break()
            element.start = element.lowest = self._y
            self._y += self._edge(element, "top")

    def _edge(self, element: _Element, side: str) -> float:
        """Padding of the element above or below its content, plus the browser's default margin."""
        around = element.style.get("padding", "").split()
        value = around[0 if side == "top" or len(around) < 3 else 2] if around else ""
        value = element.style.get(f"padding-{side}", value)
        return (self._length(value, element.font) or 0.0) + _MARGIN_EM.get(element.tag, 0.0) * element.font

    def _close(self) -> str:
        element, above = self._open.pop(), self._open[-1]
        self._tags[element.tag] -= 1
        if element.unseen:
            return element.tag
        style = element.style
        if element.block:
            self._break()
            self._y = max(self._y, element.lowest) + self._edge(element, "bottom")
            least = self._length(style.get("min-height", ""), element.font) or 0.0
            self._y = max(self._y, element.start + least)
            if (height := self._length(style.get("height", ""), element.font)) is not None:
                self._y = element.start + max(height, least)
            if element.text and element.start < self._height:
                self.estimate.text_area = max(self.estimate.text_area, round(element.text))
        if style.get("background") and (picture := self._find(style["background"])):
            start = element.start if element.block else self._y
            end = self._y if element.block else start + self._line
            width = self._length(style.get("width", ""), element.font, self._width)
            self._show(picture, start, width or self._width, end - start, element.hidden)
        if element.block:
            out_of_flow = style.get("position") in ("absolute", "fixed")
            above.lowest = max(above.lowest, element.start if out_of_flow else self._y)
            if out_of_flow or above.row:
                self._y = element.start
        return element.tag

    def _image(self, element: _Element, attributes: dict[str, str]) -> None:
        named = [*self._sources, *candidates(attributes), attributes.get("src", "")]
        self._sources = []
        urls = [url for name in named if (url := references.absolute(name.strip(), self._base))]
        picture = next((found for url in urls if (found := self._find(url))), None)
        if picture is None:
            return
        width = self._length(element.style.get("width", ""), element.font, self._width)
        height = self._length(element.style.get("height", ""), element.font)
        width = width or self._length(attributes.get("width", ""), element.font, self._width)
        height = height or self._length(attributes.get("height", ""), element.font)
        natural = picture.natural or (width or 0.0, height or 0.0)
        shape = natural[1] / natural[0] if natural[0] else 1.0
        width = width or (height / shape if height and shape else natural[0])
        height = height or width * shape
        if width > self._width:
            width, height = self._width, height * self._width / width
        if self._x + width > self._width:
            self._break()
        self._show(picture, self._y, width, height, element.hidden)
        self._x += width
        self._line = max(self._line, height)

    def _show(self, picture: Picture, top: float, width: float, height: float, hidden: bool) -> None:
        below = max(0.0, min(height, self._height - top))
        shown = 0.0 if hidden else min(width, self._width) * below
        viewport = self._width, self._height
        area = counted(shown, picture.natural, picture.size, viewport)
        known = self.estimate.images.setdefault(picture.resource, Shown(False, 0))
        known.visible |= top < self._height and width > 0 and height > 0 and not hidden
        known.area = max(known.area, area)

    def _break(self) -> None:
        """Ends the line, and adds the lines that its content wraps to."""
        if self._x > 0:
            self._y += self._line * max(1, -(-self._x // self._width))
        self._x = self._line = 0.0

    def _length(self, value: str, font: float, whole: float | None = None) -> float | None:
        """A CSS length in pixels; None if it is not a length, or a percentage of an unknown length."""
        match = _LENGTH.match(value.strip())
        if not match:
            return None
        number, unit = float(match[1]), match[2]
        if unit == "%":
            return None if whole is None else number / 100 * whole
        scales = {"rem": _ROOT_PX, "em": font, "vh": self._height / 100, "vw": self._width / 100}
        return number * scales.get(unit, 1.0)
