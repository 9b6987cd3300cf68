"""The pages that come with wirepaint."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from wirepaint.pages.model import INDEX


def shipped() -> dict[str, Path]:
    """Name and folder of each page in the catalogue, by name."""
    root = Path(str(resources.files("wirepaint"))) / "catalog" / "pages"
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / INDEX).is_file()}
