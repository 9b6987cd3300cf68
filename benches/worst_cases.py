"""The largest and the worst that each kind of foreign file may hold (benches/mutate.py --worst)."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import brotli

BASE = "https://site.test/"
MIB = 2**20


# Pages.


def resource(number: int, kind: str = "image", by: int | None = None, **keys: Any) -> dict[str, Any]:
    mime = {"html": "text/html", "image": "image/png", "js": "text/javascript", "data": "application/json"}
    return {
        "id": number,
        "url": f"{BASE}{number or ''}",
        "headers": [["content-type", mime.get(kind, "text/css")]],
        "synthetic": True,
        "type": kind,
        "wire_bytes": 900,
        "decoded_bytes": 900,
        "cause": {"by": by, "kind": "navigation" if by is None else "script", "after_ms": 1.0},
        **keys,
    }


def index(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"format": 1, "name": "worst", "url": BASE, "resources": [resource(0, "html"), *resources]}


def gzipped(kind: str, wire: int, decoded: int = 128 * MIB) -> dict[str, Any]:
    headers = [["content-type", "text/html"], ["content-encoding", "gzip"]]
    return index(resource(1, kind, 0, headers=headers, wire_bytes=wire, decoded_bytes=decoded))


def shape() -> dict[str, Any]:
    made = index(*(resource(n, "image", 0) for n in range(1, 5000)))
    places = [{"of": n % 4999 + 1, "at": n, "element": "image"} for n in range(5_000)]
    outline = {"body_at": 9, "elements": 300_000, "inline_scripts": list(range(2_000)), "places": places}
    made["resources"][0] |= {"outline": outline, "wire_bytes": 100 * MIB, "decoded_bytes": 100 * MIB}
    return made


def also() -> dict[str, Any]:
    found = {"asked": 1.0, "start_ms": 1.0}
    made = index(*(resource(n, "js", 0, rehearsed=found) for n in range(1, 4900)))
    for each in made["resources"][101:]:
        each["rehearsed"] = found | {"by": list(range(1, 101))}
    return made


PAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "a chain of images": lambda: index(*(resource(n, "image", n - 1) for n in range(1, 5000))),
    "a chain of data": lambda: index(*(resource(n, "data", n - 1) for n in range(1, 5000))),
    "a chain of scripts": lambda: index(*(resource(n, "js", n - 1) for n in range(1, 5000))),
    "a chain of redirects": lambda: index(
        *(
            resource(n, "html", n - 1, status=302, cause={"by": n - 1, "kind": "redirect"})
            for n in range(1, 5000)
        )
    ),
    "all of one script": lambda: index(
        resource(1, "js", 0), *(resource(n, "image", 1) for n in range(2, 5000))
    ),
    "all after all": also,
    "a shape of very many elements": shape,
    "a text": lambda: index(resource(1, "js", 0, wire_bytes=128 * MIB, decoded_bytes=128 * MIB)),
    "a text in gzip": lambda: gzipped("js", 40 * MIB),
    "a text in gzip that hardly compresses": lambda: gzipped("js", 110 * MIB),
    "a text of nothing on the wire": lambda: gzipped("js", 1),
    "two texts in Brotli": lambda: index(
        *(
            resource(
                n,
                "css",
                0,
                headers=[["content-encoding", "br"]],
                wire_bytes=30 * MIB,
                decoded_bytes=100 * MIB,
            )
            for n in (1, 2)
        )
    ),
    "pictures, fonts and films": lambda: index(
        *(
            resource(n, kind, 0, headers=[["content-type", mime]], wire_bytes=size, decoded_bytes=size)
            for n, (kind, mime, size) in enumerate(
                [
                    ("image", "image/png", 50 * MIB),
                    ("image", "image/jpeg", 50 * MIB),
                    ("image", "image/gif", 50 * MIB),
                    ("font", "font/woff2", 50 * MIB),
                    ("media", "video/mp4", 50 * MIB),
                ],
                1,
            )
        )
    ),
    "a film": lambda: index(resource(1, "media", 0, wire_bytes=128 * MIB, decoded_bytes=128 * MIB)),
    "very many headers": lambda: index(
        *(resource(n, "image", 0, headers=[["a", "b"]] * 59) for n in range(1, 5000))
    ),
}


BODIES = {
    "tags": ("html", b"<a "),
    "zeros": ("html", b"\0"),
    "addresses": ("html", b'<img srcset=",,'),
    "rules": ("css", b"a{b:url(x)}"),
    "imports": ("js", b"import('./1');"),
    "a picture": ("image", b"\xff\xd8\xff"),
}


def _stored(folder: Path, kind: str, text: bytes) -> Path:
    """A page with a large stored body."""
    (folder / "page/bodies").mkdir(parents=True)
    size = 120 * MIB
    body = gzip.compress((text * (size // len(text) + 1))[:size], 1)
    digest = hashlib.sha256(body).hexdigest()
    (folder / "page/bodies" / digest).write_bytes(body)
    stored = {"synthetic": False, "body": digest, "wire_bytes": len(body), "decoded_bytes": size}
    stored["headers"] = [["content-encoding", "gzip"]]
    made = index(resource(1, kind, 0, **stored))
    if kind == "html":
        made = index()
        made["resources"][0] |= stored
    (folder / "page/page.json").write_text(json.dumps(made))
    return folder / "page"


def _page(folder: Path, made: Callable[[], dict[str, Any]]) -> Path:
    (folder / "page").mkdir()
    (folder / "page/page.json").write_text(json.dumps(made()))
    return folder / "page"


# Recordings.


def entry(url: str, **keys: Any) -> dict[str, Any]:
    content = {"size": 900, "mimeType": "text/html", **keys.pop("content", {})}
    response = {"status": 200, "headers": [], "content": content, **keys}
    request = {"method": "GET", "url": url, "headers": []}
    return {"startedDateTime": "2026-01-02T03:04:05Z", "time": 5.0, "request": request, "response": response}


def har(*entries: dict[str, Any], **keys: Any) -> bytes:
    return json.dumps({"log": {"entries": list(entries), **keys}}).encode()


HARS: dict[str, Callable[[], bytes]] = {
    "as many requests as may be": lambda: har(
        *(entry(f"{BASE}{n}", headers=[{"name": "a", "value": "b"}] * 80) for n in range(5000))
    ),
    "as many addresses of one host": lambda: har(*(entry(f"{BASE}?{n}" + "x" * 8000) for n in range(5000))),
    "a chain of redirects": lambda: har(
        *(entry(f"{BASE}{n}", status=302, redirectURL=f"{BASE}{n + 1}") for n in range(4999)),
        entry(f"{BASE}4999"),
    ),
    "a large document": lambda: har(entry(BASE, content={"text": "<a " * 20 * MIB})),
    "a document of addresses": lambda: har(
        entry(BASE, content={"text": "<img src=a>" * 5 * MIB}), *(entry(f"{BASE}{n}") for n in range(4000))
    ),
    "documents of addresses": lambda: har(
        *(entry(f"{BASE}{n}", content={"text": "<img src=a>" * (MIB // 12)}) for n in range(90))
    ),
    "text that compresses slowly": lambda: har(
        entry(BASE, content={"text": slow(40 * MIB)}, headers=[{"name": "content-encoding", "value": "gzip"}])
    ),
    "the same in Brotli": lambda: har(
        entry(BASE, content={"text": slow(40 * MIB)}, headers=[{"name": "content-encoding", "value": "br"}])
    ),
    "very many values": lambda: har(entry(BASE), x=[0] * 3_900_000),
    "very many objects": lambda: har(entry(BASE), x=[{}] * 490_000),
    "very many pages": lambda: har(entry(BASE), pages=[{"id": "p"}] * 490_000),
    "very many bad entries": lambda: har(*([{"a": 1}] * 400_000)),
    "a long number": lambda: har(entry(BASE)).replace(b"900", b"9" * 90 * MIB),
    "nothing but spaces": lambda: b" " * 96 * MIB,
    "gzip of very many members": lambda: gzip.compress(b"") * 4_000_000,
}


def slow(size: int) -> str:
    chance = random.Random(1)
    pieces = ["a" * chance.randrange(200) + chance.choice("bcd") for _ in range(5000)]
    text = "".join(pieces)
    return (text * (size // len(text) + 1))[:size]


def record(kind: str, url: str, block: bytes, number: int = 0) -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-06T07:08:09Z\r\n"
    return f"{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


def answer(body: bytes, headers: bytes = b"", url: str = BASE) -> bytes:
    return record(
        "response", url, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + headers + b"\r\n" + body
    )


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "empty lines": lambda: gzip.compress(answer(b"x") + b"\n" * 500 * MIB, 1),
    "records of nothing": lambda: gzip.compress(record("metadata", BASE, b"") * 90_000 + answer(b"x"), 1),
    "answers of nothing": lambda: gzip.compress(
        b"".join(answer(b"", url=f"{BASE}{n}") for n in range(90_000)), 1
    ),
    "pages of nothing": lambda: gzip.compress(
        b"".join(answer(b"<p>", b"x: y\r\n" * 8, f"{BASE}{n}") for n in range(90_000)), 1
    ),
    "fields": lambda: gzip.compress(
        (b"WARC/1.1\r\n" + b"a:\r\n" * 900 + b"Content-Length: 0\r\n\r\n") * 90_000, 1
    ),
    "headers": lambda: gzip.compress(answer(b"x", b"a:\r\n" * 900) * 90_000, 1),
    "long headers": lambda: gzip.compress(answer(b"x", b"a:" + b"b" * 200_000 + b"\r\n") * 2000, 1),
    "one large block": lambda: gzip.compress(record("response", BASE, bytes(500 * MIB)), 1),
    "bombs": lambda: b"".join(
        answer(gzip.compress(bytes(60 * MIB)), b"Content-Encoding: gzip\r\n", f"{BASE}{n}") for n in range(30)
    ),
    "bombs in bombs": lambda: answer(
        gzip.compress(gzip.compress(gzip.compress(bytes(60 * MIB)))),
        b"Content-Encoding: gzip, gzip, gzip\r\n",
    ),
    "chunks": lambda: answer(b"1\r\nx\r\n" * 10 * MIB, b"Transfer-Encoding: chunked\r\n"),
    "Brotli of nothing": lambda: answer(brotli.compress(b"") * 10 * MIB, b"Content-Encoding: br\r\n"),
    "members": lambda: b"".join(gzip.compress(record("metadata", BASE, b"")) for _ in range(90_000)),
    "very many files in a zip": lambda: zipped(300_000, b""),
    "very many bombs in a zip": lambda: zipped(300, bytes(100 * MIB)),
}


def zipped(count: int, content: bytes) -> bytes:
    made = io.BytesIO()
    packed = gzip.compress(content, 9) if content else b""
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(f"archive/{number}.warc.gz"), packed)
    return made.getvalue()


def event(number: int, **keys: Any) -> dict[str, Any]:
    request = {"url": f"{BASE}{number}", "method": "GET", "headers": {"a": "b"}}
    return {
        "method": "Network.requestWillBeSent",
        "params": {"requestId": str(number), "request": request, **keys},
    }


LOGS: dict[str, Callable[[], bytes]] = {
    "events of nothing": lambda: b"[" + b"{}," * 299_999 + b"{}]",
    "events of other things": lambda: json.dumps([{"method": "Page.x", "params": {}}] * 240_000).encode(),
    "requests": lambda: json.dumps([event(n) for n in range(120_000)]).encode(),
    "a request sent very often": lambda: json.dumps([event(1)] * 120_000).encode(),
    "lines of nothing": lambda: b"{}\n" * 30 * MIB,
    "empty lines": lambda: b"{}" + b"\n" * 90 * MIB,
    "wrapped text": lambda: json.dumps([{"message": json.dumps({"message": "[" * 30_000})}] * 1000).encode(),
}


# Evaluations.

START = 'title = "Worst"\nbackend = "simulator"\n'
AGENT = '[[user_agents]]\npages = ["./page"]\n'
DOWN = '{title = "n%d", down = {%s}, up = {}}'


def networks(count: int, down: str, more: str = "") -> str:
    listed = ", ".join(DOWN % (number, down) for number in range(count))
    return f"{START}[scenarios]\nnetwork = [{listed}]\n{more}{AGENT}"


EVALUATIONS: dict[str, Callable[[], str]] = {
    "as many runs as may be": lambda: networks(
        100, "", f"initial_window = [{', '.join(map(str, range(1, 101)))}]\n"
    ).replace('"./page"]', '"./page"]\nvisits = 10'),
    "changes": lambda: networks(
        2, "changes = [" + ", ".join('{at = "1 s", rate = "1 Mbit/s"}' for _ in range(9_999)) + "]"
    ),
    "traces": lambda: networks(60, 'trace = "./own.up"'),
    "networks that are alike": lambda: networks(100, 'rate = "1 Mbit/s"').replace('"n9', '"n8'),
    "user agents": lambda: networks(1, "") + AGENT * 30_000,
    "keys": lambda: START + "\n".join(f"a{n} = 1" for n in range(80_000)),
    "tables": lambda: START + "\n".join(f"[a{n}.b.c.d.e.f.g]" for n in range(50_000)),
    "a long text": lambda: f'title = "{"a" * 1_000_000}"',
    "a long list": lambda: f"{START}x = [{'1,' * 500_000}]",
    "a long number": lambda: f"seed = {'9' * 1_000_000}",
    "a long hexadecimal number": lambda: f"seed = 0x{'9' * 1_000_000}",
    "dots": lambda: "." * 1_000_000,
    "quotes": lambda: '"' * 1_000_000,
    "escaped quotes": lambda: '"' + '\\"' * 500_000,
    "quoted keys": lambda: ('"a"' + "a" * 150 + ".") * 6_000,
    "letters": lambda: "a" * 1_000_000,
    "letters and dots": lambda: "a.b.c.d.e.f.g.h.i.j.k.l.m.n = 1\n" * 32_000,
    "spaces": lambda: "a" + " " * 1_000_000 + ".",
}


def _evaluation(folder: Path, made: Callable[[], str]) -> Path:
    (folder / "evaluation.toml").write_text(made())
    (folder / "own.up").write_bytes(b"10000000\n" * 60_000)
    return _page(folder, index).parent / "evaluation.toml"


TRACES: dict[str, Callable[[], bytes]] = {
    "as many opportunities as may be": lambda: gzip.compress(b"100000\n" * 4_000_000, 1),
    "empty lines": lambda: gzip.compress(b"\n" * 64 * MIB, 1),
    "digits": lambda: gzip.compress(b"9" * 64 * MIB, 1),
    "spaces": lambda: gzip.compress(b" " * 63 * MIB + b"1", 1),
}


def _file(name: str, folder: Path, made: Callable[[], bytes]) -> Path:
    (folder / name).write_bytes(made())
    return folder / name


Case = Callable[[Path], Path]
"""Writes a case into a folder; returns what is to be read."""


def _cases(write: Callable[[Path, Any], Path], made: dict[str, Any]) -> dict[str, Case]:
    return {name: partial(_written, write, content) for name, content in made.items()}


def _written(write: Callable[[Path, Any], Path], content: Any, folder: Path) -> Path:
    return write(folder, content)


CASES: dict[str, dict[str, Case]] = {
    "har": _cases(partial(_file, "page.har"), HARS),
    "page": _cases(_page, PAGES) | _cases(lambda folder, of: _stored(folder, *of), BODIES),
    "evaluation": _cases(_evaluation, EVALUATIONS),
    "archive": _cases(partial(_file, "site.warc"), ARCHIVES),
    "devtools": _cases(partial(_file, "log.json"), LOGS),
    "trace": _cases(partial(_file, "own.gz"), TRACES),
}
