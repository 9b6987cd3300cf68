"""Every acknowledgement script holds in the running kernel: the same windows at the same acknowledgements.

The kernel's arm is wirepaint.cc.kernel. What a path cannot carry out is named there with its reason.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirepaint.cc import testing
from wirepaint.cc.outcome import Outcome

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.name for path in (ROOT / "congestion/scripts").glob("*.ack"))
GUIDE = ROOT / "docs/guide/write-a-congestion-control.md"


def in_both_arms(path: Path) -> tuple[Outcome, Outcome, list[str]]:
    """How a script went natively and in the kernel, and what is said of differences."""
    timetable, native = testing.play(str(path))
    assert not native.unreadable, native.unreadable
    from wirepaint.cc import kernel

    outcome = kernel.carry_out({path.name: timetable}, lambda done, total: None)[path.name]
    one = testing.Tested("", str(path), {"native": native, "kernel": outcome}, timetable["exchange"])
    return native, outcome, [*testing.dialogue(one, "native"), *testing.dialogue(one, "kernel")]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_holds_in_the_kernel(root: None, script: str) -> None:
    native, kernel, said = in_both_arms(ROOT / "congestion/scripts" / script)
    assert native.passed and kernel.passed, "\n".join(said)
    assert kernel.checks or kernel.skipped


def test_a_wrong_expectation_is_found_in_the_kernel(root: None, tmp_path: Path) -> None:
    """The arm can fail: natively this script holds, because the native value is put in its place."""
    script = tmp_path / "std-1.ack"
    script.write_text("cc std\nopen iw=10 after_idle=0\nwrite bulk\nround => cwnd 20\nround => cwnd 40\n")
    timetable, native = testing.play(str(script))
    assert native.passed
    timetable["transfers"][0]["checks"][-1]["expected"] = "50"
    from wirepaint.cc import kernel

    outcome = kernel.carry_out({"std-1.ack": timetable}, lambda done, total: None)["std-1.ack"]
    assert [(d.line, d.key, d.expected, d.found) for d in outcome.differences] == [(5, "cwnd", "50", "40")]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The guide's congestion control and script, as its reader would save them."""
    text = GUIDE.read_text()
    for language, file in (("c", "gentle.c"), ("ack", "gentle-1.ack")):
        [block] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / file).write_text(block)
    return tmp_path / "gentle.c"


def test_the_example_of_the_guide_holds_in_the_kernel(root: None, example: Path) -> None:
    native, kernel, said = in_both_arms(example.parent / "gentle-1.ack")
    assert native.passed and kernel.passed, "\n".join(said)
    assert kernel.checks == native.checks >= 10
