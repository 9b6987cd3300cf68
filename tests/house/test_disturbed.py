"""The meaning of a failure while others use the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import disturbed
import pytest

from wirepaint.runners.testbed.host import Counters

TIMED = "import pytest\n@pytest.mark.timed\n"


def ended(
    folder: Path, code: str, *, machine: str = "disturbed", more: str = ""
) -> tuple[dict[str, int], int, str]:
    """What a run of ``code`` counted, its exit code and what it said, on a machine that is so."""
    why = "'half of the CPU time was stolen'" if machine == "disturbed" else "None"
    settings = f"import disturbed\ndisturbed.disturbance = lambda counters: {why}\ndisturbed.LOOK_S = 0.01\n"
    settings += "disturbed.PATIENCE_S = 0.02\n"
    (folder / "conftest.py").write_text(settings + more)
    (folder / "test_it.py").write_text(code)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "disturbed", str(folder)]
    env = os.environ | {"PYTHONPATH": str(Path(disturbed.__file__).parent)}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env, cwd=folder)
    counts = re.findall(r"(\d+) (passed|failed|repeated|undecided)", done.stdout.splitlines()[-1])
    return {word: int(number) for number, word in counts}, done.returncode, done.stdout


@pytest.mark.parametrize(
    ("mark", "machine", "raised"),
    [
        (TIMED, "calm", "AssertionError"),
        ("", "disturbed", "AssertionError"),
        (TIMED, "disturbed", "OSError"),
    ],
    ids=["calm", "not timed", "no assertion"],
)
def test_a_failure_is_a_failure(mark: str, machine: str, raised: str, tmp_path: Path) -> None:
    code = f"{mark}def test_it():\n    raise {raised}('too late')\n"
    counts, status, _ = ended(tmp_path, code, machine=machine)
    assert (counts, status) == ({"failed": 1}, 1)


def test_a_disturbed_test_is_repeated_with_what_it_shares_until_it_is_decided(tmp_path: Path) -> None:
    code = "import pytest\nmade = []\n@pytest.fixture(scope='module')\ndef shared():\n    made.append(1)\n"
    code += "@pytest.mark.timed\ndef test_it(shared, tmp_path):\n    assert len(made) == 2\n"
    code += "def test_next(shared):\n    assert len(made) == 2\n"
    counts, status, said = ended(tmp_path, code)
    assert (counts, status) == ({"passed": 2, "repeated": 1}, 0)
    assert "test_it: half of the CPU time was stolen: AssertionError: assert 1 == 2" in said


def test_a_test_that_sees_a_disturbance_itself_is_repeated(tmp_path: Path) -> None:
    code = "from disturbed import Disturbed\nseen = []\n" + TIMED + "def test_it():\n    seen.append(1)\n"
    code += "    if len(seen) < 3:\n        raise Disturbed('25 ms late')\n"
    counts, status, said = ended(tmp_path, code, machine="calm")
    assert (counts, status) == ({"passed": 1, "repeated": 2}, 0)
    assert "test_it: 25 ms late" in said


def test_what_disturbed_a_shared_fixture_excuses_the_test(tmp_path: Path) -> None:
    code = "import disturbed, pytest\n@pytest.fixture(scope='module')\ndef shared():\n"
    code += "    disturbed.disturbance = lambda counters: 'others ran'\n"
    code += "@pytest.mark.timed\ndef test_it(shared):\n"
    code += "    disturbed.disturbance = lambda counters: None\n    assert False\n"
    counts, status, _ = ended(tmp_path, code, machine="calm")
    assert (counts, status) == ({"repeated": 2, "undecided": 1}, 0)


@pytest.mark.parametrize(("undecided", "status"), [(3, 0), (4, 1)])
def test_more_than_three_undecided_tests_fail_the_run(undecided: int, status: int, tmp_path: Path) -> None:
    code = "import pytest\n" + f"@pytest.mark.parametrize('n', range({undecided}))\n@pytest.mark.timed\n"
    code += "def test_it(n):\n    raise AssertionError(f'too late: {n}')\n"
    counts, found, said = ended(tmp_path, code)
    assert counts == {"repeated": 2 * undecided, "undecided": undecided}
    assert found == status
    assert "half of the CPU time was stolen: AssertionError: too late: 2" in said, "with its failure"
    assert ("More than 3 tests are undecided: the run fails." in said) is (status == 1)


def counters(*, steal: float = 0.0, tasks: float = 5.0) -> Counters:
    """10 s of two cores, of which the tests used 5 s."""
    return Counters(10.0, 2, {"tests": 5.0}, 0.0, 0.0, tasks, steal, None)


def test_what_makes_a_run_suspect_disturbs_a_test() -> None:
    assert disturbed.disturbance(counters(steal=0.19, tasks=9.9)) is None
    assert disturbed.disturbance(counters(steal=0.3)) == "1.5% of the CPU time was stolen"
    assert disturbed.disturbance(counters(tasks=11.0)) == "30.0% of the CPU time was used by others"


def test_what_the_tests_own_programs_use_is_not_used_by_others() -> None:
    watch = disturbed.Watch()
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    seen = watch._witness.stop()
    assert seen.parts["tests"] >= 0.45  # in ticks of the kernel's clock
