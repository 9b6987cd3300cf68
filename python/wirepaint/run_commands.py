"""The verbs that carry out runs, ``run`` and ``repeat``, and ``init``, which writes a file for ``run``."""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wirepaint.cluster.address import Tls
from wirepaint.errors import NotTrusted, RunFailed, UsageError, cut, show
from wirepaint.printing import Json, Output, command_line, counted, print_json, say

if TYPE_CHECKING:
    from wirepaint.evaluation import Plan
    from wirepaint.evaluation.options import Setting
    from wirepaint.results import Results
    from wirepaint.runners.contract import Backend, Tally

Given = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""Arguments, and options that the command itself does not have: keys of the evaluation."""
Values = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]
Flag = Annotated[bool, Parameter(negative="")]
Secured = Annotated[Tls, Parameter(name="*")]
_OPEN = Tls()
_OWN = (
    *("--output", "--on", "--tls-ca", "--tls-cert", "--tls-key", "--only", "--no-rehearse", "--trust"),
    *("--dry-run", "--quiet", "--wait", "--json"),
)
_SHOWN = 10
"""Scenarios and pages that a dry run names."""
_HEAD = 2**16
"""Bytes of a file that tell an evaluation from a recording."""


def run(
    *given: Given,
    output: Output = None,
    network: Values = None,
    http: Values = None,
    congestion: Values = None,
    visits: Values = None,
    backend: Values = None,
    on: str = "local",
    tls: Secured = _OPEN,
    only: Values = None,
    rehearse: bool = True,
    until: Literal["decided"] | None = None,
    trust: Flag = False,
    dry_run: Flag = False,
    quiet: Flag = False,
    wait: Annotated[str | bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Load pages under each condition and say which is faster; the same command again resumes it.

    Parameters
    ----------
    given
        Pages: HARs, web archives, folders of sites, imported pages, or names of `wirepaint page list`. Or one
        evaluation file (TOML), or a results folder to go on with. Every key of an evaluation file is an
        option, with the values of a list by comma: --initial-window 10,30 --stop.interval "1 %".
    output
        Results folder; in results/ when left out. The evaluation is written into it as evaluation.toml.
    network
        Networks to load over: --network lte,wpt-cable
    http
        HTTP versions: --http h1,h2
    congestion
        Congestion controls of the servers, by name or as the path of a C file of your own:
        --congestion cubic,./mine.c
    visits
        Visits of each page under each condition.
    backend
        testbed, simulator or both; when left out, that of the file, else the testbed for root and the
        simulator for others.
    on
        Where the runs are carried out: local, or by the workers (`wirepaint worker`) of a Dask scheduler:
        --on dask://host:8786
    only
        Keys of runs: carry out only these. Those whose traces were not kept (results.keep) are simulated
        again, and their traces kept.
    rehearse
        Rehearse pages that were not rehearsed in this browser; what was found is kept in the cache.
    until
        Go on visiting until each primary comparison is decided, or 64 visits are made: --until decided
    trust
        Run the code that the evaluation file names, C files and files of metrics, without asking.
    dry_run
        Print the scenarios, the number of runs and the expected time, and do nothing.
    quiet
        No progress on stderr, only problems.
    wait
        Wait for a testbed that another command uses, as long as it takes, or at most so long: --wait 30min
    json
        Print how the runs stand as JSON.
    """
    from wirepaint.cluster import address
    from wirepaint.metrics import Keeper
    from wirepaint.runners import pool
    from wirepaint.runners.progress import Silent, on_stderr
    from wirepaint.runners.testbed import at_once

    asked = {"network": network, "http": http, "congestion": congestion, "visits": visits, "backend": backend}
    wait_s = _seconds(wait)
    if on != "local":
        address.resolve(on, "--on")  # before pages are rehearsed
    tell = (lambda _: None) if quiet else say
    order = _order(given, asked, output, until)
    planned = _planned(order, rehearse and not dry_run, trust, tell)
    if dry_run:
        _foretell(planned, order.folder, on, json)
        return
    for note in [*order.notes, *planned.notes, *planned.prospects]:
        tell(note)
    if on == "local" and any(len(one.users) > 1 for one in planned.runs.first_of_each()):
        at_once.check(planned.runs)
    with Keeper(order.folder) as keeper:
        tally = pool.carry_out(
            planned,
            order.folder,
            _backends(planned, on, tls, wait_s, quiet),
            Silent() if quiet else on_stderr(),
            _narrow_enough(),
            cannot_count=planned.cannot_count,
            keeper=keeper,
            decided=_decided(),
            medians=_medians,
            only=_only(only, planned),
        )
    _end(order, tally, json, tell)


def _medians(folder: Path) -> list[str]:
    """The visits whose traces the report shows."""
    from wirepaint import metrics
    from wirepaint.report import visits
    from wirepaint.results import Results

    runs = metrics.table(Results.open(folder), None)
    return [one.run_key for one in visits.choose(runs, ("valid",), "page_load_time") if one.role == "median"]


def _only(keys: Sequence[str] | None, planned: Plan) -> frozenset[str]:
    """The runs that are asked for; raises UsageError for a key that no run has."""
    from wirepaint.reading import hint

    asked = frozenset(each for key in keys or () for each in key.split(","))
    known = {run.key for run in planned.runs} if asked else set()
    for key in sorted(asked - known):
        raise UsageError(
            "--only", show(key), f"the key of a run of this evaluation{hint(key, sorted(known))}"
        )
    return asked


def _backends(planned: Plan, on: str, tls: Tls, wait_s: float, quiet: bool) -> list[Backend]:
    """What carries the plan out; raises UsageError for an address that is none."""
    from wirepaint.cluster import local
    from wirepaint.runners import backends

    name, files = planned.resolved["backend"], planned.resolved.get("metrics", ())
    iperf3 = any(flow.tool == "iperf3" for run in planned.runs.first_of_each() for flow in run.flows)
    if on == "local":
        captures = planned.resolved["capture"] is not None
        found = backends.named(name, captures=captures, iperf3=iperf3, wait_s=wait_s)
        return [local.backend(files) if one.name == "simulator" else one for one in found]
    from wirepaint.cluster import client, hosts

    found = []
    if name != "testbed":
        found.append(client.backend(on, tls, metric_files=files, quiet=quiet))
    if name != "simulator":
        found.append(hosts.backend(on, tls, iperf3=iperf3, quiet=quiet))
    return found


def worker(
    address: str,
    /,
    *,
    backend: Literal["testbed", "simulator"] | None = None,
    processes: int | None = None,
    name: str | None = None,
    tls: Secured = _OPEN,
) -> None:
    """Carry out runs for `run --on`, on this machine, until Ctrl-C.

    Parameters
    ----------
    address
        Of a Dask scheduler: dask://host:8786, tls://host:8786, or the path of its file.
    backend
        simulator or testbed; when left out both, the testbed where root and its programs are there.
    processes
        How many for simulated runs, each on one core; as many as there are cores when left out.
    name
        Of this host in the results of its testbed; the machine's when left out. Dask shows simulating
        processes under it, too.
    """
    from wirepaint.cluster.worker import work

    work(address, tls, processes, backend, name)


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


def init(
    *given: Given,
    output: Output = None,
    network: Values = None,
    http: Values = None,
    congestion: Values = None,
    visits: Values = None,
    backend: Values = None,
) -> None:
    """Write an evaluation file with comments, to be changed and given to `run`.

    Parameters
    ----------
    given
        Pages, and keys of the evaluation as options, as for `run`; the page blog-small when left out.
    output
        File to write; evaluation.toml when left out. A file that exists is refused.
    network
        Networks to load over.
    http
        HTTP versions.
    congestion
        Congestion controls of the servers.
    visits
        Visits of each page under each condition.
    backend
        testbed, simulator or both.
    """
    from wirepaint.evaluation import checking, drafting, options

    asked = {"network": network, "http": http, "congestion": congestion, "visits": visits, "backend": backend}
    pages, texts = options.tokens(given, ["--output"])
    file = output or Path("evaluation.toml")
    settings = options.read([*_texts(asked), *texts])
    base = file.absolute().parent
    drafted = drafting.draft(pages or ["blog-small"], settings, base)
    try:
        checking.read(drafted.data, base, str(file))
    except UsageError as error:
        of_pages = options.Setting("page", (options.AGENTS, "pages"), pages)
        raise options.said(error, [*settings, of_pages], str(file)) from None
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(drafted.text)
    except FileExistsError:
        raise UsageError(str(file), "a file that is there already", "a new file (-o)") from None
    for note in drafted.notes:
        say(note)
    print(file)
    say(f"Change it as you like. Then: {command_line('run', str(file))}")


@dataclass(frozen=True)
class _Order:
    """What a command line asks for: an evaluation file, or the ``text`` of one yet to be written."""

    file: Path
    folder: Path
    text: str | None = None
    base: Path | None = None
    """Folder from which the paths in the file start, if not its own."""
    notes: Sequence[str] = ()
    settings: Sequence[Setting] = ()
    trusted: frozenset[Path] = frozenset()
    """C files and files of metrics that the command line itself names."""
    until: str | None = None
    """What else ends the visits, in addition to the file."""
    again: Sequence[str] = ()
    """Arguments that ask for the same with another back end."""


def _order(
    given: Sequence[str], asked: Mapping[str, Sequence[str] | None], output: Path | None, until: str | None
) -> _Order:
    """Raises UsageError for every option that is wrong."""
    from wirepaint.evaluation import drafting, options
    from wirepaint.results import manifest

    arguments, texts = options.tokens(given, _OWN)
    settings = options.read([*_texts(asked), *texts])
    own = _code(settings)
    if (file := _evaluation(arguments)) is not None:
        began = (file.parent / manifest.NAME).is_file() and file.name == manifest.EVALUATION
        folder = file.parent if began else Path("results") / file.name.removesuffix(".toml")
        base = manifest.base(file.parent) if began else None
        given_too = [*_texts(asked), *texts, *([("--until", until)] if until else [])]
        options_too = () if began else [part for each in given_too if each[0] != "--backend" for part in each]
        again = (str(file), *options_too)  # the file of a results folder has the options
        return _Order(
            file, output or folder, base=base, settings=settings, trusted=own, until=until, again=again
        )
    if not arguments:
        raise UsageError("run", "no page", "a page (a HAR, a site's folder, a name) or an evaluation file")
    of_until = [options.Setting("--until", ("until", "verdict"), until)] if until else []
    drafted = drafting.draft(arguments, [*settings, *of_until])
    settings.append(options.Setting("page", (options.AGENTS, "pages"), arguments))
    folder = output or Path("results") / drafted.name
    file = folder / manifest.EVALUATION
    return _Order(
        file, folder, drafted.text, notes=drafted.notes, settings=settings, trusted=own, again=(str(file),)
    )


def _code(settings: Sequence[Setting]) -> frozenset[Path]:
    """The C files and files of metrics that options name."""
    values = [each for one in settings if one.path[-1] in ("congestion", "metrics") for each in one.value]
    names = [each if isinstance(each, str) else str(each.get("name")) for each in values]
    return frozenset(Path(name) for name in names if name.endswith((".c", ".py")))


def _planned(order: _Order, rehearse: bool, trust: bool, tell: Callable[[str], None]) -> Plan:
    from wirepaint import metric_commands, rehearsal
    from wirepaint.evaluation import editing, options, plan
    from wirepaint.results import manifest

    rehearsing = None
    if rehearse:
        rehearsing = partial(rehearsal.ensure, say=tell, begun_with=manifest.pages(order.folder))

    def trusted(named: Sequence[Path]) -> bool:
        return trust or _agreed(order.file, named)

    try:
        return plan(
            order.file,
            rehearse=rehearsing,
            trust=trusted,
            given=order.trusted,
            base=order.base,
            text=order.text or editing.edited(order.file, order.settings, order.until, order.base),
            read_metrics=metric_commands.read,
            check_primary=metric_commands.check_primary,
        )
    except NotTrusted:
        raise
    except UsageError as error:
        raise options.said(error, order.settings, str(order.file)) from None


def _evaluation(arguments: Sequence[str]) -> Path | None:
    """The evaluation file among the arguments; None if all of them are pages."""
    from wirepaint.results import manifest

    for argument in arguments:
        path = Path(argument)
        if (path / manifest.NAME).is_file():
            path /= manifest.EVALUATION
        elif not _is_evaluation(path):
            continue
        if len(arguments) > 1:
            found = f"{argument} and {counted(len(arguments) - 1, 'argument')} beside it"
            raise UsageError("run", found, "one evaluation file or results folder, or pages")
        return path
    return None


def _is_evaluation(path: Path) -> bool:
    """By its content: a recording is none, whatever its name; by its name if it cannot be read."""
    named_so = path.suffix.lower() == ".toml"
    try:
        with path.open("rb") if path.is_file() else io.BytesIO() as file:
            head = file.read(_HEAD)
    except OSError:
        return named_so
    if named_so:
        return not head.lstrip().startswith((b"{", b"[{", b"WARC/", b"PK\x03\x04", b"\x1f\x8b"))
    return re.search(rb"^\s*\[+\s*(scenarios|user_agents|flows)\s*\]", head, re.MULTILINE) is not None


def _texts(asked: Mapping[str, Sequence[str] | None]) -> list[tuple[str, str]]:
    return [(f"--{key}", text) for key, texts in asked.items() for text in texts or ()]


def _seconds(wait: str | bool) -> float:
    if isinstance(wait, bool):
        return math.inf if wait else 0.0
    from pydantic_core import PydanticCustomError

    from wirepaint.evaluation import quantities

    try:
        return quantities.time(wait) / 1e9
    except PydanticCustomError as error:
        raise UsageError(
            "--wait", show(wait), 'a time such as "30min" or "90 s", or nothing at its end'
        ) from error


def _foretell(planned: Plan, folder: Path, on: str, json: bool) -> None:
    """What a run would do, on stdout."""
    from wirepaint.runners import pace

    named = [(run.scenario, run.page_name) for run in planned.runs.first_of_each()]
    scenarios, pages = (list(dict.fromkeys(names)) for names in zip(*named, strict=True))
    warmups = planned.runs.warmups
    expected = (pace.expected if on == "local" else pace.on_workers)(planned.runs, folder)
    if json:
        print_json(
            {"title": planned.title, "scenarios": scenarios, "pages": pages}
            | {"runs": len(planned.runs), "warmups": warmups, "results": str(folder)}
            | {"expected": [vars(each) for each in expected]}
        )
        return
    more = f" and {len(scenarios) - _SHOWN} more" if len(scenarios) > _SHOWN else ""
    print(planned.title)
    print(f"{counted(len(scenarios), 'scenario')}: {', '.join(scenarios[:_SHOWN])}{more}")
    print(f"{counted(len(pages), 'page')}: {', '.join(pages[:_SHOWN])}")
    print(f"{counted(len(planned.runs) - warmups, 'run')} that count, {warmups} to warm up")
    for each in expected:
        print(each.sentence)
    print(f"Results: {folder}")


def _end(order: _Order, tally: Tally, json: bool, tell: Callable[[str], None]) -> None:
    """Prints what came of the runs; raises RunFailed if some failed, or a level has no valid run."""
    from wirepaint import metrics
    from wirepaint.results import Results
    from wirepaint.runners import pace
    from wirepaint.statistics import brief

    pace.keep(tally.seconds)
    folder = order.folder
    results = Results.open(folder)
    empty = brief.empty_levels(results)
    answer = brief.answer(results, lambda factor: _compare(folder, factor))
    if json:
        print_json(
            {"results": str(folder), "backend": results.manifest["backend"], **vars(tally)}
            | {"answers": answer.every, "without_valid_runs": empty, "upgraded": results.upgraded()}
        )
    else:
        for line in answer.brief:
            print(line)
    if not json and results.manifest["backend"] == "both":
        from wirepaint.statistics import agreement

        try:
            agreement.command(folder)
        except UsageError as error:
            say(f"No agreement of the back ends can be told: {error}")
    if (upgraded := results.upgraded()) and not json:
        say(upgraded)
    if not json:
        for mistake in metrics.mistakes(results):
            say(mistake)
    if (in_part := results.replay_in_part()) and not json:
        say(f"{', '.join(in_part)}; no rehearsal asked for the others.")
    for name, why in tally.cannot_count.items():
        say(f"{name} cannot count: {why}")
    if tally.repeats:
        tell(f"{counted(tally.repeats, 'repeat')}, {tally.repeats_in_vain} in vain")
    tell(f"{_in_words(tally)}. Results: {folder}")
    for line in _next(order, results):
        tell(line)
    said = [*empty]
    if tally.cannot_count:
        said.append(f"{counted(len(tally.cannot_count), 'page')} cannot count")
    for how, runs in {"timed out": tally.timeouts, "failed": tally.failures}.items():
        if runs:
            key, cause = next(iter(runs.items()))
            said.append(f"{counted(len(runs), 'run')} {how}; {key}: {cause}")
    if said:
        but = ", but not those that timed out" if tally.timeouts else ""
        then = f" The same command tries failed runs again{but}." if tally.failures or tally.timeouts else ""
        raise RunFailed(f"{'; '.join(said)}.{then}")


def _next(order: _Order, results: Results) -> list[str]:
    """What one may want to do now."""
    from wirepaint.statistics.compare import factors

    folder = str(order.folder)
    if not (results.compact("done")["verdict"] == "valid").any():
        return ["Next:", f"  {command_line('explain', folder, 'verdict')}"]
    lines = ["Next:", f"  {command_line('report', folder)}"]
    if compared := factors(results):
        others = f"  (also {', '.join(compared[1:])})" if len(compared) > 1 else ""
        lines.append(f"  {_compare(order.folder, compared[0])} --by-page{others}")
    if results.manifest["backend"] == "simulator":
        if said := results.fidelity():
            lines.insert(0, said)
        other = order.folder.with_name(f"{order.folder.name.removesuffix('-simulator')}-testbed")
        same = ("run", *order.again, "--backend", "testbed", "-o", str(other))
        lines.append("These runs were simulated. The testbed has Linux's TCP and real Chromium, as root:")
        lines.append(f"  {command_line(*same, root=True)}")
    return lines


def _compare(folder: Path, factor: str) -> str:
    return command_line("compare", str(folder), "--factor", factor)


def _agreed(file: Path, named: Sequence[Path]) -> bool:
    """Asks at the terminal whether C files and files of metrics that an evaluation names may be run."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{file} names code. It runs with your rights; C files also run in the kernel, as root:")
    for path in named:
        say(f"  {cut(str(path))}")
    print("Do you trust them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _in_words(tally: Tally) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(tally.counts.items())) or "no runs"


def _decided() -> Any:
    from wirepaint.statistics.compare import all_decided

    return all_decided


def _narrow_enough() -> Any:
    from wirepaint.statistics.intervals import narrow_enough

    return narrow_enough
