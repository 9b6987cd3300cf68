"""What a failure counts for while the machine's CPU time is stolen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.mark.parametrize(
    ("folder", "allowed", "raised", "ended"),
    [
        ("system", -1, "AssertionError", "skipped"),
        ("system", 2, "AssertionError", "failed"),
        ("system", -1, "OSError", "failed"),
        ("house", -1, "AssertionError", "failed"),
    ],
    ids=["disturbed", "calm", "no assertion", "not in real time"],
)
def test_a_failure_of_a_disturbed_machine_is_skipped_aloud(
    folder: str, allowed: int, raised: str, ended: str, tmp_path: Path
) -> None:
    limit = f"from wirepaint.runners.testbed import validity\nvalidity.STEAL_SHARE = {allowed}\n"
    (tmp_path / "conftest.py").write_text(f"{limit}exec(open({str(CONFTEST)!r}).read())\n")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "test_it.py").write_text(f"def test_it():\n    raise {raised}('too late')\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    assert f"1 {ended}" in said, said
    assert f"{raised}: too late" in said
    assert ("of the CPU time was stolen meanwhile" in said) is (ended == "skipped")
