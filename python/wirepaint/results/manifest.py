"""The manifest of a results folder: the evaluation, the commands, the machine and the versions.

It contains the SHA-256 of its own content and that of the evaluation file beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from wirepaint import files
from wirepaint.errors import UsageError, show
from wirepaint.evaluation import axes
from wirepaint.printing import command_line
from wirepaint.reading import validate
from wirepaint.results import durable, growth, names, provenance, sealed

if TYPE_CHECKING:
    from wirepaint.evaluation import Plan

NAME = "manifest.json"
EVALUATION = "evaluation.toml"
FORMAT = 6


class _Read(BaseModel):
    """A part of the manifest, with the keys that readers need; there may be others."""

    model_config = ConfigDict(strict=True)


class _Agent(_Read):
    name: str
    page: str
    page_sha256: str
    page_by_https_sha256: str | None = None
    contents_sha256: str | None = None
    rehearsal: dict[str, Any] | None = None
    rehearsal_by_https: dict[str, Any] | None = None


class _Flow(_Read):
    name: str


class _Level(_Read):
    backend: str


if TYPE_CHECKING:
    _Scenario = _Level
else:
    columns = {name: (axis.column, ...) for name, axis in axes.axes().items()}
    _Scenario = create_model("_Scenario", __base__=_Level, **columns)


class _Kind(_Read):
    kind: str


class _Capacity(_Kind):
    bit_per_s: float | None = None


class _Direction(_Read):
    capacity: _Capacity
    delay_ns: int
    jitter: _Kind
    loss: _Kind
    queue: _Kind
    changes: list[Any] | str


class _Network(_Read):
    down: _Direction
    up: _Direction


class _Metric(_Read):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"] | None
    source: str
    needs: list[str]
    summary: str
    label: bool
    over: Literal["visit", "run", "flow"]


class _MetricFile(_Read):
    file: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    text: str
    declares: list[_Metric]


class _Evaluation(_Read):
    timeout: int = Field(gt=0)
    networks: dict[str, _Network]
    scenarios: dict[str, _Scenario] = Field(min_length=1)
    user_agents: list[_Agent]
    flows: list[_Flow]
    metrics: list[_MetricFile] = Field(default_factory=list)


class _Session(_Read):
    began: str
    command: str


class _Manifest(_Read):
    title: str
    created: str
    backend: Literal["testbed", "simulator", "both"]
    seed: int
    evaluation: _Evaluation
    evaluation_sha256: str
    base: str | None = None
    """Folder from which the paths in the evaluation file start; None for the results folder."""
    earlier: list[_Evaluation] = []
    """Earlier versions of the evaluation, without those that the present one includes."""
    journal: str
    """Identifier of the journal, which has the runs."""
    versions: dict[str, str]
    machine: dict[str, str | int | None]
    sessions: list[_Session]


def create(folder: Path, plan: Plan, versions: dict[str, str], journal: str) -> None:
    """Writes the manifest of a new folder; ``journal`` identifies its journal."""
    manifest = {
        "format": FORMAT,
        "title": plan.title,
        "created": provenance.now(),
        "backend": plan.resolved["backend"],
        "seed": plan.resolved["seed"],
        "evaluation": plan.resolved,
        "evaluation_sha256": hashlib.sha256(plan.text).hexdigest(),
        "base": _base(folder, plan),
        "earlier": [],
        "journal": journal,
        "versions": provenance.versions() | versions,
        "machine": provenance.machine(),
        "sessions": [_session()],
    }
    _write(folder, manifest)


def read(folder: Path) -> dict[str, Any]:
    """The manifest; raises UsageError if it is missing, damaged or of another format."""
    path, accepted = names.inside(folder, NAME), "a results folder, as `wirepaint run` makes it"
    if not folder.is_dir():
        raise UsageError(str(folder), "no such folder", accepted)
    manifest = sealed.parse(path, accepted)
    if "format" not in manifest:
        raise UsageError(str(path), "a damaged file", accepted)
    if manifest["format"] != FORMAT:
        found = f"format {show(manifest['format'])}"
        raise UsageError(str(path), found, f"format {FORMAT}, that of this wirepaint")
    sealed.check(manifest, path)
    validate(_Manifest, manifest, str(path))
    manifest.setdefault("earlier", [])
    return manifest


def pages(folder: Path) -> frozenset[str]:
    """SHA-256 of the pages that a folder's evaluation began with; empty if it has not begun."""
    if not (folder / NAME).exists():
        return frozenset()
    agents = read(folder)["evaluation"]["user_agents"]
    return frozenset(
        agent[key] for agent in agents for key in ("page_sha256", "page_by_https_sha256") if agent.get(key)
    )


def base(folder: Path) -> Path:
    """The folder from which the paths in a results folder's evaluation file start."""
    return folder.absolute() / (read(folder).get("base") or "")


def _base(folder: Path, plan: Plan) -> str | None:
    """For the manifest. None goes with a results folder that is moved."""
    return None if plan.base == folder.absolute() else str(plan.base)


def evaluation(folder: Path, manifest: dict[str, Any]) -> str:
    """The evaluation file of a results folder; raises UsageError if it was changed."""
    path = names.inside(folder, EVALUATION)
    content = files.content(path, sealed.LARGEST, "the evaluation file as it was")
    if hashlib.sha256(content).hexdigest() != manifest["evaluation_sha256"]:
        found = "a damaged file: its SHA-256 is not that of the manifest"
        raise UsageError(str(path), found, "the evaluation file as it was")
    return content.decode("utf-8", "replace")


def check_versions(folder: Path, manifest: dict[str, Any], versions: dict[str, str]) -> None:
    """Raises UsageError if a version of a program differs from that of the folder."""
    for name, now in (provenance.versions() | versions).items():
        was = manifest["versions"].get(name, now)
        if now != was:
            accepted = f"{name} {was}, with which its runs were made, or another folder (-o)"
            raise UsageError(str(folder), f"{name} {now}", accepted)


def is_of(manifest: dict[str, Any], plan: Plan) -> bool:
    """Whether the plan is that of the folder's evaluation."""
    return _as_json(plan.resolved) == manifest["evaluation"]


def check_growth(
    folder: Path, manifest: dict[str, Any], plan: Plan, finished: Sequence[Mapping[str, Any]]
) -> None:
    """Raises UsageError if the plan would change one of the ``finished`` rows of the journal."""
    asked = _as_json(plan.resolved)
    for was in (manifest["evaluation"], *manifest["earlier"]):
        if renewed := growth.renewed(was, asked, finished):
            more = f"; and {len(renewed) - 2} more" if len(renewed) > 2 else ""
            then = f"then {command_line('compare', str(folder), 'NEW')}"
            accepted = f"what it was, or a new folder (-o NEW); {then}"
            raise UsageError(str(plan.path), "; ".join(renewed[:2]) + more, accepted)
        if changed := sorted(growth.changes(was, asked, finished)):
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            accepted = (
                f"what the finished runs of {folder} were made with, or another folder (-o); "
                "visits, pages, networks and levels may be added"
            )
            raise UsageError(str(plan.path), "; ".join(changed[:3]) + more, accepted)


def continue_session(folder: Path, plan: Plan, versions: dict[str, str]) -> None:
    """Adds a session, with the plan as the evaluation from now on (:func:`check_growth`)."""
    manifest = read(folder)
    asked, was = _as_json(plan.resolved), manifest["evaluation"]
    earlier = [of for of in (*manifest["earlier"], was) if not growth.is_within(of, asked)]
    digest = hashlib.sha256(plan.text).hexdigest()
    if digest != manifest["evaluation_sha256"]:
        durable.write(folder / EVALUATION, plan.text)
    manifest |= {
        "title": plan.title,
        "backend": plan.resolved["backend"],
        "seed": plan.resolved["seed"],
        "evaluation": asked,
        "evaluation_sha256": digest,
        "base": _base(folder, plan),
        "earlier": earlier,
        "versions": manifest["versions"] | versions,
    }
    manifest["sessions"].append(_session())
    _write(folder, manifest)


def _session() -> dict[str, str]:
    return {"began": provenance.now(), "command": provenance.command_line()}


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    durable.write(folder / NAME, sealed.dumps(manifest))
