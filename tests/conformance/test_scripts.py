"""Every acknowledgement script holds in the running kernel: the same windows at the same acknowledgements.

The kernel's arm is wirepaint.cc.kernel. It names steps that a path cannot carry out, with the reason. A
few windows may be only near, because growth and sampling overlap (``Outcome.nearly``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from disturbed import Disturbed, Watch

from wirepaint.cc import kernel, testing
from wirepaint.cc.outcome import Outcome

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "congestion/scripts"
GUIDE = ROOT / "docs/guide/write-a-congestion-control.md"
NATIVE_ALONE = {"bbr1-1-startup", "bbr1-2-losses", "cubic9438-linux", "fld-local-drop"}
"""Scripts that a path cannot carry out at all; each of their transfers gives the reason."""


def scripts() -> list[Any]:
    """Those that the kernel can carry out. Numbered ones are not slow: they tell what a control does."""
    names = sorted(path.name for path in SCRIPTS.glob("*.ack") if path.stem not in NATIVE_ALONE)
    marks = {name: [] if re.search(r"-\d+b?-", name) else [pytest.mark.slow] for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


@dataclass
class Played:
    """A script in both arms, and what disturbed the machine meanwhile."""

    timetable: dict[str, Any]
    native: Outcome
    kernel: Outcome
    disturbance: str | None

    def assert_holds(self) -> None:
        """Raises AssertionError, or Disturbed where a failure says nothing."""
        arms: dict[testing.Arm, Outcome] = {"native": self.native, "kernel": self.kernel}
        one = testing.Tested("", "the script", arms, self.timetable.get("exchange", []))
        assert self.native.passed, "\n".join([self.native.unreadable or "", *testing.dialogue(one, "native")])
        wrong = "\n".join(testing.dialogue(one, "kernel"))
        if self.kernel.passed and not self.kernel.checks:
            wrong = f"nothing was compared: {self.kernel.skipped}"
        if wrong and (self.disturbance or self.kernel.disturbed):
            raise Disturbed(f"{self.disturbance or 'the transfer was late'}: {wrong}")
        assert not wrong, wrong


def in_both_arms(*paths: Path) -> dict[str, Played]:
    """Plays scripts natively, then together in the kernel: the longest first, so that parallel
    transfers take equally long."""
    native = {path.name: testing.play(str(path)) for path in paths}
    playable = {name: timetable for name, (timetable, outcome) in native.items() if outcome.passed}
    watch = Watch()
    outcomes = kernel.carry_out(dict(sorted(playable.items(), key=_length)), lambda done, total: None)
    disturbance = watch.disturbance()
    return {
        name: Played(timetable, outcome, outcomes.get(name, Outcome()), disturbance)
        for name, (timetable, outcome) in native.items()
    }


def _length(script: tuple[str, dict[str, Any]]) -> int:
    """Minus the length of a script's longest transfer, in us."""
    return -max(transfer["until"]["us"] for transfer in script[1]["transfers"])


_played = pytest.StashKey[dict[str, Played]]()


@pytest.mark.timed
@pytest.mark.parametrize("script", scripts())
def test_a_script_holds_in_the_kernel(root: None, request: pytest.FixtureRequest, script: str) -> None:
    """All that this session asks for are played together at first; a repeated one is played alone."""
    session = request.session
    if _played not in session.stash:
        specs = [getattr(item, "callspec", None) for item in session.items if item.path == request.path]
        session.stash[_played] = in_both_arms(
            *(SCRIPTS / spec.params["script"] for spec in specs if spec and "script" in spec.params)
        )
    played = session.stash[_played].pop(script, None) or in_both_arms(SCRIPTS / script)[script]
    played.assert_holds()


def test_of_a_script_that_is_not_played_in_the_kernel_nothing_can_be() -> None:
    for name in NATIVE_ALONE:
        timetable, native = testing.play(str(SCRIPTS / f"{name}.ack"))
        assert native.passed and native.checks
        assert all(transfer["impossible"] for transfer in timetable["transfers"]), name


def test_a_sample_at_the_limit_of_a_heracles_group_is_within_it(tmp_path: Path) -> None:
    """Natively alone: an emulated path adds some 0.1 ms to both sides of the comparison."""
    script = tmp_path / "heracles-limits.ack"
    lines = ["cc heracles", "open a rtt=49ms to=10.1.2.1", "open b rtt=49ms to=10.1.2.2"]
    lines += ["a: rtt 100ms", "b: rtt 100ms"]
    lines += ["a: +200ms write 1 x3", "b: +200ms write 1 x3", "round"]
    for rtt in (50, 150):
        lines += [f"a: rtt {rtt}ms", "a: write 1", "round", "group 10.1.2.0/24 => members 2"]
    script.write_text("\n".join([*lines, ""]))
    _, native = testing.play(str(script))
    assert (native.passed, native.checks) == (True, 2), native


@pytest.mark.parametrize(
    ("late_ns", "delivered", "why"),
    [
        (0, [0, 1, 2, 3], None),
        (1_100_000, [0, 1, 2, 3], "a packet was 1.1 ms late"),
        (0, [0, 1, 5], "4 segments were acknowledged together"),
    ],
    ids=["calm", "late", "together"],
)
def test_a_difference_on_a_path_that_stalled_says_nothing(
    late_ns: int, delivered: list[int], why: str | None
) -> None:
    check: dict[str, Any] = {
        "line": 3,
        "key": "cwnd",
        "connection": 0,
        "delivered": 99,
        "sent": 9,
        "repeat": 0,
    }
    check |= {"expected": "5", "event": "ack", "until": "arrival", "retransmitted": 0}
    transfer = {"line": 2, "connections": [{"server": 0}], "checks": [check], "up": [], "acts": []}
    answer = {
        "late_ns": 0,
        "timed_out": False,
        "probe": {"lost": 0},
        "emulator": {"lateness": {"max": late_ns}},
    }
    answer |= {"connections": [{"samples": [], "before_acts": [], "congestion": ["std"]}]}
    address = [kernel.server_address(0)] * len(delivered)
    acks = pl.DataFrame({"server_address": address, "delivered": delivered, "cwnd": [1] * len(delivered)})
    seen = kernel._Seen(transfer, kernel._Observed(answer, acks, {}, kernel._Instances())).judged()
    assert len(seen.differences) == 1
    assert seen.disturbed == ([f"line 2: {why}"] if why else [])


@pytest.mark.timed
def test_a_wrong_expectation_is_found_in_the_kernel(root: None, tmp_path: Path) -> None:
    """The kernel arm can fail: natively this script passes, because it has the native value."""
    script = tmp_path / "std-1.ack"
    script.write_text("cc std\nopen iw=10 after_idle=0\nwrite bulk\nround => cwnd 20\nround => cwnd 40\n")
    timetable, native = testing.play(str(script))
    assert native.passed
    timetable["transfers"][0]["checks"][-1]["expected"] = "50"
    outcome = kernel.carry_out({"std-1.ack": timetable}, lambda done, total: None)["std-1.ack"]
    assert [(d.line, d.key, d.expected, d.found) for d in outcome.differences] == [(5, "cwnd", "50", "40")]


def outcome(**keys: Any) -> Outcome:
    return Outcome(**{"checks": 30} | keys)


@pytest.mark.parametrize(
    ("kernel", "disturbance", "raised"),
    [
        (outcome(), None, None),
        (outcome(nearly=6), None, None),
        (outcome(nearly=7), None, AssertionError),
        (outcome(nearly=7), "stolen", Disturbed),
        (outcome(checks=0, skipped=["line 1: paces itself"]), None, AssertionError),
        (outcome(disturbed=["line 1: late"]), None, Disturbed),
    ],
    ids=["exact", "few near", "many near", "disturbed", "wholly skipped", "late"],
)
def test_a_script_passes_only_where_values_were_compared_and_few_are_near(
    kernel: Outcome, disturbance: str | None, raised: type[Exception] | None
) -> None:
    played = Played({}, outcome(), kernel, disturbance)
    if raised is None:
        played.assert_holds()
    else:
        with pytest.raises(raised):
            played.assert_holds()


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The guide's congestion control and script, as its reader would save them."""
    text = GUIDE.read_text()
    for language, file in (("c", "gentle.c"), ("ack", "gentle-1.ack")):
        [block] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (tmp_path / file).write_text(block)
    return tmp_path / "gentle.c"


@pytest.mark.timed
def test_the_example_of_the_guide_holds_in_the_kernel(root: None, example: Path) -> None:
    played = in_both_arms(example.parent / "gentle-1.ack")["gentle-1.ack"]
    played.assert_holds()
    assert played.kernel.checks == played.native.checks >= 10


SKIPPED = """\
#include "cc.h"

struct skips { u32 unused; };
CC_STATE(struct skips);

CC_HOOK(void, skips_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	reno_cong_avoid(sk, acked);
}

CC_HOOK(u32, skips_ssthresh, struct sock *sk)
{
#ifdef __bpf__
	return 0x8110410b;	/* what TCP finds where a kernel skips the hook */
#else
	return reno_ssthresh(tcp_sk(sk));
#endif
}

CC_HOOK(u32, skips_min_tso_segs, struct sock *sk)
{
	return 2;
}

CC_HOOK(u32, skips_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("Reno, whose ssthresh() the kernel never calls",
	.cong_avoid = CC_OP(skips_cong_avoid),
	.ssthresh = CC_OP(skips_ssthresh),
	.min_tso_segs = CC_OP(skips_min_tso_segs),
	.undo_cwnd = CC_OP(skips_undo_cwnd))
"""


@pytest.mark.timed
def test_where_the_kernel_skips_ssthresh_the_window_is_halved(root: None, tmp_path: Path) -> None:
    (tmp_path / "skips.c").write_text(SKIPPED)
    script = tmp_path / "skips-1.ack"
    steps = ["write 40 => flight 40", "lose 1", "ack 3", "round => retransmitted 1"]
    steps += ["round => state Open, cwnd 20, ssthresh 20"]
    script.write_text("\n".join(["cc skips.c", "open iw=40 after_idle=0", *steps, ""]))
    played = in_both_arms(script)[script.name]
    played.assert_holds()
    assert played.kernel.checks
