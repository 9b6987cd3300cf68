"""The interface to the data plane: finds its program and runs its verbs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from wirepaint.errors import MachineLacks, RunFailed, UsageError

PROGRAM = "wirepaint-dataplane"


def program() -> Path:
    """Path of the program: ``$WIREPAINT_DATAPLANE``, else beside this Python, else on ``PATH``."""
    if override := os.environ.get("WIREPAINT_DATAPLANE"):
        if shutil.which(override) is None:
            raise UsageError("WIREPAINT_DATAPLANE", repr(override), f"the path of the program {PROGRAM}")
        return Path(override)
    beside = Path(sysconfig.get_path("scripts")) / PROGRAM
    if beside.exists():
        return beside
    if found := shutil.which(PROGRAM):
        return Path(found)
    raise MachineLacks(f"the program {PROGRAM} is not installed", "Run `make setup`.")


def fingerprint() -> str:
    """First half of the SHA-256 of the program, which includes the congestion controls."""
    return hashlib.sha256(program().read_bytes()).hexdigest()[:32]


def call(*arguments: str) -> Any:
    """Runs a verb that ends by itself and returns the JSON it prints."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"{PROGRAM} {arguments[0]}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def control(file: Path, place: str) -> dict[str, Any]:
    """What the congestion control of a C file says of itself; raises UsageError at ``place``."""
    done = subprocess.run([program(), "cc", "list", file], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        found, _, accepted = done.stderr.strip().partition("; accepted: ")
        as_said = "a C file as docs/guide/write-a-congestion-control.md says"
        raise UsageError(place, found.removeprefix(f"{place}: "), accepted or as_said)
    return json.loads(done.stdout)[0]
