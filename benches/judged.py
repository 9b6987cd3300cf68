"""Makes the judged pages again: bodies from npm packages, shapes from recordings.

    .venv/bin/python benches/judged.py [NAME ...] [--packages FOLDER] [--recordings FOLDER] [--table]

judged/recipes.toml says what each page is made of. Packages are fetched by ``npm pack NAME@VERSION`` into
the folder and kept there. Shapes need ``--recordings``, a folder of ``<recording>.har.gz``; without it
only pages with bodies are made. ``--table`` only writes the table of judged/README.md anew.
"""

from __future__ import annotations

import argparse
import base64
import fnmatch
import json
import mimetypes
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from wirepaint.errors import UsageError, WirepaintError
from wirepaint.pages import references
from wirepaint.pages.import_har import import_har
from wirepaint.pages.model import Page, load, save_index
from wirepaint.pages.shipping import Recipe, make

JUDGED = Path(__file__).resolve().parents[1] / "judged"
RECIPES = JUDGED / "recipes.toml"
RECORDED = datetime(2026, 11, 23, 12, tzinfo=UTC)
"""The day on which the pages with bodies were put together."""

BEGIN, END = "<!-- pages: benches/judged.py --table -->", "<!-- end of pages -->"
HEAD = (
    "| name | requests | hosts | on the wire | content | made of | licence |\n|---|--:|--:|--:|---|---|---|"
)
LATIN1 = "latin-1"
"""Bodies are text whose positions are bytes, whatever their charset."""

_MIME = {
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8", "json": "application/json",
    "woff2": "font/woff2", "woff": "font/woff", "ttf": "font/ttf", "svg": "image/svg+xml",
    "webp": "image/webp", "avif": "image/avif",
}  # fmt: skip
_COMPRESSED = ("text/", "javascript", "json", "svg")
_FACE = re.compile(r"@font-face\s*\{.*?\}", re.S | re.I)
_MODULE = re.compile(r"""(?:^|[;}\s])(?:import|export)\b[^"'`;()]*?["'](\.{1,2}/[^"']+)["']""", re.M)
_FORMATS = ("woff2", "woff", "ttf", "otf")
_LICENCE = re.compile(r"(licen[cs]e|copying|mit-license|notice)[^/]*$", re.I)


def recipes() -> dict[str, list[dict[str, Any]]]:
    """``bodies`` and ``shapes`` of the recipe file."""
    return tomllib.loads(RECIPES.read_text())


class Packages:
    """npm packages in a folder, fetched where they are missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, package: str) -> Path:
        """The unpacked folder of ``name@version``."""
        name = package.removeprefix("@").replace("/", "-")
        stem = re.sub(r"@(?=[^@]*$)", "-", name)
        folder = self._folder / stem
        if not folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            archive = self._folder / f"{stem}.tgz"
            if not archive.is_file():
                subprocess.run(
                    ["npm", "pack", "--silent", package], cwd=self._folder, check=True, stdout=subprocess.PIPE
                )
            with tempfile.TemporaryDirectory(dir=self._folder) as scratch, tarfile.open(archive) as tar:
                tar.extractall(scratch, filter="data")
                (root,) = Path(scratch).iterdir()
                root.rename(folder)
        return folder

    def place(self, place: str) -> Path:
        """``name@version/path`` in its package."""
        match = re.fullmatch(r"((?:@[^/]+/)?[^/@]+@[^/]+)(?:/(.*))?", place)
        if not match:
            raise UsageError(str(RECIPES), repr(place), "PACKAGE@VERSION/PATH or own/FOLDER")
        return self.path(match[1]) / (match[2] or "")

    def licence(self, package: str) -> tuple[str, str]:
        """The licence's name and its text, of a package."""
        folder = self.path(package)
        about = json.loads((folder / "package.json").read_text())
        name = about.get("license") or about.get("licenses", [{}])[0]
        name = name.get("type", "") if isinstance(name, dict) else name
        found = sorted(path for path in folder.iterdir() if path.is_file() and _LICENCE.search(path.name))
        author = about.get("author", "")
        author = author.get("name", "") if isinstance(author, dict) else author
        stated = f"No licence file in the package. package.json: {name}, author {author or 'not named'}."
        return str(name), found[0].read_text(errors="replace").strip() if found else stated


@dataclass
class File:
    """One answer of a site."""

    url: str
    body: bytes
    mime: str
    initiator: str
    initiator_type: str


class Site:
    """The requests of a recipe's page, found without running its scripts."""

    def __init__(self, recipe: dict[str, Any], packages: Packages) -> None:
        self._recipe = recipe
        self._roots = [
            (prefix, JUDGED / "own" / place[4:] if place.startswith("own/") else packages.place(place))
            for prefix, place in sorted(recipe["hosts"].items(), key=lambda item: -len(item[0]))
        ]
        self._made = {one["url"]: self._joined(one, packages) for one in recipe.get("made", [])}
        self._without: list[str] = recipe.get("without", [])
        self._modules: set[str] = set()
        self.found: dict[str, File] = {}

    def _joined(self, made: dict[str, Any], packages: Packages) -> bytes:
        """A stylesheet joined from parts; ``./files/`` becomes ``files`` and the package's name."""
        texts = []
        for part in made["parts"]:
            name = part.rpartition("@")[0].rpartition("/")[2]
            texts.append(packages.place(part).read_text().replace("./files/", f"{made['files']}{name}/"))
        return "\n".join(texts).encode()

    def walk(self) -> list[File]:
        """Every answer, in an order in which causes come before effects."""
        start = self._recipe["page"]
        queue = deque([(start, "", "other")])
        for url in self._recipe.get("modules", []):
            self._modules.add(urljoin(start, url))
        also = {
            urljoin(start, by): [urljoin(start, url) for url in urls]
            for by, urls in self._recipe.get("also", {}).items()
        }
        asked: set[str] = set()
        while queue:
            url, by, kind = queue.popleft()
            file = self._take(url, by, kind)
            if file is None:
                continue
            queue.extend((child, url, "parser") for child in self._children(file))
            if file.url in self._modules:
                modules = [urljoin(url, found) for found in _MODULE.findall(file.body.decode(LATIN1))]
                self._modules.update(modules)
                queue.extend((module, url, "script") for module in modules)
            for child in also.get(url, []):
                asked.add(url)
                if child.endswith((".js", ".mjs")) and file.url in self._modules:
                    self._modules.add(child)
                queue.append((child, url, "script"))
        if missing := sorted(
            set(also) - asked | {u for urls in also.values() for u in urls} - set(self.found)
        ):
            raise UsageError(
                f"{RECIPES}: {self._recipe['name']}", ", ".join(missing[:3]), "files of the page"
            )
        return list(self.found.values())

    def _take(self, url: str, by: str, kind: str) -> File | None:
        if url in self.found or any(fnmatch.fnmatchcase(url, pattern) for pattern in self._without):
            return None
        body = self._body(url)
        if body is None:
            return None
        suffix = urlsplit(url).path.rpartition(".")[2].lower()
        guessed = "text/css; charset=utf-8" if url in self._made else _MIME.get(suffix)
        mime = guessed or mimetypes.guess_type(urlsplit(url).path)[0] or "text/html; charset=utf-8"
        file = File(url, body, mime, by, kind)
        self.found[url] = file
        return file

    def _body(self, url: str) -> bytes | None:
        if url in self._made:
            return self._made[url]
        for prefix, root in self._roots:
            if not url.startswith(prefix):
                continue
            path = root / unquote(urlsplit(url[len(prefix) :]).path)
            if path.is_dir():
                path /= "index.html"
            if not path.is_file():
                continue
            body = path.read_bytes()
            if path.suffix in (".html", ".js", ".css"):
                for old, new in self._recipe.get("edits", []):
                    body = body.replace(old.encode(), new.encode())
            return body
        return None

    def _children(self, file: File) -> Iterator[str]:
        text = file.body.decode(LATIN1)
        if "html" in file.mime:
            markup = references.read_html(text, file.url)
            for reference in markup.found:
                if reference.url not in markup.icons:
                    yield reference.url
        elif "css" in file.mime:
            # Of the formats of a font a browser fetches the best one alone.
            for face in _FACE.findall(text):
                urls = [reference.url for reference in references.in_css(face, file.url)]
                by_format = {urlsplit(url).path.rpartition(".")[2].lower(): url for url in reversed(urls)}
                best = next((by_format[name] for name in _FORMATS if name in by_format), None)
                if best:
                    yield best
            for reference in references.in_css(_FACE.sub("", text), file.url):
                yield reference.url


def with_bodies(recipe: dict[str, Any], packages: Packages, out: Path) -> Page:
    """Makes a page with bodies, through a HAR: sizes, encodings and blanking are the import's own."""
    licences = {package: packages.licence(package) for package in recipe["packages"]}
    stated = [recipe.get("licence", {}).get(package, name) for package, (name, _) in licences.items()]
    own = urlsplit(recipe["page"]).hostname
    entries = []
    for number, file in enumerate(Site(recipe, packages).walk()):
        host = urlsplit(file.url).hostname
        headers = {"content-type": file.mime, "cache-control": "public, max-age=3600"}
        if any(word in file.mime for word in _COMPRESSED) and len(file.body) > 200:
            headers |= {"content-encoding": "gzip" if host == own else "br", "vary": "accept-encoding"}
        if host != own:
            headers |= {"access-control-allow-origin": "*", "timing-allow-origin": "*"}
        content = {"size": len(file.body), "mimeType": file.mime, "encoding": "base64"}
        entries.append(
            {
                "startedDateTime": (RECORDED + timedelta(milliseconds=number)).isoformat(),
                "time": 0,
                "request": {"method": "GET", "url": file.url, "headers": []},
                "response": {
                    "status": 200,
                    "httpVersion": "h2",
                    "headers": [{"name": name, "value": value} for name, value in headers.items()],
                    "content": content | {"text": base64.b64encode(file.body).decode()},
                },
                "_initiator": {"type": file.initiator_type, "url": file.initiator},
            }
        )
    log = {"version": "1.2", "creator": {"name": "benches/judged.py", "version": "1"}, "entries": entries}
    with tempfile.TemporaryDirectory() as scratch:
        har = Path(scratch) / f"{recipe['name']}.har"
        har.write_text(json.dumps({"log": log}))
        page = import_har(
            har,
            out,
            name=recipe["name"],
            title=recipe["title"],
            source="npm " + ", ".join(" ".join(package.rsplit("@", 1)) for package in recipe["packages"]),
            licence=", ".join(dict.fromkeys(", ".join(stated).split(", "))),
        )
    page.summary = recipe["summary"]
    save_index(page, out)
    notices = [f"{package}\n\n{text}\n" for package, (_, text) in licences.items()]
    notices += [f"{part}\n\n{packages.place(part).read_text()}\n" for part in recipe.get("notices", [])]
    (JUDGED / "LICENSES").mkdir(exist_ok=True)
    (JUDGED / "LICENSES" / f"{recipe['name']}.txt").write_text(f"\n{'-' * 79}\n".join(notices))
    return page


def shape(recipe: dict[str, Any], recordings: Path, out: Path) -> Page:
    """Makes a page of facts alone, as those that ship are made."""
    return make(Recipe(shape_only=True, **recipe), recordings, out)


def table() -> str:
    """The table of judged/README.md, from the pages themselves."""
    lines = []
    for folder in sorted(path.parent for path in JUDGED.glob("*/page.json")):
        page = load(folder)
        hosts = {urlsplit(resource.url).hostname for resource in page.resources}
        wire = sum(resource.wire_bytes for resource in page.resources)
        size = f"{wire / 1e6:.1f} MB" if wire >= 1e6 else f"{wire / 1e3:.0f} kB"
        content = "bodies" if any(resource.body for resource in page.resources) else "shape"
        cells = (page.name, len(page.resources), len(hosts), size, content, page.source, page.licence)
        lines.append("| " + " | ".join(map(str, (f"`{cells[0]}`", *cells[1:]))) + " |")
    return "\n".join([HEAD, *lines])


def write_table() -> None:
    """Puts the table into judged/README.md."""
    readme = JUDGED / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")


def main() -> int:
    """Makes the requested pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these pages; all without a name")
    cache = Path("~/.cache/wirepaint/npm").expanduser()
    parser.add_argument("--packages", type=Path, default=cache, help=f"folder of packages, {cache}")
    parser.add_argument("--recordings", type=Path, help="folder of the recordings of the shapes")
    parser.add_argument("--table", action="store_true", help="only the table of judged/README.md")
    asked = parser.parse_args()
    known = recipes()
    names = {recipe["name"] for kind in known.values() for recipe in kind}
    try:
        if unknown := sorted(set(asked.names) - names):
            raise UsageError("NAME", ", ".join(unknown), ", ".join(sorted(names)))
        made: list[Page] = []
        for kind, all_of_kind in known.items():
            for recipe in [] if asked.table else all_of_kind:
                if asked.names and recipe["name"] not in asked.names:
                    continue
                out = JUDGED / recipe["name"]
                if kind == "bodies":
                    made.append(with_bodies(recipe, Packages(asked.packages), out))
                elif asked.recordings:
                    made.append(shape(recipe, asked.recordings, out))
        for page in made:
            wire = sum(resource.wire_bytes for resource in page.resources)
            print(f"{page.name}: {len(page.resources)} requests, {wire / 1000:.0f} kB")
        write_table()
    except WirepaintError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
