"""Captures without a testbed: what a browser may write as secrets, and a machine without dumpcap."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wirepaint import doctor
from wirepaint.errors import MachineLacks
from wirepaint.results import captures
from wirepaint.runners import backends
from wirepaint.runners.testbed import capture

LINE = b"CLIENT_TRAFFIC_SECRET_0 " + b"0a" * 32 + b" " + b"1b" * 32 + b"\n"


def test_whole_lines_of_a_key_log_are_taken_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "secrets.txt"
    file.write_bytes(LINE + b"# a comment\n" + b"\0" * 100 + b"\n" + LINE + LINE[:-20])
    assert capture.key_log(file) == LINE + LINE


def test_a_key_log_that_is_missing_or_no_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "secrets.txt").write_bytes(LINE)
    (tmp_path / "link").symlink_to("secrets.txt")
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "link", "pipe"):
        assert capture.key_log(tmp_path / name) == b""


def test_without_dumpcap_nothing_begins_and_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineLacks, match=r"dumpcap is not installed.* apt-get install wireshark-common"):
        backends.named("testbed", captures=True)
    assert [one.name for one in backends.named("testbed")] == ["testbed"]
    [found] = doctor._captures()
    assert found.level == "note" and "wireshark-common" in found.remedy


def test_the_doctor_names_the_version() -> None:
    [found] = doctor._captures()
    assert found.level == "ok" and found.found.startswith("Dumpcap (Wireshark) ")


def test_only_names_that_a_run_gives_its_captures_are_captures() -> None:
    names = [captures.Name("anna", "client"), captures.Name("anna-2", "server")]
    others = [
        "tcp.parquet",
        "captures/anna.client.raw",
        "captures/../anna.client.pcapng",
        "captures/a.b.client.pcapng",
    ]
    assert captures.among([*others, *(name.file for name in names)]) == names
