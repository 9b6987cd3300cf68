"""What a gate found, for people and for CI systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from wirepaint.gate.checks import OUTCOMES, Check, Outcome
from wirepaint.statistics.wording import count


def outcome(checks: Sequence[Check]) -> Outcome:
    """A breach if there is one; else missing, then undecided if a check is; else pass."""
    return next(each for each in OUTCOMES if any(check.outcome == each for check in checks))


def visits_needed(checks: Sequence[Check]) -> int | None:
    """About how many visits decide all undecided checks; None if there are none, or no number does."""
    needed = [check.visits_needed for check in checks if check.outcome == "undecided"]
    known = [number for number in needed if number is not None]
    return max(known) if known and len(known) == len(needed) else None


def summary(checks: Sequence[Check]) -> str:
    """One sentence: the outcome, the back ends and the numbers of checks."""
    numbers = Counter(check.outcome for check in checks)
    said = ", ".join(f"{numbers[each]} {each}" for each in OUTCOMES if numbers[each])
    backends = " and ".join(f"the {name}" for name in _backends(checks))
    text = f"{outcome(checks)} on {backends}: {said} of {count(len(checks), 'check')}"
    if outcome(checks) == "undecided" and (needed := visits_needed(checks)):
        text += f"; about {needed} visits of each page decide"
    return text


def text(checks: Sequence[Check]) -> str:
    """A line for each check, breaches first, and the summary."""
    return "\n".join([*(check.sentence for check in _ordered(checks)), summary(checks)])


def as_json(checks: Sequence[Check], notes: Sequence[str]) -> dict[str, Any]:
    """The verdict on top, then what else differs (``notes``), then all checks."""
    return {
        "verdict": outcome(checks),
        "summary": summary(checks),
        "backends": _backends(checks),
        "visits_needed": visits_needed(checks),
        "notes": list(notes),
        "checks": [asdict(check) | {"sentence": check.sentence} for check in _ordered(checks)],
    }


def junit(checks: Sequence[Check]) -> str:
    """JUnit's XML: a breach is a failure, a missing check an error, an undecided one is skipped.

    Each check has a name of its own, with its rule: programs take two cases of one name for one.
    """
    numbers = Counter(check.outcome for check in checks)
    counts = {
        "tests": len(checks),
        "failures": numbers["breach"],
        "errors": numbers["missing"],
        "skipped": numbers["undecided"],
    }
    suite = ElementTree.Element(
        "testsuite", {"name": "wirepaint check"} | {key: str(number) for key, number in counts.items()}
    )
    seen: Counter[str] = Counter()
    for check in checks:
        name = f"{check.name}: {check.rule}"
        seen[name] += 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        case = ElementTree.SubElement(
            suite, "testcase", name=f"{name}{again}", classname=f"wirepaint.{check.metric}"
        )
        if check.outcome != "pass":
            tag = {"breach": "failure", "missing": "error", "undecided": "skipped"}[check.outcome]
            ElementTree.SubElement(case, tag, message=check.sentence)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def of_github(checks: Sequence[Check]) -> Iterator[str]:
    """Workflow commands of GitHub: an error for each breach or missing check, else a warning."""
    for check in _ordered(checks):
        if check.outcome != "pass":
            level = "warning" if check.outcome == "undecided" else "error"
            title = _escaped(check.title).replace(":", "%3A").replace(",", "%2C")
            yield f"::{level} title={title}::{_escaped(check.sentence)}"


def _escaped(text: str) -> str:
    """A text as a workflow command takes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown(checks: Sequence[Check], notes: Sequence[str]) -> str:
    """A table for the summary of a job or a comment, with what else differs (``notes``)."""
    lines = [f"**wirepaint check**: {summary(checks)}", "", "| outcome | check |", "|---|---|"]
    lines += [
        f"| {check.outcome} | {check.sentence.replace('|', chr(92) + '|')} |" for check in _ordered(checks)
    ]
    lines += ["", *(f"- {note}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def _backends(checks: Sequence[Check]) -> list[str]:
    return list(dict.fromkeys(check.backend for check in checks))


def _ordered(checks: Sequence[Check]) -> list[Check]:
    return sorted(checks, key=lambda check: OUTCOMES.index(check.outcome))
