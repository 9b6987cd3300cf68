"""The verbs of ``wirepaint cc``."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from wirepaint.columns import aligned
from wirepaint.errors import RunFailed, UsageError

cc = App(name="cc", help="Congestion controls: what exists, what each does, whether it does what it should.")

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs.")]


@cc.command(name="list")
def list_(*, json: Json = False) -> None:
    """List congestion controls: where each runs, what it is, its parameters with default and range."""
    from wirepaint.cc import catalogue

    entries = catalogue.everything()
    if json:
        _print_json(entries)
        return
    lines = aligned([(entry["name"], ", ".join(entry["where"]), entry["summary"]) for entry in entries])
    for entry, line in zip(entries, lines, strict=True):
        print(line)
        for parameter in _parameters(entry):
            print(f"    {parameter}")


def _parameters(entry: dict[str, Any]) -> list[str]:
    rows = [
        (p["name"], str(p["default"]), f"{p['min']} to {p['max']}", p["summary"]) for p in entry["parameters"]
    ]
    return aligned(rows) if rows else []


@cc.command
def show(
    name: str,
    /,
    *,
    plot: Path | None = None,
    source: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Say what a congestion control does: the head of its source, and its parameters.

    Parameters
    ----------
    name
        Name, or the path of a C file of your own.
    plot
        Draw the window over time on a standard path into this file (.svg, .png, .pdf) instead.
    source
        Print the whole C source instead.
    """
    from wirepaint.cc import catalogue

    entry = catalogue.find(name)
    if plot is not None:
        from wirepaint.cc import plot as drawing

        drawing.save(name, plot)
        print(plot)
    elif source:
        print(Path(name).read_text() if name.endswith(".c") else catalogue.source_of(name), end="")
    else:
        print(catalogue.header(name))
        if parameters := _parameters(entry):
            print("\nParameters: name, default, range, meaning")
        for parameter in parameters:
            print(f"    {parameter}")
        for sysctl, value in entry["sysctls"].items():
            print(f"\nNeeds {sysctl} = {value}; runs set it.")


@cc.command
def new(name: str, /, *, output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path()) -> None:
    """Write a starting file NAME.c and its script NAME-1.ack, which load and pass as they are.

    Parameters
    ----------
    name
        Name of the congestion control: at most 9 characters of a-z, 0-9 and _, a letter first.
    output
        Folder to write into; made if it does not exist.
    """
    from wirepaint.cc import new as writing

    for path in writing.write(name, output):
        print(path)


@cc.command
def test(
    *names: str,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    arm: Literal["native", "kernel", "both"] = "both",
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative="")] = False,
    json: Json = False,
) -> None:
    """Run the acknowledgement scripts of congestion controls, natively and in the running kernel.

    Parameters
    ----------
    names
        Names, or paths of C files of your own (their scripts are NAME-*.ack beside them).
    everything
        Every congestion control that ships.
    arm
        native: the sender of the scripts; kernel: Linux over the emulator (needs root); or both.
    verbose
        Say of each script what was skipped, and why; else only how often for which reason.
    """
    from wirepaint.cc import catalogue, testing

    algorithms = list(catalogue.ours()) if everything else list(dict.fromkeys(names))
    if not algorithms:
        raise UsageError("NAME", "nothing", f"--all, a C file, or some of {', '.join(catalogue.ours())}")
    arms, missing = testing.arms_here(arm)
    if missing:
        print(missing, file=sys.stderr)
    if not arms:
        raise UsageError("--arm", "kernel without root", "sudo, or --arm native")
    tested = testing.test(algorithms, arms, _say_progress)
    if json:
        _print_json(testing.as_json(tested))
    else:
        rows = testing.table(tested, arms)
        for line in aligned([list(rows[0]), *(list(row.values()) for row in rows)]):
            print(line)
        for one in tested:
            for shown in arms:
                for line in testing.dialogue(one, shown):
                    print(line)
                if verbose:
                    for why in one.arms[shown].skipped:
                        print(f"{Path(one.script).name} ({shown}) skipped: {why}")
        if not verbose:
            for why, count in testing.reasons(tested):
                print(f"{count} skipped: {why}")
    failed = [one.script for one in tested if not all(one.arms[arm].passed for arm in arms)]
    if failed:
        raise RunFailed(f"{len(failed)} of {len(tested)} scripts did not pass: {', '.join(failed)}")


def _say_progress(done: int, total: int) -> None:
    if sys.stderr.isatty() and total:
        end = "\n" if done == total else ""
        print(f"\rkernel: {done} of {total} connections", end=end, file=sys.stderr, flush=True)


@cc.command
def groups(*, watch: Annotated[bool, Parameter(negative="")] = False, json: Json = False) -> None:
    """Show the group state of congestion controls that share among connections, while runs go on.

    Parameters
    ----------
    watch
        Show it anew each second until Ctrl-C.
    """
    from wirepaint import dataplane

    while True:
        found = dataplane.call("cc", "groups")
        if json:
            _print_json(found)
        else:
            if watch and sys.stdout.isatty():
                print("\x1b[H\x1b[2J", end="")
            rows = [list(map(str, row.values())) for row in found]
            for line in aligned([list(found[0]), *rows]) if rows else ["no groups"]:
                print(line)
        if not watch:
            return
        time.sleep(1)


def _print_json(value: Any) -> None:
    print(jsonlib.dumps(value, indent=1, ensure_ascii=False))
