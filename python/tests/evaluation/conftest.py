"""A kernel and algorithms that do not depend on the machine."""

from __future__ import annotations

import pytest

from wirepaint import catalogue
from wirepaint.evaluation import congestion


@pytest.fixture(autouse=True)
def known_controls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(congestion, "of_kernel", lambda: ("reno", "cubic", "bbr"))
    parameters = {"fld_threshold": {"min": 0, "max": 2**40, "default": 4194304, "summary": "bytes"}}
    parameters["fld_ecn"] = {
        "min": 0,
        "max": 1,
        "default": 0,
        "summary": "0 halve, 1 count as one lost segment",
    }
    shared = {"tcb_share_rtt": {"min": 0, "max": 1, "default": 0, "summary": "RTT too", "simulated": True}}
    ours = {"fld": parameters, "std": {}, "tcbt": shared}
    monkeypatch.setattr(congestion, "ours", lambda: ours)


LTE = """
title = "LTE"
[down]
rate = "25 Mbit/s"
delay = "13 ms"
[up]
rate = "25 Mbit/s"
delay = "13 ms"
"""


@pytest.fixture(autouse=True)
def small_catalogue(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path_factory.mktemp("catalogue")
    (root / "networks").mkdir()
    (root / "networks" / "lte.toml").write_text(LTE)
    (root / "networks" / "3g.toml").write_text(LTE.replace("25 Mbit", "7 Mbit").replace("13 ms", "25 ms"))
    (root / "capacity-traces").mkdir()
    (root / "capacity-traces" / "steps.down").write_text("0\n0\n500\n1000\n")
    monkeypatch.setattr(catalogue, "ROOT", root)
