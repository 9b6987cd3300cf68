"""Benchmarks end as their users expect; what they measure is not measured here."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from wirepaint.errors import RunFailed

BENCHES = Path(__file__).parents[2] / "benches"


def bench(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHES))
    monkeypatch.setattr("sys.argv", [name, *arguments])
    return importlib.import_module(name)


def test_help_is_printed_without_measuring_anything(monkeypatch, capsys):
    module = bench("congestion", monkeypatch, "--help")
    monkeypatch.setattr(module, "rows", lambda: pytest.fail("it measures"))
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("broken", [True, False])
def test_a_group_that_failed_is_not_hidden_by_those_that_went_well(broken: bool, monkeypatch, capsys):
    module = bench("emulator", monkeypatch, "--json")

    def rows(_: float):
        yield {"tool": "wirepaint", "case": "a case"}
        if broken:
            raise RunFailed("the emulator ended by itself")

    def others(_: float):
        yield {"tool": "bare veth", "case": "a case"}

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(module, "emulator_rows", rows)
    monkeypatch.setattr(module, "bare_rows", others)
    monkeypatch.setattr(module, "throughput_rows", others)
    monkeypatch.setattr(module.mahimahi, "installed", lambda: False)
    assert module.main() == int(broken)
    out, err = capsys.readouterr()
    assert out.count("a case") == 3
    assert ("rows: the emulator ended by itself" in err) == broken
