"""Finds the files that scripts name: imports of modules (also through import maps) and workers.

It scans the text and does not run or parse the scripts. Its results are used for pages
without a rehearsal, and to find the importer of a module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wirepaint.pages.references import absolute
from wirepaint.pages.room import Room
from wirepaint.pages.tags import Tag, tokens

_NAMED = re.compile(
    # import "x", import a from "x", export * from "x": names and signs in between, but no second import, so
    # that no text is scanned twice.
    r"""\b(?:import|export)\b(?:(?:(?!\b(?:im|ex)port\b)[\s\w$*{},])*?\bfrom\b)?\s*(?P<q>["'])(?P<static>[^"'\n]{1,500})(?P=q)"""
    r"""|\bimport\s*\(\s*(?P<r>["'`])(?P<dynamic>[^"'`\n$]{1,500})(?P=r)"""
    r"""|\bnew\s+URL\s*\(\s*(?P<s>["'`])(?P<beside>[^"'`\n$]{1,500})(?P=s)\s*,\s*import\.meta\.url"""
    r"""|(?:\bnew\s+(?:Shared)?Worker|\bimportScripts)\s*\(\s*(?P<t>["'`])(?P<worker>[^"'`\n$]{1,500})(?P=t)"""
)
_RELATIVE = ("./", "../", "/", "http:", "https:")


@dataclass
class ImportMap:
    """Absolute addresses of bare module names, from the part ``imports`` and every scope."""

    names: dict[str, str] = field(default_factory=dict)

    def resolve(self, name: str, base: str) -> str | None:
        """The address of the module ``name`` for a script at ``base``; None if unknown."""
        if name in self.names:
            return self.names[name]
        for at in range(len(name), 0, -1):
            if name[at - 1] == "/" and (target := self.names.get(name[:at])):
                return absolute(name[at:], target)
        return absolute(name, base) if name.startswith(_RELATIVE) else None

    def add(self, text: str, base: str) -> None:
        """Adds the JSON of an import map in a document at ``base``; ignores invalid maps."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, Mapping):
            return
        scopes = said.get("scopes")
        for part in (said.get("imports"), *(scopes.values() if isinstance(scopes, Mapping) else ())):
            for name, target in part.items() if isinstance(part, Mapping) else ():
                if isinstance(target, str) and (url := absolute(target, base)):
                    self.names.setdefault(name, url)


def in_script(text: str, url: str, document: str, known: ImportMap) -> Iterator[str]:
    """Addresses in a script at ``url`` that the document at ``document`` uses; with repetitions."""
    for found in _NAMED.finditer(text):
        named: str | None = None
        if name := found["static"] or found["dynamic"]:
            named = known.resolve(name, url)
        elif found["beside"]:
            named = absolute(found["beside"], url)
        elif found["worker"]:
            named = absolute(found["worker"], document)
        if named:
            yield named


def imports(text: str, url: str, known: ImportMap) -> Iterator[str]:
    """Addresses that a module at ``url`` imports before it runs."""
    for found in _NAMED.finditer(text):
        if (name := found["static"]) and (named := known.resolve(name, url)):
            yield named


def in_document(text: str, url: str, known: ImportMap, room: Room | None = None) -> Iterator[str]:
    """Addresses in the scripts within a document at ``url``; adds its import maps to ``known``."""
    for kind, script, base in _scripts(text, url, room):
        if kind == "importmap":
            known.add(script, base)
        else:
            yield from in_script(script, base, base, known)


def read_maps(text: str, url: str, known: ImportMap, room: Room | None = None) -> None:
    """Adds the import maps of a document at ``url`` to ``known``."""
    for kind, script, base in _scripts(text, url, room):
        if kind == "importmap":
            known.add(script, base)


def _scripts(text: str, url: str, room: Room | None) -> Iterator[tuple[str, str, str]]:
    """Type and text of each script within a document, and the base of its addresses."""
    base, kind = url, ""
    for token in tokens(text, room):
        if isinstance(token, Tag):
            attributes = token.attributes(text) if token.name in ("base", "script") else {}
            if token.name == "base" and (said := attributes.get("href")):
                base = absolute(said, url) or url
            kind = attributes.get("type", "").strip().lower()
        elif token.within == "script":
            yield kind, text[token.start : token.end], base
