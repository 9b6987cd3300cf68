"""Makes figures safe for inclusion in the report."""

from __future__ import annotations

import re
from xml.etree import ElementTree

NAMESPACE = "http://www.w3.org/2000/svg"
ELEMENTS = {"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath"}
REFERENCE = re.compile(r"(?:url\()?#")


def inline(text: str, title: str, prefix: str) -> str:
    """The drawing with a title, without active or loading elements, with ids made unique by ``prefix``.

    Raises ValueError for an element that a plain drawing does not need.
    """
    ElementTree.register_namespace("", NAMESPACE)
    root = ElementTree.fromstring(text)
    for element in root.iter():
        name = element.tag.removeprefix(f"{{{NAMESPACE}}}")
        if name not in ELEMENTS:
            raise ValueError(f"a drawing may not hold <{name}>")
        for key, value in list(element.attrib.items()):
            if key.startswith("on") or key.endswith("href") or key == "style":
                del element.attrib[key]
            elif key == "id":
                element.set(key, prefix + value)
            elif REFERENCE.match(value) and not re.fullmatch(r"#[0-9a-fA-F]{3,8}", value):
                element.set(key, value.replace("#", f"#{prefix}"))
    root.set("role", "img")
    root.set("aria-label", title)
    return ElementTree.tostring(root, encoding="unicode")
