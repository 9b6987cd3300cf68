"""CI's time is limited: slow tests that it does not reach are skipped by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import reached

TESTS = """
import pytest
@pytest.fixture(scope="module")
def made():
    raise OSError("this takes long")
@pytest.mark.slow
def test_slow(made):
    pass
def test_quick():
    pass
"""


@pytest.mark.parametrize(
    ("until_s", "counts"),
    [(-1, ["passed", "skipped"]), (600, ["passed", "error"]), (None, ["passed", "error"])],
)
def test_a_slow_test_that_would_begin_too_late_is_skipped_by_name(
    until_s: float | None, counts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-p", "reached"]
    argv = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    env = os.environ | {"PYTHONPATH": str(Path(reached.__file__).parent)}
    env.pop("SLOW_TESTS_UNTIL", None)
    if until_s is not None:
        env["SLOW_TESTS_UNTIL"] = str(time.time() + until_s)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert re.findall("1 (passed|skipped|error)", done.stdout.splitlines()[-1]) == counts, done.stdout
    assert ("test_it.py::test_slow: CI had no time left for it" in done.stdout) == (until_s == -1)
