"""Who uses whom: no circles of files, and the arrows of ARCHITECTURE.md are those of the code."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import grimp
import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))
CIRCULAR = {"tcp-model"}
"""Its files are one state machine in the order of Linux's files, which call each other."""

Module = tuple[str, ...]
Node = TypeVar("Node")


def circles(uses: Mapping[Node, Iterable[Node]]) -> list[set[Node]]:
    """Sets of nodes that reach each other (Tarjan's strongly connected components of two nodes or more)."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    path: list[Node] = []
    found: list[set[Node]] = []

    def visit(node: Node) -> None:
        order[node] = low[node] = len(order)
        path.append(node)
        for used in uses.get(node, ()):
            if used not in order:
                visit(used)
                low[node] = min(low[node], low[used])
            elif used in path:
                low[node] = min(low[node], order[used])
        if low[node] == order[node]:
            at = path.index(node)
            if len(path) - at > 1:
                found.append(set(path[at:]))
            del path[at:]

    for node in list(uses):
        if node not in order:
            visit(node)
    return found


def rust_uses(source: Path) -> dict[Module, set[Module]]:
    """For each file of a crate but its root, those that it names by a path; tests within files left out."""
    files = {file.relative_to(source).with_suffix("").parts: file for file in source.rglob("*.rs")}
    files = {module: file for module, file in files.items() if module not in (("lib",), ("main",))}

    def named(module: Module, text: str) -> Iterator[Module]:
        code = re.sub(r"//.*", "", text).partition("#[cfg(test)]")[0]
        for root, path in re.findall(r"\b(crate|(?:super::)*super)::([\w:]*(?:\{[^;]*)?)", code):
            above = module[: -(root.count("super"))] if root != "crate" else ()
            for names in _spread(path):
                full = (*above, *names)
                found = (full[:length] for length in range(len(full), 0, -1) if full[:length] in files)
                yield from itertools.islice(found, 1)

    return {module: set(named(module, file.read_text())) - {module} for module, file in files.items()}


def _spread(path: str) -> Iterator[Module]:
    """``a::{b, c::{d}}`` as (a, b) and (a, c, d)."""
    names: list[str] = []
    outer: list[int] = []
    for token in re.findall(r"\w+|[{},]", path):
        if token == "{":
            outer.append(len(names))
        elif token in ",}":
            yield tuple(names)
            if not outer:
                return
            del names[outer[-1] :]
            if token == "}":
                outer.pop()
        else:
            names.append(token)
    yield tuple(names)


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_the_files_of_a_crate_have_no_circle(crate: Path) -> None:
    found = circles(rust_uses(crate / "src"))
    if crate.name in CIRCULAR:
        assert found, f"{crate.name} has no circle any more: take it out of CIRCULAR"
    else:
        assert not found


def test_the_files_of_the_package_have_no_circle() -> None:
    graph = grimp.build_graph("wirepaint", cache_dir=None)
    uses = {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}
    assert not circles(uses)


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.rs").write_text("use crate::b::{self, c::{D, E}};\n")
    (tmp_path / "b.rs").write_text("// crate::a\n")
    (tmp_path / "b/c.rs").write_text("fn f() { super::super::a::g(); crate::a::g() }\n")
    uses = rust_uses(tmp_path)
    assert uses == {("a",): {("b",), ("b", "c")}, ("b",): set(), ("b", "c"): {("a",)}}
    assert circles(uses) == [{("a",), ("b", "c")}]


def test_architecture_lists_the_arrows_of_the_crates() -> None:
    def name(crate: str) -> str:
        return crate.removeprefix("wirepaint-")

    used = {}
    for crate in CRATES:
        cargo = tomllib.loads((crate / "Cargo.toml").read_text())
        names = [name(each) for each in cargo.get("dependencies", {}) if each.startswith("wirepaint-")]
        used[crate.name] = ", ".join(sorted(names)) or "none"
    assert used == _table("crate")


def test_architecture_lists_the_layers_of_the_package() -> None:
    [layers] = [
        contract["layers"]
        for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
            "contracts"
        ]
        if contract["type"] == "layers"
    ]
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = text.partition("<!-- layers -->\n```\n")[2].partition("```")[0]
    assert listed.splitlines() == layers


def _table(head: str) -> dict[str, str]:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.search(rf"^\| {head} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows, f"ARCHITECTURE.md has no table with the head {head}"
    return dict(re.findall(r"^\| ([\w-]+) \| (.*?) \|$", rows[1], re.MULTILINE))
