"""Shipped pages as they were imported: without what their rehearsals found."""

from __future__ import annotations

import shutil
from pathlib import Path

from wirepaint.pages import model
from wirepaint.pages.catalogue import shipped


def unrehearsed(name: str, folder: Path) -> Path:
    """A copy of a shipped page in ``folder`` that was never rehearsed."""
    target = folder / f"unrehearsed-{name}"
    shutil.copytree(shipped()[name], target)
    page = model.load(target)
    kept = [
        resource.model_copy(update={"rehearsed": None, "patterns": []})
        for resource in page.resources
        if not resource.stand_in
    ]
    model.save_index(page.model_copy(update={"resources": kept, "rehearsal": None}), target)
    return target
