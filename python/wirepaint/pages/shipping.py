"""Makes the shipped pages from the recordings that they come from.

``python -m wirepaint.pages.shipping RECORDINGS`` reads ``RECORDINGS/<recording>.har.gz`` for each
recipe and writes the catalogue. Same recordings, same pages.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wirepaint.errors import WirepaintError
from wirepaint.pages import har
from wirepaint.pages.anonymise import anonymise
from wirepaint.pages.import_har import import_har
from wirepaint.pages.model import Page, Resource, keeping, load, save_index

_FACTS = "facts of a page load (sizes, types, times, causes); recording: "


@dataclass(frozen=True)
class Recipe:
    """How one page is made."""

    name: str
    recording: str
    title: str
    summary: str
    source: str
    licence: str
    shape_only: bool = False
    """True: nothing but sizes, types, times and causes is kept, under invented names."""
    until_ms: float | None = None
    """Requests that began later are left out; all others are made before the load event."""


RECIPES = [
    Recipe(
        "agency",
        "pkg-sb-agency",
        "Agency",
        "one-page business site with many logos and photos, an icon script and a script framework",
        "npm startbootstrap-agency 7.0.12, bootstrap 5.2.3, @fortawesome/fontawesome-free 6.3.0",
        "MIT",
    ),
    Recipe(
        "photos",
        "pkg-sb-creative",
        "Creative",
        "one-page photo site: few requests, most bytes in photos",
        "npm startbootstrap-creative 7.0.7, bootstrap 5, bootstrap-icons 1.5.0",
        "MIT",
    ),
    Recipe(
        "kit",
        "pkg-material-kit",
        "Material Kit",
        "show page of a user-interface kit: large pictures below many scripts",
        "npm material-kit 2.0.4, font-awesome 4.7.0, github-buttons",
        "MIT",
    ),
    Recipe(
        "shop-large",
        "masterofmalt-2024",
        "Product page of a shop",
        "shape of a large shop's product page of 2024: many scripts and pictures from 13 hosts, HTTP/2",
        "sitespeedio/chrome-har test/perflogs/early-hints.json @ bb599c6d7871",
        _FACTS + "MIT",
        shape_only=True,
        until_ms=3500.0,
    ),
    Recipe(
        "search-large",
        "bing-2024",
        "Start page of a search engine",
        "shape of a search engine's start page of 2024 with news below: scripts load pictures and data",
        "sitespeedio/chrome-har test/perflogs/bing.com.json @ bb599c6d7871",
        _FACTS + "MIT",
        shape_only=True,
        until_ms=4000.0,
    ),
    Recipe(
        "travel-large",
        "ryanair-2018",
        "Start page of an airline",
        "shape of an airline's start page of 2018: single-page application with 41 hosts",
        "sitespeedio/chrome-har test/perflogs/ryan.json @ bb599c6d7871",
        _FACTS + "MIT",
        shape_only=True,
        until_ms=4000.0,
    ),
    Recipe(
        "news-medium",
        "elsoberano-2024",
        "Start page of a news site",
        "shape of a small newspaper's AMP page of 2024: pictures and fonts from 5 hosts",
        "GoogleChrome/lighthouse core/test/fixtures/artifacts/amp/devtoolslog.json.gz @ f8eac394a68b",
        _FACTS + "Apache-2.0",
        shape_only=True,
        until_ms=2500.0,
    ),
    Recipe(
        "blog-small",
        "paulirish-2024",
        "Article of a blog",
        "shape of a personal blog of 2024: little text, fonts, one analytics script, 7 hosts",
        "GoogleChrome/lighthouse core/test/fixtures/artifacts/paul/devtoolslog.json @ f8eac394a68b",
        _FACTS + "Apache-2.0",
        shape_only=True,
        until_ms=900.0,
    ),
]


def make(recipe: Recipe, recordings: Path, out: Path) -> Page:
    """Makes one page folder at ``out`` and returns its index."""
    recording = recordings / f"{recipe.recording}.har.gz"
    with tempfile.TemporaryDirectory() as scratch:
        page = import_har(
            recording,
            Path(scratch) / "page",
            name=recipe.name,
            title=recipe.title,
            source=recipe.source,
            licence=recipe.licence,
            sizes_only=recipe.shape_only,
        )
        page = _cut(page, recipe)
        page.summary = recipe.summary
        if recipe.shape_only:
            page = anonymise(page)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for digest in {r.body for r in page.resources if r.body}:
            (out / "bodies").mkdir(exist_ok=True)
            shutil.copy(Path(scratch) / "page" / "bodies" / digest, out / "bodies" / digest)
        save_index(page, out)
    return load(out)


def _cut(page: Page, recipe: Recipe) -> Page:
    """``page`` without what the recipe leaves out; effects of what is left out go with it."""
    kept: dict[int, Resource] = {}
    for resource in page.resources:
        late = recipe.until_ms is not None and resource.recorded.start_ms > recipe.until_ms
        orphan = resource.cause.by is not None and resource.cause.by not in kept
        if late or orphan:
            continue
        kept[resource.id] = resource
        if recipe.until_ms is not None:
            recorded = resource.recorded.model_copy(update={"after_load": False})
            kept[resource.id] = resource.model_copy(update={"recorded": recorded})
    cut = keeping(page, list(kept.values()))
    resources = cut.resources
    targets = {r.cause.by for r in resources if r.cause.kind == "redirect"}
    for resource in resources:
        if 300 <= resource.status < 400 and resource.id not in targets:
            resource.status, resource.body, resource.synthetic = 204, None, False
            resource.wire_bytes = resource.decoded_bytes = 0
    notes = list(page.notes)
    if left_out := len(page.resources) - len(resources):
        notes.append(f"{left_out} late requests left out")
    return cut.model_copy(update={"notes": notes})


def main() -> int:
    """Makes all shipped pages, or those named."""
    parser = argparse.ArgumentParser(prog="python -m wirepaint.pages.shipping", description=__doc__)
    parser.add_argument("recordings", type=Path, help="folder with the recordings")
    parser.add_argument("names", nargs="*", help="pages to make; all without a name")
    parser.add_argument("-o", "--out", type=Path, default=Path(har.__file__).parents[1] / "catalog" / "pages")
    asked = parser.parse_args()
    try:
        for recipe in RECIPES:
            if not asked.names or recipe.name in asked.names:
                page = make(recipe, asked.recordings, asked.out / recipe.name)
                wire = sum(resource.wire_bytes for resource in page.resources)
                print(f"{page.name}: {len(page.resources)} requests, {wire / 1000:.0f} kB")
    except WirepaintError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
