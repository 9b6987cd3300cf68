"""The lock of a results folder and of the testbed."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.results.lock import Lock

ONE = "one command at a time"


def test_a_lock_that_another_command_has_is_refused_with_its_owner(tmp_path: Path):
    first = Lock(tmp_path / "lock", "the testbed", ONE)
    with pytest.raises(
        UsageError, match=r"the testbed: found it in use by process \d+ \(.*accepted: one command"
    ):
        Lock(tmp_path / "lock", "the testbed", ONE)
    first.release()
    Lock(tmp_path / "lock", "the testbed", ONE).release()


@pytest.mark.parametrize("wait_s", [60, math.inf])
def test_one_who_waits_gets_the_lock_when_it_is_free_and_says_for_whom_it_waits(
    tmp_path: Path, capsys, wait_s: float
):
    first = Lock(tmp_path / "lock", "the testbed", ONE)
    free = threading.Timer(2.0, first.release)
    free.start()
    begin = time.monotonic()
    second = Lock(tmp_path / "lock", "the testbed", ONE, wait_s)
    assert 1.5 < time.monotonic() - begin < 60
    assert capsys.readouterr().err.count("the testbed: found it in use by process") == 1
    with pytest.raises(UsageError):
        Lock(tmp_path / "lock", "the testbed", ONE)
    second.release()


def test_one_who_waits_gives_up_after_the_bound(tmp_path: Path):
    first = Lock(tmp_path / "lock", "the testbed", ONE)
    with pytest.raises(UsageError, match="in use by process"):
        Lock(tmp_path / "lock", "the testbed", ONE, wait_s=1.5)
    first.release()
