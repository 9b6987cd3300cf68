"""Compares two levels of a factor, everything else equal: a verdict and its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import chain
from json import dumps as to_json
from pathlib import Path

import numpy as np
import polars as pl

from wirepaint import catalogue
from wirepaint import metrics as measured
from wirepaint.errors import UsageError, show
from wirepaint.evaluation.axes import axes
from wirepaint.evaluation.visits import questions
from wirepaint.printing import say
from wirepaint.reading import nearest
from wirepaint.results import Results, examined
from wirepaint.statistics import folders, hosts, losses, ranks, shared
from wirepaint.statistics.comparison import TOO_FEW, Comparison, Level
from wirepaint.statistics.intervals import Interval, Sample, mean, median
from wirepaint.statistics.losses import Losses
from wirepaint.statistics.verdicts import Draft, judged
from wirepaint.statistics.wording import count

MARGIN = 0.02
PRIMARY = ("page-load-time",)


def compare(
    frame: pl.DataFrame,
    factor: str,
    metrics: Sequence[str],
    baseline: str | None = None,
    *,
    primary: Sequence[str] = PRIMARY,
    margin: float = MARGIN,
    by_page: bool = True,
    visits: pl.DataFrame | None = None,
    looks: int = 1,
) -> list[Comparison]:
    """Compares every level of ``factor`` with the baseline level, for each metric.

    ``frame`` is :func:`wirepaint.metrics.table`; warm-up visits are left out. The default baseline
    is the first level in the frame. Per metric and level there is a row for each
    combination of the other axes over all pages, one over all combinations if there are
    several, and with ``by_page`` one for each page. Only pages with values at both levels are used, and of
    several testbeds (column ``host``) each is a block: values are compared within a host only.
    Two levels count as the same within the share ``margin``. Rows with ``losses.LIMIT`` are visits
    that timed out; ``visits`` (``losses.visits``) gives the lost visits.

    The ``primary`` metrics are corrected among themselves, all others among themselves
    (:mod:`wirepaint.statistics.verdicts`). ``looks`` is how often the evaluation was to be judged.
    """
    rows = drafts(
        frame, factor, metrics, baseline, primary=primary, margin=margin, by_page=by_page, visits=visits
    )
    return judged(rows, looks)


def drafts(
    frame: pl.DataFrame,
    factor: str,
    metrics: Sequence[str],
    baseline: str | None = None,
    *,
    primary: Sequence[str] = PRIMARY,
    margin: float = MARGIN,
    by_page: bool = True,
    visits: pl.DataFrame | None = None,
) -> list[Draft]:
    """The rows of :func:`compare`, still without intervals and verdicts."""
    primary = [measured.full(name) for name in primary]
    return [
        draft
        for pair in _pairs(frame, factor, metrics, baseline, margin, visits)
        for draft in pair.drafts(by_page, is_primary=pair.metric.name in primary)
    ]


def of_single_pages(
    frame: pl.DataFrame, factor: str, metric: str, baseline: str
) -> dict[tuple[Hashable, ...], list[ranks.Block]]:
    """The values of each page in each set of conditions, at the baseline and at each other level.

    The keys are level, conditions and page; there is a stratum for each host. ``frame`` is that of
    :func:`compare`.
    """
    return {
        (pair.levels[1], tuple(zip(pair.others, key[:-1], strict=True)), key[-1]): pair.blocks(key)
        for pair in _pairs(frame, factor, [metric], baseline)
        for key in pair.hosts
    }


def _pairs(
    frame: pl.DataFrame,
    factor: str,
    metrics: Sequence[str],
    baseline: str | None,
    margin: float = MARGIN,
    visits: pl.DataFrame | None = None,
) -> Iterator[_Pair]:
    """Each metric at the baseline and at each other level, as :func:`compare` asks."""
    frame = frame.filter(~pl.col("warmup")) if "warmup" in frame.columns else frame
    known = [axis for axis in (folders.FOLDER, *measured.AXES) if axis in frame.columns]
    if factor not in known or factor == "page":
        raise UsageError("factor", show(factor), nearest(factor, [axis for axis in known if axis != "page"]))
    needed = {*known, hosts.HOST, losses.LIMIT, *(measured.get(each).column for each in metrics)}
    frame = frame.select(name for name in frame.columns if name in needed)
    frame = _as_text(hosts.named(frame, factor), known)
    levels = frame[factor].drop_nulls().unique(maintain_order=True).to_list()
    if len(levels) < 2:
        only = f"the one level {levels[0]!r}" if levels else "no run"
        raise UsageError(f"factor {factor}", only, "results with two levels or more that have usable runs")
    if baseline is not None and baseline not in levels:
        raise UsageError(
            f"baseline of {factor}", f"{baseline!r} with no usable run", nearest(baseline, levels)
        )
    if not 0 <= margin < 1:
        raise UsageError("margin", f"{margin:g}", "a share from 0 to less than 1")
    first = baseline or levels[0]
    # A back end or network without a visit that counts still tells the others apart.
    of_axes = [frame] if visits is None else [frame, visits]
    others = [
        axis
        for axis in known
        if axis not in (factor, "page")
        and (axis == "network" or max(part[axis].n_unique() for part in of_axes if axis in part.columns) > 1)
    ]
    others.sort(key=lambda axis: axis != "network")
    ends = _ends(visits, factor, others) if visits is not None else None
    cells = _Cells(frame, factor, others)
    for each in metrics:
        metric = measured.get(each)
        if metric.label:
            raise UsageError("metric", repr(each), "a metric that is a number")
        for candidate in levels:
            if candidate != first:
                yield _Pair(metric, factor, first, candidate, others, cells, margin, ends)


def _as_text(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of text; those of a compact table stay as they are."""
    return frame.with_columns(
        pl.col(name).cast(pl.String) for name in columns if frame.schema[name] != pl.Categorical
    )


_Key = tuple[str, ...]
"""A stratum: the levels of the other axes, then the page."""
_Values = dict[_Key, dict[str, Sample]]
"""Values by stratum and host."""
_Ends = Mapping[tuple[str, _Key, str | None], Counter[str]]
"""Numbers of visits by end, for a level, levels of the other axes (or all), and a page (or all)."""


def _ends(visits: pl.DataFrame, factor: str, others: Sequence[str]) -> _Ends:
    found: dict[tuple[str, _Key, str | None], Counter[str]] = {}
    by = [factor, *others, "page", "end"]
    numbers = _as_text(visits.select(by), by).group_by(by, maintain_order=True).len()
    for level, *group, page, end, number in numbers.iter_rows():
        for key in {(level, tuple(group), page), (level, tuple(group), None), (level, (), None)}:
            found.setdefault(key, Counter())[end] += number
    return found


class _Cells:
    """A table of visits as values by level, stratum and host: they are there once, for all comparisons."""

    def __init__(self, frame: pl.DataFrame, factor: str, others: Sequence[str]) -> None:
        by = [factor, *others, "page", hosts.HOST]
        keys = frame.select(by).unique(maintain_order=True).with_row_index("cell")
        self.has_late = losses.LIMIT in frame.columns
        self._keys = keys.drop("cell").rows()
        self._frame = frame.join(keys, on=by, how="left", nulls_equal=True, maintain_order="left").drop(by)
        self._last: tuple[str, dict[str, _Values]] = ("", {})

    @cached_property
    def late(self) -> dict[str, _Values]:
        """The limits of the visits that timed out, by level."""
        return self._by_level(losses.LIMIT)

    def of(self, column: str) -> dict[str, _Values]:
        """The values of a column by level. All comparisons of a metric come one after the other."""
        if self._last[0] != column:
            self._last = column, self._by_level(column)
        return self._last[1]

    def _by_level(self, column: str) -> dict[str, _Values]:
        part = self._frame.select("cell", pl.col(column).cast(pl.Float64)).drop_nulls(column)
        grouped = part.group_by("cell", maintain_order=True).agg(column)
        every = grouped[column].explode().to_numpy()
        ends = grouped[column].list.len().cum_sum().to_list()
        found: dict[str, _Values] = {}
        for cell, first, end in zip(grouped["cell"], [0, *ends], ends, strict=False):
            level, *key, host = self._keys[cell]
            found.setdefault(level, {}).setdefault(tuple(key), {})[host] = Sample(every[first:end])
        return found


class _Pair:
    """One metric at two levels of the factor, by stratum."""

    def __init__(
        self,
        metric: measured.Metric,
        factor: str,
        baseline: str,
        candidate: str,
        others: Sequence[str],
        cells: _Cells,
        margin: float,
        ends: _Ends | None,
    ) -> None:
        self.metric, self.factor, self.others, self.margin = metric, factor, others, margin
        self.levels, self.ends = (baseline, candidate), ends
        self.values: list[_Values] = [cells.of(metric.column).get(level, {}) for level in self.levels]
        self.late: list[_Values] = [{}, {}]
        if metric.name in losses.UNTIL_LOAD and cells.has_late:
            self.late = [cells.late.get(level, {}) for level in self.levels]
        self._blocks: dict[_Key, list[ranks.Block]] = {}
        lower, upper = (
            {key: values.get(key, {}).keys() | late.get(key, {}).keys() for key in {**values, **late}}
            for values, late in zip(self.values, self.late, strict=True)
        )
        self.hosts = {key: sorted(shared) for key in lower if (shared := lower[key] & upper.get(key, set()))}
        """The hosts with values of a stratum at both levels."""
        self.one = [key for key in {**lower, **upper} if key not in self.hosts]

    def _paired(self, of: _Values, key: _Key) -> Sample:
        """The values of a stratum on the hosts that it has at both levels."""
        of_hosts = of.get(key, {})
        found = [of_hosts[host] for host in self.hosts[key] if host in of_hosts]
        return found[0] if len(found) == 1 else Sample([*chain.from_iterable(one.values for one in found)])

    def blocks(self, key: _Key) -> list[ranks.Block]:
        """The values at both levels, of each host; visits that timed out with their limit."""

        def at(side: int, host: str) -> np.ndarray:
            found = (of[side].get(key, {}).get(host) for of in (self.values, self.late))
            arrays = [one.values for one in found if one is not None]
            return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

        if key not in self._blocks:
            self._blocks[key] = [ranks.Block((at(0, host), at(1, host))) for host in self.hosts[key]]
        return self._blocks[key]

    def _unpaired(self, keys: Sequence[_Key]) -> int:
        """Number of values whose host has none at the other level."""
        return sum(
            len(values)
            for key in keys
            for of in (*self.values, *self.late)
            for host, values in of.get(key, {}).items()
            if host not in self.hosts[key]
        )

    def drafts(self, by_page: bool, *, is_primary: bool) -> Iterator[Draft]:
        """A row for each set of conditions, with rows of its pages; then one for all conditions."""
        groups: dict[_Key, list[_Key]] = {}
        for key in self.hosts:
            groups.setdefault(key[:-1], []).append(key)
        left_out: dict[_Key, list[_Key]] = {}
        for key in self.one:
            left_out.setdefault(key[:-1], []).append(key)
        for group, keys in groups.items():
            conditions = dict(zip(self.others, group, strict=True))
            alone = left_out.get(group, [])
            yield self._draft(keys, conditions, alone, is_primary)
            if by_page and len(keys) > 1:
                yield from (self._draft([key], conditions, alone, is_primary, page=key[-1]) for key in keys)
        if len(groups) > 1 and "backend" not in self.others:
            yield self._draft([*self.hosts], {}, self.one, is_primary)

    def _draft(
        self,
        keys: Sequence[_Key],
        conditions: dict[str, str],
        left_out: Sequence[_Key],
        is_primary: bool,
        page: str | None = None,
    ) -> Draft:
        """The comparison over these strata, still without interval and verdict.

        Those that are ``left_out`` have values at one level only.
        """

        def label(key: _Key) -> str:
            return key[-1] if conditions else " / ".join(key)

        lower, upper = (
            {label(key): found for key in keys if (found := self._paired(values, key))}
            for values in self.values
        )
        late = [{label(key): self._paired(late, key) for key in keys} for late in self.late]
        strata = {label(key): self.blocks(key) for key in keys}
        both = [name for name in lower if name in upper]
        test = ranks.rank_test([*chain.from_iterable(strata.values())])
        row = Comparison(
            metric=self.metric.name,
            title=self.metric.title,
            unit=self.metric.unit,
            metric_is_primary=is_primary,
            factor=self.factor,
            conditions=conditions,
            network=conditions.get("network"),
            page=page,
            pages=tuple(dict.fromkeys(key[-1] for key in keys)),
            left_out=() if page else tuple(map(label, left_out)),
            baseline=_level(self.levels[0], lower, both, late[0]),
            candidate=_level(self.levels[1], upper, both, late[1]),
            shift=Interval(math.nan),
            shift_rel=None,
            by_stratum={},
            test=test.name,
            p=test.p,
            p_holm=math.nan,
            confidence=math.nan,
            family=0,
            effect=test.effect,
            margin=self.margin,
            verdict="",
            dissent=(),
            losses=self._losses(conditions, page),
            unpaired=self._unpaired(keys),
        )
        return Draft(row, strata)

    def _losses(self, conditions: dict[str, str], page: str | None) -> tuple[Losses, Losses] | None:
        if self.ends is None:
            return None
        ends = [self.ends.get((level, tuple(conditions.values()), page), {}) for level in self.levels]
        first, second = (losses.of(level, found) for level, found in zip(self.levels, ends, strict=True))
        return first, second


def _level(
    level: str,
    values: dict[str, Sample],
    shared: Sequence[str],
    late: Mapping[str, Sample],
) -> Level:
    strata = [values[name] for name in shared or values]
    return Level(
        level,
        n=sum(map(len, values.values())),
        median=median(*strata) if strata else None,
        mean=mean(*strata) if strata else None,
        samples=values,
        timed_out=sum(map(len, late.values())),
    )


HEADLINE = (
    "page-load-time",
    "first-contentful-paint",
    "largest-contentful-paint",
    "base-page-latency",
    "page-net-transfer-time",
    "idle-time",
    "effective-concurrency",
    "connection-duration",
)
"""Metrics of visits that are compared by default."""
OF_FLOWS = (
    "goodput",
    "flow-completion-time",
    "message-delay-p50",
    "message-delay-p99",
    "flow-retransmissions",
    "flow-share",
)
"""Metrics of flows that are compared by default."""
OF_LINK = ("jain-index", "link-utilisation", "queueing-delay-p50", "drop-rate")
"""Metrics of a run of flows alone that are compared by default."""


def headline(results: Results) -> tuple[str, ...]:
    """The metrics that are compared by default: of the visits, flows or both, and the evaluation's own."""
    evaluation = results.manifest["evaluation"]
    of_flows = OF_FLOWS if measured.all_flows(results) else ()
    usual = (*HEADLINE, *of_flows) if evaluation["user_agents"] else (*of_flows, *OF_LINK)
    return (*usual, *(name for name in measured.own(results) if not measured.get(name).label))


def factors(results: Results) -> list[str]:
    """The axes that are compared: those of several levels, without the path's where others vary."""
    varying = [axis for axis in axes() if len(measured.levels(results, axis)) > 1]
    return [axis for axis in varying if not axes()[axis].of_path] or varying


def looks(results: Results) -> int:
    """How often the evaluation was to be judged before it ended."""
    until = results.manifest["evaluation"].get("until")
    return len(until["looks"]) if until else 1


def primary(results: Results) -> tuple[str, ...]:
    """The metrics that the evaluation is for: those of its file, else page load time, or goodput."""
    evaluation = results.manifest["evaluation"]
    if named := evaluation.get("primary"):
        return tuple(map(measured.full, named))
    return PRIMARY if evaluation["user_agents"] else OF_FLOWS[:1]


def compare_results(
    results: Results,
    factor: str = "congestion",
    metrics: Sequence[str] | None = None,
    baseline: str | None = None,
    *,
    margin: float = MARGIN,
    by_page: bool = True,
    suspect: bool = False,
) -> list[Comparison]:
    """:func:`compare` over the valid runs of a results folder, with ``suspect`` over suspect ones too.

    The default baseline is the first level in the evaluation file. ``metrics`` are names,
    ``["all"]`` for all numeric metrics, None for the primary ones and :func:`headline`.
    """
    measured.own(results)
    first = primary(results)
    if metrics and "all" in metrics:
        metrics = [name for name, metric in measured.registry().items() if not metric.label]
    if baseline is None and factor in measured.AXES:
        baseline = measured.levels(results, factor)[0]
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    asked = [measured.full(name) for name in metrics or dict.fromkeys((*first, *headline(results)))]
    frame = measured.table(results, verdicts, asked, compact=True)
    if frame.is_empty():
        counted = results.compact("done").group_by("verdict").len().sort("verdict").iter_rows()
        found = ", ".join(f"{n} {verdict}" for verdict, n in counted) or "no run"
        found += "".join(f"; {page} cannot count ({why})" for page, why in results.cannot_count().items())
        accepted = "valid or suspect runs" if suspect else "valid runs (--suspect counts suspect ones too)"
        raise UsageError(str(results.folder), found, accepted)
    return compare(
        losses.with_timeouts(results, frame),
        factor,
        asked,
        baseline,
        primary=first,
        margin=margin,
        by_page=by_page,
        visits=losses.visits(results, verdicts),
        looks=looks(results),
    )


def parted_results(
    results: Results, factor: str, baseline: str | None = None, verdicts: Sequence[str] = ("valid",)
) -> list[str]:
    """:func:`wirepaint.statistics.hosts.parted` of a results folder."""
    runs = results.compact("done")
    if runs[hosts.HOST].drop_nulls().n_unique() < 2:
        return []
    runs = runs.filter(pl.col("verdict").is_in(verdicts))
    return hosts.parted(runs, factor, baseline or measured.levels(results, factor)[0])


def compare_folders(
    base: Results,
    candidate: Results,
    metrics: Sequence[str] | None = None,
    *,
    margin: float = MARGIN,
    by_page: bool = True,
    suspect: bool = False,
) -> tuple[list[Comparison], folders.Pair]:
    """:func:`compare` of two results folders: their pages under equal conditions.

    ``metrics`` as in :func:`compare_results`; by default those of ``base``.
    """
    verdicts = ("valid", "suspect") if suspect else ("valid",)
    measured.own(base)
    first = primary(base)
    asked = [measured.full(name) for name in metrics or dict.fromkeys((*first, *headline(base)))]
    if "all" in asked:
        asked = [name for name, metric in measured.registry().items() if not metric.label]
    pair = folders.read(base, candidate, asked, verdicts, margin)
    rows = compare(
        pair.table,
        folders.FOLDER,
        asked,
        pair.base,
        primary=first,
        margin=margin,
        by_page=by_page,
        visits=pair.visits,
    )
    return rows, pair


def all_decided(folder: Path, backend: str) -> bool:
    """Whether every primary comparison of a back end is decided, of each factor with several levels.

    Mixed is an answer too: more visits do not make pages agree.
    """
    results = Results.open(folder)
    evaluation = results.manifest["evaluation"]
    several = {axis: len(measured.levels(results, axis)) for axis in measured.AXES}
    pages = len(measured.levels(results, "page"))
    try:
        rows = [
            row
            for question in questions(several, pages)
            for row in compare_results(results, question.factor, primary(results), by_page=False)
        ]
    except UsageError:  # no run that counts at two levels
        return False
    if evaluation["backend"] == "both":
        rows = [row for row in rows if row.conditions.get("backend") == backend]
    return bool(rows) and all(row.verdict != TOO_FEW for row in rows)


def command(
    results_dir: Path,
    factor: str | None = None,
    json: bool = False,
    *,
    metric: Sequence[str] | None = None,
    baseline: str | None = None,
    margin: float = MARGIN,
    by_page: bool = False,
    suspect: bool = False,
    candidate: Path | None = None,
) -> None:
    """``wirepaint compare``: prints a table, or with ``json`` one JSON document, to stdout.

    With ``candidate`` that results folder is compared with the first one. Without ``factor`` the first of
    :func:`factors` is compared.
    """
    from wirepaint.statistics import terminal

    results = examined(results_dir)
    notes: list[str] = []
    others: list[str] = []
    if candidate is not None:
        rows, pair = compare_folders(
            results, examined(candidate), metric, margin=margin, by_page=by_page or json, suspect=suspect
        )
        factor, notes, ends = folders.FOLDER, pair.notes, pair.visits
        lost = losses.by_level(ends, factor, (pair.base, pair.candidate))
        apart = hosts.apart(pair.table, primary(results)[0], factor)
        parted = hosts.parted(pair.table, factor, pair.base, factor)
    else:
        others = factors(results)[1:] if factor is None else []
        factor = catalogue.called("key", factor or next(iter(factors(results)), "congestion"), axes())
        rows = compare_results(
            results, factor, metric, baseline, margin=margin, by_page=by_page or json, suspect=suspect
        )
        verdicts = ("valid", "suspect") if suspect else ("valid",)
        ends = losses.visits(results, verdicts)
        lost = losses.by_level(ends, factor, measured.levels(results, factor))
        apart = hosts.of_results(results, primary(results)[0], verdicts)
        parted = parted_results(results, factor, baseline, verdicts)
    backends = losses.by_level(ends, "backend", ("testbed", "simulator")) if factor != "backend" else []
    if results.unasked:
        notes.append(f"{count(results.unasked, 'run')} of earlier versions of the evaluation: not counted.")
    if factor == "http" and (upgraded := results.upgraded()):
        notes.append(upgraded)
    compared = {row.metric for row in rows}
    without = [
        name for name in map(measured.full, metric or headline(results)) if name not in compared | {"all"}
    ]
    notes += measured.mistakes(results, without, ("valid", "suspect") if suspect else ("valid",))
    if json:
        document = {
            "title": results.title,
            "factor": factor,
            "primary": primary(results),
            "looks": looks(results),
            "comparisons": [row.as_dict() for row in rows],
            "losses": [level.as_dict() for level in lost],
            "backends": [backend.as_dict() for backend in backends],
            "hosts": [asdict(one) | {"sentence": one.sentence} for one in apart],
            "without_values": without,
            "cannot_count": results.cannot_count(),
            "notes": notes + parted,
            "fidelity": results.fidelity(),
        }
        print(to_json(document, indent=1, ensure_ascii=False))
    else:
        notes += [*parted, *(one.sentence for one in apart)]
        shared_by = "the same page on the same host" if parted else "the same page"
        of_all = results.cannot_count(), results.fidelity(), [*backends, *lost], notes
        terminal.show(rows, without, *of_all, shared.together(results), shared_by)
        if others:
            say(f"{axes()[factor].title} was compared; --factor compares {' or '.join(others)}.")
