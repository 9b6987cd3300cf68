"""Metrics of a user's own, in Python files that an evaluation names under ``metrics``.

The manifest keeps each file's text and SHA-256 and what its metrics declare. The file is code that runs with
the reader's rights, so it is executed only where its text is trusted: by ``run`` after ``--trust`` or a yes
at the terminal, and from then on by all commands of the same user. Elsewhere its metrics are known by name,
and null with the reason.
"""

from __future__ import annotations

import hashlib
import linecache
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from wirepaint import files
from wirepaint.errors import UsageError, cut
from wirepaint.metrics._metric import Metric, Missing, Trace
from wirepaint.pages import cache as caches

LARGEST = 2**18
"""Bytes of a file of metrics."""
GUIDE = "docs/guide/metrics.md"
DECLARED = tuple(
    field.name
    for field in fields(Metric)
    if field.name not in ("function", "by_item", "of_item", "file", "sha256")
)
"""What a manifest keeps of a metric."""


def read(path: Path, place: str = "") -> dict[str, Any]:
    """A file of metrics as a manifest keeps it: ``file``, ``sha256``, ``text``, ``declares``.

    Executes the file. Raises UsageError at ``place`` for a file that fails or declares no metric.
    """
    text = files.text(path, LARGEST, "a Python file that can be read", f"{place}: {path}" if place else "")
    entry = {"file": path.name, "sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text}
    found = _metrics(text, path.name, place or str(path))
    return entry | {"declares": [{key: getattr(one, key) for key in DECLARED} for one in found]}


def of(entry: Mapping[str, Any], place: str, agreed: bool = False) -> list[Metric]:
    """The metrics of a file that a manifest keeps; without values where its text is not trusted.

    ``agreed``: the user agreed to it on another machine.
    """
    if hashlib.sha256(entry["text"].encode()).hexdigest() != entry["sha256"]:
        raise UsageError(
            place, f"another text of {entry['file']} than its SHA-256 says", "the text as it was"
        )
    if agreed or trusted(entry["sha256"]):
        return _metrics(entry["text"], entry["file"], place)

    def untrusted(_: Trace) -> float:
        raise Missing(
            f"{entry['file']} is not trusted here; wirepaint metric trust RESULTS shows it and asks"
        )

    whose = {"file": entry["file"], "sha256": f"{entry['sha256']} untrusted"}
    return [Metric(**_declared(kept), function=untrusted, **whose) for kept in entry["declares"]]


def _declared(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {key: kept[key] for key in DECLARED} | {"needs": tuple(kept["needs"])}


def trusted(sha256: str) -> bool:
    """Whether this user agreed to execute the file with this SHA-256."""
    return (_agreements() / sha256).exists()


def trust(sha256: str) -> None:
    """Keeps that this user agreed to execute the file with this SHA-256."""
    caches.make_folder(_agreements())
    try:
        (_agreements() / sha256).touch()
    except OSError as error:
        raise caches.unwritable(_agreements(), error) from None


def _agreements() -> Path:
    return caches.cache_dir().parent / "trusted-metrics"


@cache
def _metrics(text: str, file: str, place: str) -> list[Metric]:
    """Executes a file and gives the metrics that it declares."""
    accepted = f"a Python file with a metric, as {GUIDE} shows"
    module = ModuleType(file.removesuffix(".py"))
    # With its lines known, an error of the file shows them.
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        exec(compile(text, file, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise UsageError(place, _said(error, file), accepted) from None
    found = [one for one in vars(module).values() if isinstance(one, Metric) and _is_of(one, module)]
    if not found:
        raise UsageError(place, f"no metric in {file}", accepted)
    for one in found:
        one.file, one.sha256 = file, hashlib.sha256(text.encode()).hexdigest()
        one.function = _guarded(one.function, one.label, file)
    return found


def _is_of(metric: Metric, module: ModuleType) -> bool:
    return metric.function.__module__ == module.__name__


def _guarded(function: Callable[[Trace], Any], label: bool, file: str) -> Callable[[Trace], float | str]:
    """The same function, whose mistakes are reasons for a missing value: other metrics are not lost."""

    def value(trace: Trace) -> float | str:
        try:
            found = function(trace)
        except Missing:
            raise
        except Exception as error:
            raise Missing(_said(error, file)) from None
        if label and isinstance(found, str):
            return found
        if label or isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            wanted = "a text" if label else "a finite number"
            raise Missing(f"{file} gave {cut(repr(found), 60)}, not {wanted}")
        return float(found)

    return value


def _said(error: BaseException, file: str) -> str:
    """An error of a user's file in one line, with the last line of the file that led to it."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    where = f"{file} line {line}" if line else file
    said = error.msg if isinstance(error, SyntaxError) else str(error).partition("\n")[0]
    return f"{where}: {type(error).__name__}: {said}"
