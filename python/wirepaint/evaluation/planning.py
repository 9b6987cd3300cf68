"""Plans the runs of an evaluation file: the product of the axes, in seeded random order.

- A *scenario* is one combination of the axes. Its name joins the values of network, congestion
  and HTTP version, ``iwN`` if initial windows are given, ``together`` if all hosts are one server, and
  the back end if both are asked for:
  ``lte-fld-h2``, ``lte-fld-h2-iw10``, ``lte-fld-h2-simulator``.
- A *run* is one visit of one page by one user agent in one scenario, with the flows beside it. Its key
  is ``<scenario>.<user agent>.<page>.v<visit>``. Users ``together`` share a run, with all of their visits:
  ``<scenario>.<group>.v<visit>``. Without user agents a run is the flows alone:
  ``<scenario>.flows.v<visit>``.
- Visits 1 to N are counted. Visit 0 is the *warm-up* and enters no statistic: every scenario and
  page is loaded at least once before the first counted visit, to fill the machine's
  file cache and the store of prepared pages. Each visit has its own browser, connections and
  namespaces, so only the machine itself is warm in the next visit.
- *Order*: all first visits in random order, then all second visits, and so on: a drift of the
  machine affects all scenarios alike. The same file gives the same order.
- *Seeds*: a run's seed depends on the evaluation's seed, path, user agent, page and visit, not
  on the transport or the back end. So compared transports have the same random loss and jitter
  (common random numbers), and the interval of their difference is narrower.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from wirepaint import catalogue, files
from wirepaint.errors import NotTrusted, UsageError
from wirepaint.evaluation import background as backgrounds
from wirepaint.evaluation import checking, own_metrics, pages, proxies, runs, sysctls
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import flows as of_flows
from wirepaint.evaluation import network as networks
from wirepaint.evaluation import users as of_users
from wirepaint.evaluation.axes import axes, levels
from wirepaint.evaluation.background import Background
from wirepaint.evaluation.checking import BackendName
from wirepaint.evaluation.congestion import Congestion, named, slug
from wirepaint.evaluation.flows import PlannedFlow
from wirepaint.evaluation.model import BACKENDS, EvaluationFile, Stop
from wirepaint.evaluation.network import Network
from wirepaint.evaluation.options import Setting, applied
from wirepaint.evaluation.proxies import Proxy
from wirepaint.evaluation.runs import Alone, Changed, ResolvedRun, Runs, Scenario
from wirepaint.evaluation.users import PageResolver, Rehearse, Visitor
from wirepaint.evaluation.visits import ENOUGH, Question, enough, prospects, questions
from wirepaint.reading import LARGEST_FILE, differ, located, parsed, show

MOST_RUNS, MOST_WITH_TRACES, MOST_SCENARIOS = 1_000_000, 100_000, 10_000
NOT_CAPTURED = (
    "Simulated runs have no captures. packet_trace = true keeps their packets; "
    "`export --to pcapng` makes files of them."
)
C_FILES = "C files that you trust: they are compiled and run with your rights, and in the kernel as root"
TRUSTED_METRICS = "files of metrics that you trust: Python that runs with your rights"
Trust = Callable[[Sequence[Path]], bool]
"""Whether these files of an evaluation, in C or Python, may be run."""


@dataclass(frozen=True)
class Plan:
    """All runs of an evaluation in the order in which they are carried out.

    ``resolved`` is the evaluation as JSON, with defaults filled in and references resolved:
    two plans with the same ``resolved`` have the same runs.
    """

    path: Path
    base: Path
    """Folder from which the paths in the file start."""
    text: bytes
    title: str
    runs: Runs
    stop: Stop | None
    looks: tuple[int, ...]
    """Numbers of visits after which the evaluation ends if it is decided (``until``); empty without."""
    resolved: dict[str, Any]
    cannot_count: dict[str, str]
    """Why no visit of a page can count, by page name."""
    notes: list[str]
    """What was found while planning, for the user."""
    prospects: list[str]
    """What the numbers of visits can decide."""

    def renamed(self, keys: Mapping[str, str]) -> Plan:
        """The same plan; ``keys`` gives other keys to some runs."""

        def change(run: ResolvedRun) -> ResolvedRun:
            return run.model_copy(update={"key": keys[run.key]}) if run.key in keys else run

        return replace(self, runs=Changed(self.runs, change)) if keys else self

    @property
    def keep(self) -> Literal["all", "medians", "metrics"]:
        """Whose traces stay in the results folder."""
        return self.resolved["results"]["keep"]


def plan(
    path: Path,
    backend: str | None = None,
    page_resolver: PageResolver = pages.resolve,
    congestion: Sequence[str] = (),
    rehearse: Rehearse | None = None,
    trust: Trust | None = None,
    until: str | None = None,
    settings: Sequence[Setting] = (),
    text: str | None = None,
    read_metrics: own_metrics.Read | None = None,
    check_primary: own_metrics.Check | None = None,
    given: Collection[Path] = (),
    base: Path | None = None,
) -> Plan:
    """Reads an evaluation file and resolves it into runs; raises UsageError.

    ``backend`` and ``congestion`` (names, or paths of C files relative to the working directory) replace
    the file's; ``until`` (``decided``) adds the table; errors name the options of the command line.
    ``rehearse`` gets every page that a run may load. ``trust`` decides whether C files named in the file are
    compiled and run; without its consent they are refused (NotTrusted). So are its files of metrics, which
    ``read_metrics`` reads. ``given`` are files that the user named just now: ``trust`` is not asked for them.
    ``check_primary`` checks each name of ``primary``. Both come before ``rehearse``.
    ``settings`` replace values of the file. ``text`` is the content of a file that is yet to be written to
    ``path``. Paths in the file start from ``base``, by default its folder.
    """
    text = files.text(path, LARGEST_FILE, "a TOML file") if text is None else text
    data = applied(parsed(text, path), settings)
    if backend is not None:
        if catalogue.called("backend", backend, BACKENDS) not in BACKENDS:
            raise UsageError("--backend", show(backend), catalogue.nearest("backend", backend, BACKENDS))
        data["backend"] = backend
    if congestion and isinstance(data.get("scenarios"), dict):
        data["scenarios"].pop("congestion", None)
    if until is not None:
        data.setdefault("until", {"verdict": until})
    base, place = base or path.absolute().parent, str(path)
    file = checking.read(data, base, place, page_resolver is pages.resolve, own_controls=not congestion)
    backends = checking.backends(file.backend)
    of_metrics = own_metrics.paths(file.metrics, base, place)
    _trusted(file, base, place, trust, of_metrics, given, c_files=not congestion)
    kept_metrics = own_metrics.resolve(of_metrics, read_metrics)
    own_metrics.check_primary(file.primary, place, check_primary)
    asked = _questions(file, congestion)
    file, looks = _with_visits(file, asked)
    _check_count(file, backends, congestion, place)
    sysctls.check(file.sysctls, f"{place}: sysctls", backends)
    scenarios = list(_scenarios(file, backends, base, place, congestion))
    differ([scenario.name for scenario in scenarios], [f"{place}: scenarios"] * len(scenarios))
    flows = of_flows.resolve(file.flows, backends, base, f"{place}: flows")
    beside = [flow for scenario in scenarios for flow in scenario.background.flows]
    for scenario in scenarios:
        _iperf3_can_carry([*flows, *scenario.background.flows], f"{place}: flows")
    visitors = of_users.resolve(file, backends, base, place, page_resolver)
    imported = [page.said for visitor in visitors for page in visitor.pages if page.said]
    controls = {f"flow {flow.name}": flow.congestion for flow in (*flows, *beside)}
    controls |= {f"user agent {m.name}": m.congestion for visitor in visitors for m in visitor.members}
    _kernel_settings_hold(file, controls, place)
    for proxy in {scenario.proxy.name for scenario in scenarios if scenario.proxy.squid}:
        of_users.check_hosts(visitors, proxy, place)
    visitors = of_users.by_version(visitors, [scenario.http for scenario in scenarios])
    if rehearse is not None and visitors:
        visitors = of_users.rehearsed(visitors, rehearse)
    return Plan(
        path=path,
        base=base,
        text=text.encode(),
        title=file.title,
        runs=runs.planned(file, scenarios, visitors or [Alone(file.repeats or enough(asked))], flows),
        stop=file.stop,
        looks=looks,
        resolved=_resolved(file, scenarios, visitors, flows, looks) | kept_metrics,
        cannot_count={
            visitor.page: why
            for visitor in visitors
            for page in visitor.pages
            if (why := page.cannot_count) is not None
        },
        notes=[
            *dict.fromkeys(imported),
            *dict.fromkeys(
                note
                for scenario in scenarios
                if (note := backgrounds.said(scenario.background, scenario.network)) is not None
            ),
            *([NOT_CAPTURED] if file.capture and "simulator" in backends else []),
        ],
        prospects=list(prospects(asked, looks[0] if looks else _fewest_visits(file, asked), looks)),
    )


def _questions(file: EvaluationFile, congestion: Sequence[str]) -> list[Question]:
    """What the evaluation asks; ``congestion`` replaces the file's, unless empty."""
    levels = {axis: len(file.scenarios.values(axis)) for axis in axes()}
    if congestion:
        levels["congestion"] = len(congestion)
    served = sum(len(agent.pages) for agent in file.user_agents)
    return questions(levels, served or len(file.flows), len(file.primary or [""]))


def _with_visits(file: EvaluationFile, asked: Sequence[Question]) -> tuple[EvaluationFile, tuple[int, ...]]:
    """The file with the visits that it leaves open, or the most of ``until``; and the looks of ``until``."""
    number = enough(asked, len(file.until.looks(ENOUGH)) if file.until else 1)
    agents = [
        agent if "visits" in agent.model_fields_set else agent.model_copy(update={"visits": number})
        for agent in file.user_agents
    ]
    looks: tuple[int, ...] = ()
    if file.until is not None:
        looks = file.until.looks(agents[0].visits)
        agents = [agent.model_copy(update={"visits": looks[-1]}) for agent in agents]
    return file.model_copy(update={"user_agents": agents}), looks


def _fewest_visits(file: EvaluationFile, asked: Sequence[Question]) -> int:
    return min((agent.visits for agent in file.user_agents), default=file.repeats or enough(asked))


def _trusted(
    file: EvaluationFile,
    base: Path,
    place: str,
    trust: Trust | None,
    of_metrics: Mapping[str, Path],
    given: Collection[Path],
    *,
    c_files: bool,
) -> None:
    """Raises NotTrusted unless ``trust`` agrees to run the file's own C files and files of metrics."""
    controls = enumerate(file.scenarios.values("congestion") if c_files else ())
    c_named = {
        f"{place}: scenarios.congestion[{i}]": name for i, c in controls if (name := congestions.own_file(c))
    }
    paths = {where: located(name, base, where) for where, name in c_named.items()} | dict(of_metrics)
    named = c_named | dict(zip(of_metrics, file.metrics, strict=True))
    paths = {where: path for where, path in paths.items() if path not in given}
    if paths and not (trust and trust(list(dict.fromkeys(paths.values())))):
        kinds = [C_FILES] if c_named.keys() & paths.keys() else []
        kinds += [TRUSTED_METRICS] if of_metrics.keys() & paths.keys() else []
        written = dict.fromkeys(named[where] for where in paths)
        raise NotTrusted(next(iter(paths)), ", ".join(map(show, written)), "; ".join(kinds))


def _check_count(file: EvaluationFile, backends: list[BackendName], asked: Sequence[str], place: str) -> None:
    values = {axis: file.scenarios.values(axis) for axis in axes()} | ({"congestion": asked} if asked else {})
    scenarios = math.prod(map(len, [backends, *values.values()]))
    if scenarios > MOST_SCENARIOS:
        raise UsageError(
            f"{place}: scenarios", f"{scenarios} scenarios", f"at most {MOST_SCENARIOS} scenarios"
        )
    alone = sum(len(agent.pages) * agent.visits for agent in file.user_agents if agent.group is None)
    groups = {agent.group: agent.visits for agent in file.user_agents if agent.group is not None}
    visits = alone + sum(groups.values())
    count = scenarios * (visits or file.repeats or enough(_questions(file, asked)))
    if count > MOST_RUNS:
        raise UsageError(place, f"{count} runs", f"at most {MOST_RUNS} runs")
    if count > MOST_WITH_TRACES and file.results.keep == "all":
        accepted = (
            f'at most {MOST_WITH_TRACES} runs whose traces stay, or results.keep = "metrics" or "medians"'
        )
        raise UsageError(place, f"{count} runs", accepted)


def _scenarios(
    file: EvaluationFile, backends: list[BackendName], base: Path, place: str, asked: Sequence[str]
) -> Iterator[Scenario]:
    """The product of the axes; ``asked`` replaces the congestion controls of the file, unless empty."""
    written = file.scenarios
    path = f"{place}: scenarios"
    resolved = {axis: written.values(axis) for axis in axes()}
    resolved["network"] = _networks(written.values("network"), base, f"{path}.network")
    resolved["congestion"] = _controls(file, backends, base, f"{path}.congestion", asked)
    given = written.model_fields_set
    varying = {axis for axis, values in resolved.items() if len(values) > 1}
    named_by = {"always": axes().keys(), "given": given, "varying": varying}
    in_name = [name for name, axis in axes().items() if name in named_by[axis.named]]
    if not file.user_agents:
        if "http" in given:
            raise UsageError(f"{path}.http", show(resolved["http"]), "no such key without user_agents")
        in_name.remove("http")
    own = [control.label for control in resolved["congestion"] if control.own_initial_window]
    if "initial_window" in given and own:
        found = f"{resolved['initial_window']} with {', '.join(own)}"
        if len(own) == len(resolved["congestion"]):
            accepted = "no such key: this congestion control chooses the window of a new connection itself"
            raise UsageError(f"{path}.initial_window", found, accepted)
        if len(resolved["initial_window"]) > 1:
            accepted = "one value, for the others: that one chooses the window of a new connection itself"
            raise UsageError(f"{path}.initial_window", found, accepted)
    beside = _backgrounds(file, resolved["background"], resolved["network"], backends, base, place)
    through = _proxies(file, resolved, backends, base, place)
    for *values, backend in itertools.product(*resolved.values(), backends):
        of = dict(zip(resolved, values, strict=True))
        of["background"] = beside[of["background"], of["network"].name]
        of["proxy"] = through[proxies.level(of["proxy"])]
        parts = [axes()[axis].tag(axes()[axis].level(of[axis])) for axis in in_name]
        parts += [written.servers] if written.servers == "together" else []
        parts += [backend] if len(backends) > 1 else []
        name = "-".join(slug(part) for part in parts)
        yield Scenario(name=name, backend=backend, servers=written.servers, **of)


def _backgrounds(
    file: EvaluationFile,
    names: Sequence[str],
    of_networks: Sequence[Network],
    backends: list[BackendName],
    base: Path,
    place: str,
) -> dict[tuple[str, str], Background]:
    """The background traffic of each level on each network."""
    where = [f"{place}: background[{i}].name" for i in range(len(file.background))]
    differ([table.name for table in file.background], where)
    own = {of_flows.table_of(flow.name) for flow in file.flows}
    found = {}
    for index, name in enumerate(names):
        at = f"{place}: scenarios.background[{index}]"
        level, table = backgrounds.resolve(name, file.background, backends, base, at, f"{place}: background")
        if both := own & {of_flows.table_of(flow.name) for flow in level.flows}:
            accepted = "a name that no table of flows has"
            raise UsageError(f"{place}: background, {name}: flows", show(both.pop()), accepted)
        for network in of_networks:
            found[name, network.name] = backgrounds.fitted(
                level, table, network, f"{place}: background, {name}"
            )
    return found


def _iperf3_can_carry(flows: Sequence[PlannedFlow], place: str) -> None:
    if (number := sum(flow.tool == "iperf3" for flow in flows)) > of_flows.MOST_OF_IPERF3:
        accepted = f"at most {of_flows.MOST_OF_IPERF3} in a run: each has two processes"
        raise UsageError(place, f"{number} of iperf3", accepted)


def _proxies(
    file: EvaluationFile,
    levels: Mapping[str, Sequence[Any]],
    backends: list[BackendName],
    base: Path,
    place: str,
) -> dict[str, Proxy]:
    """The proxies of each level, by its name."""
    where = [f"{place}: proxies[{i}].name" for i in range(len(file.proxies))]
    differ([table.name for table in file.proxies], where)
    found = proxies.resolve(
        levels["proxy"], file.proxies, backends, place, lambda name, at: _network(name, base, at)
    )
    light = [n for n, agent in enumerate(file.user_agents) if agent.browser.engine == "light"]
    for index, value in enumerate(levels["proxy"]):
        name = proxies.level(value)
        at, proxy = f"{place}: scenarios.proxy[{index}]", found[name]
        if proxy.parts and not file.user_agents:
            accepted = f"{show(proxies.NONE)} without user_agents: flows do not pass a proxy"
            raise UsageError(at, show(value), accepted)
        if proxy.squid and light:
            accepted = f'"chromium" with proxy {name}: light browsers know no forward proxy'
            raise UsageError(f"{place}: user_agents[{light[0]}].browser", '"light"', accepted)
        if proxy.squid and proxy.squid.tls == "terminate" and levels["http"] != ["h1"]:
            accepted = '["h1"]: a proxy that ends TLS speaks HTTP/1.1 to browsers'
            raise UsageError(f"{place}: scenarios.http", f"{levels['http']} with proxy {name}", accepted)
        needed = {k: v for part in proxy.parts for k, v in part.congestion.sysctls.items()}
        for key, needs in needed.items():
            if str(file.sysctls.get(key)) != str(needs):
                accepted = f'that value under sysctls of the evaluation ("{key}" = {needs})'
                raise UsageError(f"{at}: congestion", f"{show(value)}, which needs {key} = {needs}", accepted)
    return found


def _kernel_settings_hold(
    file: EvaluationFile, controls: Mapping[str, Congestion | None], place: str
) -> None:
    """Raises UsageError for a congestion control that needs a kernel setting that its runs do not have.

    A setting holds for all connections of a run, so it is not changed for one flow or user.
    """
    for whose, control in controls.items():
        for name, value in (control.sysctls if control else {}).items():
            if str(file.sysctls.get(name)) != str(value):
                found = f"{control.label if control else ''}, which needs {name} = {value}"
                accepted = (
                    f'that value under sysctls of the evaluation ("{name}" = {value}): it holds for all flows'
                )
                raise UsageError(f"{place}: {whose}: congestion", found, accepted)


def _controls(
    file: EvaluationFile, backends: list[BackendName], base: Path, path: str, asked: Sequence[str]
) -> list[Congestion]:
    values = file.scenarios.values("congestion")
    places = ["--congestion"] * len(asked) or [f"{path}[{i}]" for i in range(len(values))]
    controls = [
        congestions.resolve(value, where, backends, Path.cwd() if asked else base)
        for value, where in zip(asked or values, places, strict=True)
    ]
    differ([congestion.label for congestion in controls], places)
    return controls


def _networks(values: Sequence[Any], base: Path, path: str) -> list[Network]:
    places = [f"{path}[{i}]" for i in range(len(values))]
    resolved: list[Network] = []
    for value, where in zip(values, places, strict=True):
        resolved.append(_network(value, base, where))
        if sum(network.opportunities for network in resolved) > networks.MOST_OPPORTUNITIES:
            raise UsageError(where, "more than that", f"{networks.TRACES} in all networks together")
    differ([slug(network.name) for network in resolved], places)
    return resolved


def _network(value: Any, base: Path, place: str) -> Network:
    if isinstance(value, str):
        network = networks.load(value, base, place)
        named(network.name, place)
        return network
    return networks.resolve(value, named(value.title, f"{place}.title"), base, place)


def _resolved(
    file: EvaluationFile,
    scenarios: list[Scenario],
    visitors: list[Visitor],
    flows: tuple[PlannedFlow, ...],
    looks: tuple[int, ...],
) -> dict[str, Any]:
    as_written = file.model_dump(
        exclude={"scenarios", "user_agents", "flows", "background", "proxies", "metrics"}
    )
    unique = {scenario.network.name: scenario.network for scenario in scenarios}
    backends = list(dict.fromkeys(scenario.backend for scenario in scenarios))
    if file.until is not None:
        as_written["until"]["looks"] = list(looks)
    return as_written | {
        "backend": "both" if len(backends) > 1 else backends[0],
        "networks": {name: network.fingerprint() for name, network in unique.items()},
        "congestion": {scenario.congestion.label: scenario.congestion.model_dump() for scenario in scenarios},
        "scenarios": {
            scenario.name: levels(scenario)
            | scenario.model_dump(include={"backend", "servers"})
            | ({"beside": b.model_dump()} if (b := scenario.background).flows else {})
            | ({"through": p.model_dump()} if (p := scenario.proxy).parts else {})
            for scenario in scenarios
        },
        "flows": [flow.model_dump() for flow in flows],
        "user_agents": [
            member.agent.model_dump(exclude={"pages"})
            | {"name": member.name, "group": member.agent.group, "page": page.name}
            | {"page_sha256": page.sha256, "contents_sha256": page.contents, "rehearsal": page.rehearsal}
            | (_by_https(page.by_https) if page.by_https else {})
            for visitor in visitors
            for member in visitor.members
            for page in member.pages
        ],
    }


def _by_https(page: pages.PageRef) -> dict[str, Any]:
    return {"page_by_https_sha256": page.sha256, "rehearsal_by_https": page.rehearsal}
