"""The manifest of a results folder: what was asked, and by whom and on what it was carried out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirepaint.errors import UsageError
from wirepaint.results import durable, provenance

if TYPE_CHECKING:
    from wirepaint.evaluation import Plan

NAME = "manifest.json"
FORMAT = 1


def create(folder: Path, plan: Plan, versions: dict[str, str]) -> None:
    """Writes the manifest of a new folder."""
    manifest = {
        "format": FORMAT,
        "title": plan.title,
        "created": provenance.now(),
        "backend": plan.resolved["backend"],
        "seed": plan.resolved["seed"],
        "evaluation": plan.resolved,
        "runs": [run.key for run in plan.runs],
        "versions": provenance.versions() | versions,
        "machine": provenance.machine(),
        "sessions": [],
    }
    _write(folder, manifest)


def read(folder: Path) -> dict[str, Any]:
    """The manifest; raises UsageError when there is none or it is damaged or of another format."""
    path = folder / NAME
    try:
        manifest = json.loads(path.read_bytes())
        version = manifest["format"]
    except OSError as error:
        found = str(error.strerror).lower() if folder.is_dir() else "no such folder"
        raise UsageError(str(path), found, "the manifest of a results folder") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(str(path), "a damaged file", "the manifest of a results folder") from None
    if version != FORMAT:
        raise UsageError(str(path), f"format {version}", f"format {FORMAT}, that of this wirepaint")
    return manifest


def continue_session(folder: Path, plan: Plan, versions: dict[str, str]) -> None:
    """Adds a session; raises UsageError when the evaluation or a version is not that of the folder."""
    manifest = read(folder)
    differences = list(_differences(manifest["evaluation"], json.loads(json.dumps(plan.resolved))))
    if differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise UsageError(
            str(plan.path),
            "; ".join(differences[:3]) + more,
            f"the evaluation that {folder} was begun with, or another folder (-o)",
        )
    for name, now in (provenance.versions() | versions).items():
        was = manifest["versions"].get(name)
        if now != was:
            accepted = f"{name} {was}, with which its runs were made, or another folder (-o)"
            raise UsageError(str(folder), f"{name} {now}", accepted)
    manifest["sessions"].append({"began": provenance.now(), "command": provenance.command_line()})
    _write(folder, manifest)


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    durable.write(folder / NAME, json.dumps(manifest, indent=1).encode() + b"\n")


def _differences(was: Any, now: Any, path: str = "") -> list[str]:
    """What differs, a sentence each."""
    if isinstance(was, dict) and isinstance(now, dict):
        found = []
        for key in dict.fromkeys([*was, *now]):
            inner = f"{path}.{key}" if path else key
            if key not in now:
                found.append(f"{inner} is gone")
            elif key not in was:
                found.append(f"{inner} is new")
            else:
                found += _differences(was[key], now[key], inner)
        return found
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [line for i, (a, b) in pairs for line in _differences(a, b, f"{path}[{i}]")]
    if was != now:
        return [f"{path} was {_short(was)} and is {_short(now)}"]
    return []


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"
