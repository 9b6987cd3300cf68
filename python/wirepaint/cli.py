"""The command line: reads arguments, calls the rooms, words the ends.

Data goes to stdout, progress and warnings to stderr. Exit codes: 0 done, 1 a run failed, 2 bad
usage or configuration, 3 incomplete (the same command again resumes). Every command imports what
it needs when it is called, so that the program starts quickly.
"""

from __future__ import annotations

import os
import select
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from wirepaint import __version__, analysis_commands
from wirepaint.cc.commands import cc
from wirepaint.errors import (
    Incomplete,
    MachineLacks,
    NotTrusted,
    RunFailed,
    UsageError,
    WirepaintError,
    cut,
)
from wirepaint.metric_commands import metric
from wirepaint.page_commands import page
from wirepaint.printing import Json, Output, print_json, print_rows, say
from wirepaint.studies.commands import study

if TYPE_CHECKING:
    from wirepaint.runners.contract import Tally

app = App(
    name="wirepaint",
    help="Which transport makes these pages load faster on these networks, and who pays for it?",
    version=__version__,
    help_format="plaintext",
)
network = App(name="network", help="Networks: list, show and calibrate them.")
for part in (page, network, cc, metric, study, analysis_commands.explain, analysis_commands.figure):
    app.command(part)

_STDOUT = 1


@app.command
def run(
    file: Path,
    /,
    *,
    output: Output = None,
    backend: str | None = None,
    congestion: Annotated[list[str] | None, Parameter(negative="")] = None,
    rehearse: bool = True,
    until: Literal["decided"] | None = None,
    trust: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Carry out an evaluation; the same command again resumes it.

    Parameters
    ----------
    file
        Evaluation file (TOML).
    output
        Results folder; results/<name of the file> when left out.
    backend
        Back end to use instead of the file's: testbed, simulator or both.
    congestion
        Congestion control to run instead of the file's, by name or as the path of a C file of your
        own; may be given again to compare several: --congestion cubic --congestion ./mine.c
    rehearse
        Rehearse pages that were not rehearsed in this browser; what was found is kept in the cache.
    until
        Go on visiting until each primary comparison is decided, or 64 visits are made: --until decided
    trust
        Run the code that the evaluation file names, C files and files of metrics, without asking.
    json
        Print how the runs stand as JSON.
    """
    from wirepaint import metric_commands, rehearsal
    from wirepaint.evaluation import plan
    from wirepaint.metrics import Keeper
    from wirepaint.results import manifest
    from wirepaint.runners import backends, pool
    from wirepaint.runners.progress import on_stderr
    from wirepaint.runners.testbed import at_once

    folder = output or Path("results") / file.name.removesuffix(".toml")
    rehearsing = partial(rehearsal.ensure, say=say, begun_with=manifest.pages(folder)) if rehearse else None
    trusted = (lambda _: True) if trust else partial(_agreed, file)
    planned = plan(
        file,
        backend,
        congestion=congestion or (),
        rehearse=rehearsing,
        trust=trusted,
        until=until,
        read_metrics=metric_commands.read,
    )
    for note in planned.notes:
        say(note)
    if any(len(one.users) > 1 for one in planned.runs):
        at_once.check(planned.runs)
    with Keeper(folder) as keeper:
        tally = pool.carry_out(
            planned,
            folder,
            backends.named(
                planned.resolved["backend"],
                captures=planned.resolved["capture"] is not None,
                iperf3=any(flow.tool == "iperf3" for run in planned.runs for flow in run.flows),
            ),
            on_stderr(),
            _narrow_enough(),
            cannot_count=planned.cannot_count,
            ended=keeper.add,
            decided=_decided(planned.resolved["primary"]),
        )
    if json:
        print_json({"results": str(folder), **vars(tally)})
    elif planned.resolved["backend"] == "both":
        from wirepaint.statistics import agreement

        try:
            agreement.command(folder)
        except UsageError as error:
            say(f"No agreement of the back ends can be told: {error}")
    for name, why in tally.cannot_count.items():
        say(f"{name} cannot count: {why}")
    if tally.repeats:
        say(f"{_number(tally.repeats, 'repeat')}, {tally.repeats_in_vain} in vain")
    say(f"{_in_words(tally)}. Results: {folder}")
    said = []
    if tally.cannot_count:
        said.append(f"{_number(len(tally.cannot_count), 'page')} cannot count")
    for how, runs in {"timed out": tally.timeouts, "failed": tally.failures}.items():
        if runs:
            key, cause = next(iter(runs.items()))
            said.append(f"{_number(len(runs), 'run')} {how}; {key}: {cause}")
    if said:
        but = ", but not those that timed out" if tally.timeouts else ""
        raise RunFailed(f"{', '.join(said)}. The same command tries failed runs again{but}.")


@app.command
def repeat(
    description: Path,
    /,
    *,
    output: Output = None,
    trust: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Carry one run out again, from the run.json in its folder.

    Parameters
    ----------
    description
        The run.json of a run, of either back end.
    output
        Folder of the new trace; repeated/<name of the run> when left out.
    trust
        Compile and run the C files that it names.
    json
        Print how it ended as JSON.
    """
    from wirepaint.runners.repeat import repeat as carried_out_again

    folder = output or Path("repeated") / description.absolute().parent.name
    ended = carried_out_again(description, folder, trust=trust)
    if json:
        print_json(vars(ended) | {"folder": str(folder)})
        return
    for reason in ended.reasons:
        severity = reason.get("severity", "invalid")
        say(f"{severity}: {reason['check']}: found {reason['found']}, expected {reason['expected']}")
    if ended.load_ms is not None:
        before = "" if ended.before_ms is None else f"; {ended.before_ms:.1f} ms before"
        print(f"page load time {ended.load_ms:.1f} ms{before}")
    print(f"{ended.backend}: {ended.verdict}. Trace: {folder}")


@app.command
def compare(
    results: Path,
    candidate: Path | None = None,
    /,
    *,
    factor: str | None = None,
    metric: Annotated[list[str] | None, Parameter(negative="")] = None,
    baseline: str | None = None,
    margin: float = 0.02,
    by_page: Annotated[bool, Parameter(negative="")] = False,
    suspect: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Compare the values of one axis, or two results folders: difference, confidence interval, p, verdict.

    Parameters
    ----------
    results
        Results folder.
    candidate
        Results folder that is compared with RESULTS, such as this week's pages with last week's.
    factor
        Axis to compare: congestion (when left out), network, http, initial_window, ...
    metric
        Metric to compare, or all; may be given again. The main ones when left out.
    baseline
        Value that the others are compared with; the first in the evaluation file when left out.
    margin
        Share within which two values count as the same.
    by_page
        Show each page too.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON, with every single value.
    """
    from wirepaint.statistics.compare import command

    for option, given in (("--factor", factor), ("--baseline", baseline)):
        if candidate is not None and given is not None:
            raise UsageError(option, given, "no such option with two results folders: they are compared")
    command(
        results,
        factor or "congestion",
        json,
        metric=metric,
        baseline=baseline,
        margin=margin,
        by_page=by_page,
        suspect=suspect,
        candidate=candidate,
    )


@app.command
def flows(
    results: Path,
    /,
    *,
    suspect: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Print what the flows of each scenario got: goodput, completion, delays, retransmissions, shares.

    Parameters
    ----------
    results
        Results folder.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON.
    """
    from wirepaint.statistics.flows import command

    command(results, json, suspect=suspect)


@app.command
def users(
    results: Path,
    /,
    *,
    suspect: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Print what the users of each scenario got: load times, shares of the link, packets, overhead.

    Parameters
    ----------
    results
        Results folder.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON.
    """
    from wirepaint.statistics.users import command

    command(results, json, suspect=suspect)


@app.command
def agree(
    results: Path,
    /,
    *,
    simulated: Path | None = None,
    by: str | None = None,
    metric: Annotated[list[str] | None, Parameter(negative="")] = None,
    suspect: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Say how near the simulator came to the testbed, of results with both back ends.

    Parameters
    ----------
    results
        Results folder.
    simulated
        Results folder whose simulated visits take the place of those of RESULTS: the same pages and
        conditions, simulated again.
    by
        Axis, such as congestion: the agreement of each of its values.
    metric
        Metric, or all; may be given again. The main ones when left out.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON, with every point.
    """
    from wirepaint.statistics import agreement, agreement_by

    if by is not None:
        agreement_by.command(results, by, metric, simulated=simulated, suspect=suspect, json=json)
        return
    agreement.command(results, metric, simulated=simulated, suspect=suspect, json=json)


@app.command
def report(
    results: Path,
    /,
    *,
    output: Output = None,
    factor: str | None = None,
    suspect: Annotated[bool, Parameter(negative="")] = False,
    figures: Path | None = None,
) -> None:
    """Write the report: one HTML file that works offline.

    Parameters
    ----------
    results
        Results folder.
    output
        File to write; report.html in the results folder when left out.
    factor
        Axis to compare; the first that has several values when left out.
    suspect
        Count runs with the verdict suspect as well.
    figures
        Folder for every figure as SVG, PDF and PNG, with its data as CSV.
    """
    from wirepaint import report as reporting

    path = output or results / "report.html"
    reporting.build(results, path, factor=factor, suspect=suspect)
    print(path)
    if figures is not None:
        reporting.save_figures(results, figures, factor=factor, suspect=suspect)


@app.command
def export(
    results: Path,
    /,
    *,
    to: Literal["csv", "parquet", "har", "pcapng", "openmetrics"],
    output: Output = None,
    table: Annotated[list[str] | None, Parameter(negative="")] = None,
) -> None:
    """Export all traces: one file per table, one HAR per visit, packets for Wireshark, or OpenMetrics.

    Parameters
    ----------
    results
        Results folder.
    to
        Format.
    output
        Folder to write into; export-<format> in the results folder when left out.
    table
        Table to write, such as page; may be given again. All when left out.
    """
    from wirepaint import export as exporting

    folder = output or results / f"export-{to}"
    exporting.export(results, to, folder, table or ())
    print(folder)


@app.command
def verify(first: Path, /, *more: Path, json: Json = False) -> None:
    """Say whether results are whole: everything in them is hashed again.

    Parameters
    ----------
    first
        Results folder; more may follow.
    json
        Print JSON.
    """
    from wirepaint.results.verify import command

    command([first, *more], json)


@app.command
def doctor(
    *,
    json: Json = False,
    require: Literal["testbed", "simulator"] | None = None,
    browsers: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Say what can run here, what cannot, and how to mend it.

    Parameters
    ----------
    browsers
        Measure how many browsers this machine bears at once (a minute, as root), and keep it: `run` refuses
        more users together on the testbed.
    json
        Print JSON.
    require
        End with exit code 2 unless this can run.
    """
    from wirepaint import doctor as checks

    if browsers:
        _browsers_at_once(json)
        return
    findings = checks.examine()
    lacking = findings.lacking(require) if require else []
    if json:
        print_json(findings.as_json())
    if lacking or not json:
        # On stderr it is seen where only the exit code is asked for and stdout thrown away (the Makefile).
        checks.show(findings, sys.stderr if lacking else sys.stdout)
    if lacking:
        names = ", ".join(check.name for check in lacking)
        raise MachineLacks(
            f"the {require} cannot run here, for want of: {names}", "The list above says more."
        )


def _browsers_at_once(json: bool) -> None:
    from wirepaint.runners.testbed import at_once

    def said(step: at_once.Step) -> None:
        say(f"{_number(step.browsers, 'browser')}: {step.load_ms:,.0f} ms a page, {step.slower:+.0%}")

    borne = at_once.measure(said)
    if json:
        print_json({"browsers": borne})
    else:
        print(f"This machine bears {_number(borne, 'browser')} at once.")


@app.command
def version() -> None:
    """Print the versions of all that a result depends on."""
    from wirepaint.results import provenance
    from wirepaint.runners.testbed.browser.chromium import program

    for name, found in (provenance.versions() | {"browser": program.version()}).items():
        print(f"{name} {found}")


@network.command(name="list")
def network_list(*, json: Json = False) -> None:
    """List the networks that ship with wirepaint."""
    from wirepaint import catalogue
    from wirepaint.evaluation import network

    loaded = [network.load(name) for name in catalogue.names("network")]
    rows = [
        {
            "name": path.name,
            "down": _rate(path.rate("down")),
            "up": _rate(path.rate("up")),
            "rtt": f"{path.rtt_ns / 1e6:g} ms",
            "title": path.title,
        }
        for path in loaded
    ]
    print_rows(rows, json)


@network.command(name="show")
def network_show(name: str, /, *, full: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Print a network, resolved, as JSON.

    Parameters
    ----------
    name
        Name in the catalogue or path of a file.
    full
        Print capacity traces whole, not their name, length and mean rate.
    """
    from wirepaint.evaluation import network

    print_json(network.load(name).model_dump() if full else network.abridged(name))


@network.command(name="calibrate")
def network_calibrate(name: str, /, *, json: Json = False) -> None:
    """Measure what the emulated path really gives, against what was asked.

    Parameters
    ----------
    name
        Name in the catalogue or path of a file.
    json
        Print JSON.
    """
    from wirepaint.evaluation import network

    path = network.load(name)
    from wirepaint.runners.testbed import calibrate

    calibrate.command(path, json)


@app.command
def schema(
    name: Literal["evaluation", "run", "trace"] = "evaluation",
    /,
    *,
    write: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print the JSON Schema of a file that wirepaint reads or writes.

    Parameters
    ----------
    name
        evaluation (what a user writes), run (what the data plane reads) or trace (its tables).
    write
        Write all of them into the package anew instead (for developers).
    """
    from wirepaint import schemas

    if write:
        for path in schemas.write():
            print(path)
    else:
        print(schemas.text(name), end="")


def main() -> None:
    """Entry of the program ``wirepaint``."""
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: list[str]) -> int:
    """Carries out a command line and returns its exit code; errors end in one line on stderr."""
    try:
        app(arguments, print_error=False, exit_on_error=False, result_action="return_value")
        return 0
    except CycloptsError as error:
        return _fail(str(error), UsageError.exit_code)
    except NotTrusted as error:
        return _fail(f"{error}. Then: {_again(arguments)} --trust", error.exit_code)
    except WirepaintError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("stopped", Incomplete.exit_code)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads(_STDOUT):
            os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
            return 0
        if os.environ.get("WIREPAINT_DEBUG"):
            raise
        if isinstance(error, OSError) and error.filename is not None:
            return _fail(f"{error.filename}: {error.strerror}", UsageError.exit_code)
        hint = "a fault of wirepaint; WIREPAINT_DEBUG=1 shows where"
        return _fail(f"{type(error).__name__}: {error} ({hint})", 1)


def _nobody_reads(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _fail(text: str, code: int) -> int:
    print(f"wirepaint: {cut(text)}", file=sys.stderr)
    return code


def _again(arguments: list[str]) -> str:
    """The command line as a shell takes it."""
    program = sys.argv[0] if Path(sys.argv[0]).name == app.name[0] else app.name[0]
    sudo = ["sudo", "-E"] if os.geteuid() == 0 and "SUDO_UID" in os.environ else []
    return shlex.join([*sudo, program, *arguments])


def _agreed(file: Path, named: Sequence[Path]) -> bool:
    """Asks at the terminal whether C files and files of metrics that an evaluation names may be run."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{file} names code. It runs with your rights; C files also run in the kernel, as root:")
    for path in named:
        say(f"  {cut(str(path))}")
    print("Do you trust them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _rate(bit_per_s: float | None) -> str:
    if bit_per_s is None:
        return "unlimited"
    return f"{bit_per_s / 1e6:.4g} Mbit/s" if bit_per_s >= 1e6 else f"{bit_per_s / 1e3:.4g} kbit/s"


def _in_words(tally: Tally) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(tally.counts.items())) or "no runs"


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"


def _decided(primary: Sequence[str] | None) -> Any:
    """How results are judged; raises UsageError if a primary metric is none."""
    from wirepaint import metrics
    from wirepaint.statistics.compare import all_decided

    for name in primary or ():
        metrics.get(name)
    return all_decided


def _narrow_enough() -> Any:
    from wirepaint.statistics.intervals import narrow_enough

    return narrow_enough
