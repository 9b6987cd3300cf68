"""Two results folders side by side, such as this week's pages against last week's.

The folder is the compared factor: runs are strata by network, user agent, page and the other axes, as in one
folder. So both folders must have measured on the same paths, by the same back end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wirepaint import metrics as measured
from wirepaint.errors import UsageError
from wirepaint.pages.show import is_busy
from wirepaint.results import Results, growth
from wirepaint.statistics import losses

FOLDER = "folder"
"""Column with the name of the folder that a row comes from: the factor of their comparison."""
OTHER_AMOUNT = 0.1
"""Share of a page's objects or bytes by which a folder must have more or fewer to be named."""


@dataclass(frozen=True)
class Pair:
    """The visits of two folders that can be compared.

    ``base`` and ``candidate`` are their names, in the column ``FOLDER`` of ``table``
    (:func:`wirepaint.metrics.table`, with visits that timed out) and of ``visits``
    (:func:`wirepaint.statistics.losses.visits`). ``notes`` says what else differs between the folders, and
    what only one of them has and is left out. ``every`` is the table with what is left out.
    """

    base: str
    candidate: str
    table: pl.DataFrame
    visits: pl.DataFrame
    notes: list[str]
    every: pl.DataFrame


def read(
    base: Results,
    candidate: Results,
    metrics: Sequence[str],
    verdicts: Sequence[str],
    margin: float,
) -> Pair:
    """Reads the ``metrics`` of two folders; ``margin`` is the share within which values count as the same.

    Raises UsageError if a network or a metric of the same name is another one, or if no page has runs that
    count under the same conditions in both.
    """
    names = _names(base, candidate)
    _same_paths(base, candidate)
    _same_metrics(base, candidate, metrics)
    folders = tuple(zip((base, candidate), names, strict=True))
    tables = [
        losses.with_timeouts(of, measured.table(of, verdicts, metrics)).with_columns(_from(name))
        for of, name in folders
    ]
    ends = [losses.visits(of, verdicts).with_columns(_from(name)) for of, name in folders]
    hosts = [set(each["host"].drop_nulls()) for each in tables]
    notes = list(_notes(base, candidate, tables, verdicts, margin))
    if all(hosts) and not hosts[0] & hosts[1]:
        # No host is in both: visits of different hosts are compared, and the notes say so.
        tables = [each.with_columns(host=pl.lit(None, pl.String)) for each in tables]
        was, now = (", ".join(sorted(each)) for each in hosts)
        notes.append(f"host was {was} and is {now}: a difference may come from it.")
    table = pl.concat(_of_both(tables), how="diagonal_relaxed")
    if table.is_empty():
        was, now = map(_conditions, tables)
        accepted = f"runs that count of a page and conditions of {base.folder}, such as {was}"
        raise UsageError(str(candidate.folder), now, accepted)
    every = pl.concat(tables, how="diagonal_relaxed")
    return Pair(*names, table, pl.concat(_of_both(ends)), notes, every)


def _from(name: str) -> pl.Expr:
    return pl.lit(name).alias(FOLDER)


def _names(base: Results, candidate: Results) -> tuple[str, str]:
    """Short names of two folders; raises UsageError if they are one."""
    paths = [of.folder.absolute().resolve() for of in (base, candidate)]
    if paths[0] == paths[1]:
        raise UsageError(str(candidate.folder), "the first results folder again", "another results folder")
    if paths[0].name != paths[1].name:
        return paths[0].name, paths[1].name
    return str(base.folder), str(candidate.folder)


def _same_paths(base: Results, candidate: Results) -> None:
    was, now = (of.manifest["evaluation"]["networks"] for of in (base, candidate))
    for name in was.keys() & now.keys():
        if found := growth.differences(was[name], now[name], f"network {name}"):
            raise UsageError(str(candidate.folder), found[0], f"the networks of {base.folder}")


def _same_metrics(base: Results, candidate: Results, asked: Sequence[str]) -> None:
    was, now = map(_own_metrics, (base, candidate))
    for name in map(measured.full, asked):
        if was.get(name) != now.get(name):
            of_file = now.get(name, "")[:12]
            found = f"the metric {name} of a file with SHA-256 {of_file}" if of_file else f"no metric {name}"
            accepted = f"the metric as {base.folder} has it, or other metrics; `run` takes a changed file"
            raise UsageError(str(candidate.folder), found, accepted)


def _own_metrics(results: Results) -> dict[str, str]:
    """The SHA-256 of the file that declares each of the evaluation's own metrics."""
    entries = results.manifest["evaluation"].get("metrics", ())
    return {one["name"]: entry["sha256"] for entry in entries for one in entry["declares"]}


def _of_both(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The rows of each of two frames whose page and conditions the other one has, too."""
    first, second = frames
    return [_joined(first, second, "semi"), _joined(second, first, "semi")]


def _joined(frame: pl.DataFrame, other: pl.DataFrame, how: Any) -> pl.DataFrame:
    return frame.join(other, on=list(measured.AXES), how=how, maintain_order="left")


def _conditions(table: pl.DataFrame) -> str:
    counted = table.select(measured.AXES).unique(maintain_order=True)
    shown = [" / ".join(map(str, row)) for row in counted.head(2).iter_rows()]
    more = f" and {counted.height - 2} more" if counted.height > 2 else ""
    return ", ".join(shown) + more or "no run that counts"


def _notes(
    base: Results,
    candidate: Results,
    tables: Sequence[pl.DataFrame],
    verdicts: Sequence[str],
    margin: float,
) -> Iterator[str]:
    versions = [of.manifest["versions"] for of in (base, candidate)]
    for name in dict.fromkeys([*versions[0], *versions[1]]):
        was, now = (each.get(name, "not used") for each in versions)
        if was != now:
            yield f"{name} was {_short(was)} and is {_short(now)}: a difference may come from it."
    pages = [_pages(of, "page_sha256", "page_by_https_sha256") for of in (base, candidate)]
    known = sorted(pages[0].keys() & pages[1].keys())
    changed = [name for name in known if pages[0][name] != pages[1][name]]
    contents = [_pages(of, "contents_sha256") for of in (base, candidate)]
    again = [
        name for name in changed if None not in contents[0][name] and contents[0][name] == contents[1][name]
    ]
    if others := [name for name in changed if name not in again]:
        yield f"Pages that changed: {', '.join(others)}."
        yield from _of_amounts(others, [_amounts(of, verdicts) for of in (base, candidate)])
    rehearsed = [{name for name in again if of.rehearsals().get(name)} for of in (base, candidate)]
    if both := [name for name in again if name in rehearsed[0] & rehearsed[1]]:
        yield f"Pages with the same contents, rehearsed again: {', '.join(both)}."
    if one := [name for name in again if name in rehearsed[0] ^ rehearsed[1]]:
        yield f"Pages with the same contents, rehearsed in one of the two folders only: {', '.join(one)}."
    for of in (base, candidate):
        ends = of.runs()["state"]
        if left := ends.is_in(["planned", "running"]).sum():
            of_all = f"{left} of {ends.len()} runs are not done"
            yield f"{of.folder} is unfinished, {of_all}: wirepaint run {of.folder}"
    for name in changed:
        yield from _of_rehearsals(name, base, candidate, margin)
    for of, own, other in ((base, *tables), (candidate, *reversed(tables))):
        alone = _joined(own, other, "anti")
        if not alone.is_empty():
            yield f"Only in {of.folder}, not compared: {_conditions(alone)}."


def _amounts(results: Results, verdicts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Objects and bytes of each page that has them: medians over the visits that count."""
    table = measured.table(results, verdicts, ("objects", "bytes-transferred"))
    medians = table.group_by("page").agg(pl.col("objects", "bytes_transferred").median()).drop_nulls()
    return {page: (objects, size) for page, objects, size in medians.iter_rows()}


def _of_amounts(pages: Sequence[str], amounts: Sequence[dict[str, tuple[float, float]]]) -> Iterator[str]:
    """Names the changed pages that load much less or more than before: a broken page is a fast one."""
    first, second = amounts
    for page in pages:
        if page not in first or page not in second:
            continue
        was, now = first[page], second[page]
        shares = [after / before - 1 for before, after in zip(was, now, strict=True) if before]
        if not any(abs(share) > OTHER_AMOUNT for share in shares):
            continue
        what = "less than before; is it whole?" if min(shares) < -OTHER_AMOUNT else "more than before."
        (objects, size), (objects_now, size_now) = was, now
        yield (
            f"{page} loads {objects_now:,.0f} objects, {size_now / 1000:,.0f} kB, "
            f"after {objects:,.0f} objects, {size / 1000:,.0f} kB: {what}"
        )


def _of_rehearsals(page: str, base: Results, candidate: Results, margin: float) -> Iterator[str]:
    """Warns of simulated visits of a page whose rehearsals differ, if one is off by more than the margin."""
    if "testbed" in (base.manifest["backend"], candidate.manifest["backend"]):
        return
    for name in (page, f"{page} by https"):
        was, now = (of.rehearsals().get(name) or {} for of in (base, candidate))
        errors = [of.get("error") for of in (was, now)]
        others = [of.get("others_cpu") for of in (was, now)]
        said = []
        if any(error is not None and error > margin for error in errors):
            was_off, is_off = map(_share, errors)
            said.append(f"the simulator was {was_off} off in the first, {is_off} off in the second")
        if any(map(is_busy, others)):
            had, have = map(_share, others)
            said.append(f"others had {had} of the CPU time in the first, {have} in the second")
        if said:
            yield f"Rehearsals of {name}: {'; '.join(said)}: a difference may come from the rehearsal."


def _share(value: float | None) -> str:
    return "an unknown share" if value is None else f"{100 * value:.1f} %"


def _pages(results: Results, *digests: str) -> dict[str, set[str | None]]:
    """The digests of each page by its name."""
    found: dict[str, set[str | None]] = {}
    for agent in results.manifest["evaluation"]["user_agents"]:
        found.setdefault(agent["page"], set()).update(agent.get(digest) for digest in digests)
    return found


def _short(version: str) -> str:
    return version if len(version) <= 40 else f"{version[:12]}…"
