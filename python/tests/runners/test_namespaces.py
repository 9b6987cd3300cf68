"""Settings of a namespace are set, and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.runners.testbed import namespaces


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(namespaces, "_SYSCTLS", tmp_path)
    (tmp_path / "net" / "ipv4").mkdir(parents=True)
    (tmp_path / "net" / "ipv4" / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    return tmp_path


@pytest.mark.parametrize("asked", ["1 2 3", "1\t2\t3", " 1  2   3\n"])
def test_a_setting_of_several_numbers_may_be_spaced_as_one_likes(kernel: Path, asked: str):
    in_force = namespaces.set_sysctls({"net.ipv4.tcp_rmem": asked})
    assert in_force == {"net.ipv4.tcp_rmem": "1 2 3"}
    assert (kernel / "net" / "ipv4" / "tcp_rmem").read_text() == asked


def test_a_value_that_the_kernel_changes_is_refused(kernel: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Path, "write_text", lambda *_: 0)
    with pytest.raises(OSError, match="asked for 1 2 3, the kernel took 4096 131072 6291456"):
        namespaces.set_sysctls({"net.ipv4.tcp_rmem": "1\t2 3"})


def test_a_setting_that_namespaces_do_not_have_is_named(kernel: Path):
    with pytest.raises(OSError, match=r"sysctl net\.ipv4\.tcp_none: a network namespace"):
        namespaces.set_sysctls({"net.ipv4.tcp_none": "1"})
    assert not (kernel / "net" / "ipv4" / "tcp_none").exists()
