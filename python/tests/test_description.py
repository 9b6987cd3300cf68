"""The types of the run description are those of the document's schema."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wirepaint.dataplane import description
from wirepaint.schemas import FOLDER

SCHEMA = json.loads((FOLDER / "run.schema.json").read_text())
TYPES = [one for one in vars(description).values() if isinstance(one, type) and dataclasses.is_dataclass(one)]
WAY = {"capacity": {"kind": "unlimited"}, "delay_ns": 0, "queue": {"kind": "droptail"}}


def properties(name: str) -> dict[str, Any]:
    of_proxies = {one["properties"]["kind"]["const"]: one for one in SCHEMA["$defs"]["Proxy"]["oneOf"]}
    known = SCHEMA["$defs"] | {"Run": SCHEMA} | {kind.title(): one for kind, one in of_proxies.items()}
    return known[name]["properties"]


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.__name__)
def test_each_type_has_the_keys_of_its_definition(of: type) -> None:
    assert set(description.names(of)) == properties(of.__name__).keys()


def test_defaults_are_those_that_the_schema_states() -> None:
    """Where the schema states none, Python writes the value into each document."""
    told = [
        (of.__name__, field.name, field.default, properties(of.__name__)[field.name]["default"])
        for of in TYPES
        for field in dataclasses.fields(of)
        if field.name in description.names(of)
        if field.default is not dataclasses.MISSING and "default" in properties(of.__name__)[field.name]
    ]
    assert len(told) > 15
    assert [one for one in told if one[2] != one[3]] == []


def test_a_document_is_what_the_schema_says(tmp_path: Path) -> None:
    run = description.Run(
        id="a",
        trace_dir=tmp_path,
        work_dir=tmp_path,
        **description.one_path(WAY, WAY, client="std", server="std"),
        congestion=[description.Congestion(algorithm="std", name="std")],
        flows=[description.Flow(kind={"kind": "bulk", "bytes": 1}, through=["access"])],
        reroutes=[description.Reroute(at_ns=1, group="", through=[])],
    )
    jsonschema.validate(run.document(), SCHEMA)
    assert json.loads(run.write().read_text()) == run.document()
