"""Runs acknowledgement scripts in both arms and shows the differences as a dialogue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wirepaint import dataplane, linux
from wirepaint.cc import catalogue
from wirepaint.cc.outcome import Difference, Outcome
from wirepaint.errors import RunFailed

Arm = Literal["native", "kernel"]
ARMS: tuple[Arm, ...] = ("native", "kernel")
Progress = Callable[[int, int], None]
LONGEST_S = 60.0
"""A script takes milliseconds, and compiling its file a second."""
BEFORE = 8
"""Lines of the exchange that are shown before a difference."""


@dataclass
class Tested:
    """A script of an algorithm, its outcome in each arm, and the native exchange by line."""

    algorithm: str
    script: str
    arms: dict[Arm, Outcome]
    exchange: list[dict[str, Any]]


def scripts_of(algorithm: str) -> list[str]:
    """Scripts of an algorithm: shipped ones by file name; those beside a user's own file by path."""
    if algorithm.endswith(".c"):
        file = Path(algorithm)
        return sorted(str(path) for path in file.parent.glob(f"{file.stem}-*.ack"))
    return [file for file in dataplane.call("cc", "scripts") if file.startswith(f"{algorithm}-")]


def test(algorithms: Sequence[str], arms: Sequence[Arm], progress: Progress) -> list[Tested]:
    """Runs all scripts of algorithms (names, or paths of files); the kernel's arm needs root."""
    tested, timetables = [], {}
    for algorithm in algorithms:
        catalogue.find(algorithm)
        scripts = scripts_of(algorithm)
        if not scripts:
            pattern = f"{algorithm.removesuffix('.c')}-*.ack"
            missing = Outcome(unreadable=f"there is no script {pattern}")
            tested.append(Tested(algorithm, pattern, dict.fromkeys(arms, missing), []))
        for script in scripts:
            timetable, outcome = play(script)
            tested.append(Tested(algorithm, script, {"native": outcome}, timetable.get("exchange", [])))
            # If a script fails natively, it gives no timetable for the kernel.
            if outcome.passed:
                timetables[script] = timetable
    if "kernel" in arms:
        from wirepaint.cc import kernel

        outcomes = kernel.carry_out(timetables, progress)
        not_tried = Outcome(unreadable="not tried, because the native arm does not pass")
        for one in tested:
            one.arms.setdefault("kernel", outcomes.get(one.script, not_tried))
    return tested


def play(script: str) -> tuple[dict[str, Any], Outcome]:
    """A script's timetable and its native outcome."""
    try:
        done = subprocess.run(
            [dataplane.program(), "cc", "script", "--timetable", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        return {}, Outcome(unreadable=f"no end after {LONGEST_S:g} s: does a hook loop without end?")
    if done.returncode != 0:
        return {}, Outcome(unreadable=done.stderr.strip() or _died(done.returncode))
    timetable = json.loads(done.stdout)[script]
    if "transfers" not in timetable:
        raise RunFailed(f"{dataplane.program()} is of another build than this package: run `make setup`")
    checks = [check for transfer in timetable["transfers"] for check in transfer["checks"]]
    outcome = Outcome(checks=len(checks))
    # After a failed check the sender differs from the script's, so later checks mean nothing.
    for check in sorted(checks, key=lambda check: check["line"]):
        if check["native"] != check["expected"]:
            found = Difference(
                check["line"], check["event"], check["key"], check["expected"], check["native"]
            )
            outcome.differences.append(found)
            break
    return timetable, outcome


def _died(code: int) -> str:
    """Why the program ended without a word, with its return code."""
    how = linux.ended(code)
    causes = {
        -signal.SIGFPE: "does a hook divide by zero?",
        -signal.SIGSEGV: "does a hook follow a pointer that is null or leads nowhere?",
    }
    return f"{how}: {causes[code]}" if code in causes else how


def arms_here(asked: Literal["native", "kernel", "both"]) -> tuple[list[Arm], str | None]:
    """The arms that can run here, and a message if one cannot."""
    wanted: list[Arm] = [arm for arm in ARMS if asked in (arm, "both")]
    if "kernel" in wanted and os.geteuid() != 0:
        wanted.remove("kernel")
        return wanted, "the kernel arm is skipped: it needs root (sudo)"
    return wanted, None


def table(tested: Sequence[Tested], arms: Sequence[Arm]) -> list[dict[str, str]]:
    """One row per algorithm: passed and all scripts, and compared checks, in each arm."""
    groups: dict[str, list[Tested]] = defaultdict(list)
    for one in tested:
        groups[one.algorithm].append(one)
    return [{"algorithm": name} | {arm: _tally(group, arm) for arm in arms} for name, group in groups.items()]


def _tally(group: Sequence[Tested], arm: Arm) -> str:
    outcomes = [one.arms[arm] for one in group]
    compared = [outcome for outcome in outcomes if outcome.checks or not outcome.passed]
    if not compared:
        return f"{len(group)} scripts skipped"
    passed = sum(outcome.passed for outcome in compared)
    checks = sum(outcome.checks for outcome in outcomes)
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    repeated = sum(outcome.repeated for outcome in outcomes)
    text = f"{passed} of {len(compared)} scripts, {checks} checks"
    nearly = sum(outcome.nearly for outcome in outcomes)
    text += f", {nearly} one segment off" if nearly else ""
    text += f", {len(group) - len(compared)} scripts skipped" if len(compared) < len(group) else ""
    text += f", {skipped} parts skipped" if skipped else ""
    return text + (f", {repeated} repeated" if repeated else "")


def dialogue(one: Tested, arm: Arm) -> Iterator[str]:
    """The differences in one arm: the exchange before the first one, then all of them."""
    outcome = one.arms[arm]
    file = Path(one.script).name
    if outcome.unreadable:
        yield f"{file} ({arm}): {outcome.unreadable}"
    if outcome.vague:
        yield f"{file} ({arm}): {outcome.nearly} of {outcome.checks} values are only near"
    for why in outcome.disturbed:
        yield f"{file} ({arm}): {why}; the machine is too busy to tell"
    if not outcome.differences:
        return
    first = outcome.differences[0]
    place = next((n for n, event in enumerate(one.exchange) if event["line"] >= first.line), 0)
    for event in one.exchange[max(0, place - BEFORE) : place + 1]:
        yield f"    {event['line']:>4}  {event['event']:<24} {event['sender']}"
    for found in outcome.differences:
        yield (
            f"{file}:{found.line} ({arm}): after `{found.event}`: expected {found.key} {found.expected}, "
            f"found {found.found}"
        )


def reasons(tested: Sequence[Tested]) -> list[tuple[str, int]]:
    """The reasons why parts of scripts were skipped, with numbers."""
    skipped = (why for one in tested for outcome in one.arms.values() for why in outcome.skipped)
    return Counter(why.partition(": ")[2] for why in skipped).most_common()


def as_json(tested: Sequence[Tested]) -> list[dict[str, Any]]:
    """Everything, for programs."""
    return [
        {
            "algorithm": one.algorithm,
            "script": one.script,
            "arms": {
                arm: {"passed": outcome.passed}
                | {key: value for key, value in vars(outcome).items() if key != "differences"}
                | {"differences": [vars(found) for found in outcome.differences]}
                for arm, outcome in one.arms.items()
            },
        }
        for one in tested
    ]
