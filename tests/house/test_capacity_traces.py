"""The capacity traces that ship are those that their script makes."""

from __future__ import annotations

import gzip
import importlib.util
import sys

import pytest

from wirepaint import catalogue

FOLDER = catalogue.ROOT / "capacity-traces"
SPEC = importlib.util.spec_from_file_location("make_traces", FOLDER / "make.py")
assert SPEC and SPEC.loader
make = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = make
SPEC.loader.exec_module(make)


@pytest.mark.parametrize("name", make.RADIOS)
def test_a_shipped_trace_is_what_the_script_makes(name: str) -> None:
    shipped = [int(line) for line in gzip.decompress((FOLDER / f"{name}.gz").read_bytes()).split()]
    assert shipped == make.opportunities(make.RADIOS[name])
    assert shipped[-1] == make.DURATION_MS


def test_every_shipped_trace_has_its_script() -> None:
    assert {path.name.removesuffix(".gz") for path in FOLDER.glob("*.gz")} == set(make.RADIOS)
