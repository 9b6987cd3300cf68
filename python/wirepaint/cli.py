"""The command line: reads arguments, calls the rooms, words the ends.

Data goes to stdout, progress and warnings to stderr. Exit codes: 0 done, 1 a run failed, 2 bad
usage or configuration, 3 incomplete (the same command again resumes), 99 a gate is breached. Every
command imports what it needs when it is called, so that the program starts quickly.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from wirepaint import __version__
from wirepaint.analysis_commands import explain, figure, list_runs
from wirepaint.cc.commands import cc
from wirepaint.errors import (
    Incomplete,
    MachineLacks,
    NotTrusted,
    UsageError,
    UsageErrors,
    WirepaintError,
    cut,
)
from wirepaint.metric_commands import metric
from wirepaint.network_commands import network
from wirepaint.page_commands import page
from wirepaint.printing import Json, Output, command_line, counted, print_json, say
from wirepaint.run_commands import init, repeat, run, worker
from wirepaint.studies.commands import study

app = App(
    name="wirepaint",
    help="Which transport makes these pages load faster on these networks, and who pays for it?",
    version=__version__,
    help_format="plaintext",
)
app.command(list_runs, name="list")
for part in (run, init, repeat, worker, page, network, cc, metric, study, explain, figure):
    app.command(part)

_STDOUT = 1
_MOST_LINES = 20
"""Errors of one input that are shown."""


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
        Axis to compare: congestion, network, http, initial_window, ...; the first with several values when
        left out.
    metric
        Metrics to compare, by comma, or all. The main ones when left out.
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
        factor,
        json,
        metric=_listed(metric),
        baseline=baseline,
        margin=margin,
        by_page=by_page,
        suspect=suspect,
        candidate=candidate,
    )


@app.command
def check(
    results: Path,
    candidate: Path | None = None,
    /,
    *,
    budget: Path | None = None,
    margin: str | None = None,
    metric: Annotated[list[str] | None, Parameter(negative="")] = None,
    on_undecided: Literal["pass", "fail", "more"] = "pass",
    on_missing: Literal["fail", "pass"] = "fail",
    suspect: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    junit: Path | None = None,
    markdown: Path | None = None,
    github: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """A gate for CI: results against a budget, or a candidate against its base; exit code 99 on a breach.

    Parameters
    ----------
    results
        Results folder; the base if there is a candidate.
    candidate
        Results folder that is compared with the base.
    budget
        File with rules (TOML).
    margin
        Share by which the candidate may be worse: 3% or 0.03.
    metric
        Metrics of --margin, by comma. The primary ones when left out.
    on_undecided
        What undecided checks do: pass, fail (99), or more (exit code 3: more visits are needed).
    on_missing
        What pages do of which no visit counts, or fewer than half: fail (99), or pass.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON, the verdict first.
    junit
        File to write as JUnit's XML.
    markdown
        File to write as Markdown, such as $GITHUB_STEP_SUMMARY.
    github
        Print annotations for a workflow of GitHub too.
    """
    from wirepaint.gate.command import command

    command(
        results,
        candidate,
        budget=budget,
        margin=margin,
        metric=_listed(metric),
        on_undecided=on_undecided,
        on_missing=on_missing,
        suspect=suspect,
        json=json,
        junit=junit,
        markdown=markdown,
        github=github,
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
        Metrics by comma, or all. The main ones when left out.
    suspect
        Count runs with the verdict suspect as well.
    json
        Print JSON, with every point.
    """
    from wirepaint.statistics import agreement, agreement_by

    if by is not None:
        agreement_by.command(results, by, _listed(metric), simulated=simulated, suspect=suspect, json=json)
        return
    agreement.command(results, _listed(metric), simulated=simulated, suspect=suspect, json=json)


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
        Tables to write, such as page, by comma. All when left out.
    """
    from wirepaint import export as exporting

    folder = output or results / f"export-{to}"
    asked = [name.strip() for text in table or () for name in text.split(",")]
    exporting.export(results, to, folder, list(dict.fromkeys(asked)))
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
        say(f"{counted(step.browsers, 'browser')}: {step.load_ms:,.0f} ms a page, {100 * step.slower:+.0f} %")

    borne = at_once.measure(said)
    if json:
        print_json({"browsers": borne})
    else:
        print(f"This machine bears {counted(borne, 'browser')} at once.")


@app.command
def version() -> None:
    """Print the versions of all that a result depends on."""
    from wirepaint.results import provenance
    from wirepaint.runners.testbed.browser.chromium import program

    for name, found in (provenance.versions() | {"browser": program.version()}).items():
        print(f"{name} {found}")


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
        return _fail(f"{error}. Then: {command_line(*arguments)} --trust", error.exit_code)
    except UsageErrors as error:
        return _fail_for_each(error)
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


def _fail_for_each(error: UsageErrors) -> int:
    for each in error.errors[:_MOST_LINES]:
        _fail(str(each), error.exit_code)
    if (more := len(error.errors) - _MOST_LINES) > 0:
        _fail(f"and {counted(more, 'more error')}", error.exit_code)
    return error.exit_code


def _listed(texts: list[str] | None) -> list[str] | None:
    """The metrics of an option that may be given again, each a list by comma; each metric once."""
    from wirepaint import metrics

    names = [metrics.full(name.strip()) for text in texts or () for name in text.split(",")]
    return list(dict.fromkeys(names)) or None


def _fail(text: str, code: int) -> int:
    print(f"wirepaint: {cut(text)}", file=sys.stderr)
    return code
