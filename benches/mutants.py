"""Foreign files of every kind, and mutants of them: what benches/mutate.py has wirepaint read.

Each kind has originals that are accepted. A mutant is an original with one to three changes: of bytes, of
the structure of its JSON or TOML, or of the files that it consists of. The same seed makes the same mutant.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import brotli

from wirepaint.pages import import_har

ROOT = Path(__file__).parents[1]
BASE = "https://site.test/"
HTML = (
    b'<!doctype html><html><head><link rel=stylesheet href="/s.css"><script type=module src="/m.js"></script>'
    b'</head><body><img src="/a.png" srcset="/a.png 1x, /b.png 2x"><p style="background:url(/b.png)">Text</p>'
    b'<iframe src="https://other.test/frame"></iframe><script>fetch("/data.json")</script></body></html>'
)
CSS = (
    b'@import "/t.css"; @font-face{font-family:f;src:url(/f.woff2)} .x{background:url(/b.png)} .y{width:10px}'
)
MODULE = b'import {a} from "/n.js"; import("/late.js"); new Worker("/w.js");'


# Originals.


def _har(folder: Path) -> Path:
    """Redirect, document, style sheet, module, image, post; bodies as text and base64."""
    bodies = [
        ("http://site.test/", "text/html", b"", {"location": BASE}),
        (BASE, "text/html; charset=utf-8", HTML, {"content-encoding": "br", "content-security-policy": "x"}),
        (BASE + "s.css", "text/css", CSS, {"content-encoding": "gzip", "expires": "0", "date": "x"}),
        (BASE + "m.js", "text/javascript", MODULE, {"cache-control": "max-age=3, stale-if-error=9"}),
        (BASE + "a.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(60), {}),
        (BASE + "f.woff2", "font/woff2", b"", {}),
        ("https://other.test/frame", "text/html", b"<p>frame", {"content-encoding": "deflate"}),
        (BASE + "data.json", "application/json", b'{"a": [1, 2]}', {"content-length": "13"}),
    ]
    entries = []
    for number, (url, mime, body, headers) in enumerate(bodies):
        text = {"text": base64.b64encode(body).decode(), "encoding": "base64"} if number % 2 else {}
        text = text or {"text": body.decode("latin-1")}
        entries.append(
            {
                "startedDateTime": f"2026-01-02T03:04:05.{number:03}Z",
                "time": 50.0,
                "pageref": "p",
                "request": {
                    "method": "POST" if number == 7 else "GET",
                    "url": url,
                    "headers": [{"name": "referer", "value": BASE}],
                    "bodySize": 0,
                },
                "response": {
                    "status": 302 if "location" in headers else 200,
                    "httpVersion": "h2",
                    "headers": [
                        {"name": k, "value": v} for k, v in {"content-type": mime, **headers}.items()
                    ],
                    "content": {"size": len(body) or 900, "mimeType": mime, **(text if body else {})},
                    "redirectURL": headers.get("location", ""),
                    "headersSize": 120,
                    "bodySize": len(body) or 700,
                    "_transferSize": 300,
                },
                "timings": {"connect": 9.0, "ssl": 4.0, "wait": 20.0, "receive": 5.0},
                "_initiator": {"type": "script", "stack": {"callFrames": [{"url": BASE + "m.js"}]}},
                "_priority": "High",
                "connection": str(number),
            }
        )
    page = {
        "id": "p",
        "title": "A page",
        "startedDateTime": "2026-01-02T03:04:05Z",
        "pageTimings": {"onLoad": 70},
    }
    log = {"version": "1.2", "creator": {"name": "x", "version": "1"}, "pages": [page], "entries": entries}
    path = folder / "page.har"
    path.write_text(json.dumps({"log": log}))
    return path


def _hars(folder: Path) -> list[Path]:
    plain = _har(folder)
    packed = folder / "packed.har.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    beside = json.loads(plain.read_text())
    content = beside["log"]["entries"][1]["response"]["content"]
    del content["text"], content["encoding"]
    content["_file"] = "body.html"
    zipped = folder / "page.har.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("har.har", json.dumps(beside))
        archive.writestr("body.html", HTML)
    return [plain, packed, zipped]


def _pages(folder: Path) -> list[Path]:
    import_har(_har(folder), folder / "recorded")
    import_har(_har(folder), folder / "synthetic", sizes_only=True)
    (folder / "page.har").unlink()
    shapes = ROOT / "python/wirepaint/catalog/pages/blog-small"
    shutil.copytree(shapes, folder / "shape")
    return [folder / "recorded", folder / "synthetic", folder / "shape"]


EVALUATION = """\
title = "Every key"
summary = "One sentence."
backend = "simulator"
seed = 3
order = "interleaved"
warmup = true
timeout = "60 s"
packet_trace = false
sysctls = {"net.ipv4.tcp_sack" = 1}

[stop]
visits = 5
interval = "5 %"

[scenarios]
network = ["lte", {title = "own", down = {rate = "25 Mbit/s", delay = "13 ms", \
queue = {kind = "droptail", bdp = 1.5}, jitter = {kind = "uniform", range = "2 ms"}, \
loss = {kind = "gilbert_elliott", good_to_bad = 0.01, bad_to_good = "20 %", loss_in_bad = 0.5}, \
changes = [{at = "5 s", rate = "1 Mbit/s"}], \
scripted = [{nth = 3, action = {kind = "hold", extra = "5 ms"}}]}, \
up = {trace = "./own.up", queue = {kind = "fq_codel"}}}]
congestion = ["cubic", {name = "fld", title = "mild", sysctls = {"net.ipv4.tcp_sack" = 1}}]
initial_window = [10, 30]
http = ["h1", "h2"]

[[user_agents]]
name = "phone"
pages = ["photos", "./page"]
visits = 3
viewport = [412, 823]
"""


def _evaluations(folder: Path) -> list[Path]:
    made = folder / "evaluation"
    made.mkdir()
    import_har(_har(folder), made / "page")
    (folder / "page.har").unlink()
    (made / "evaluation.toml").write_text(EVALUATION)
    (made / "own.up").write_text("0\n3\n9\n")
    return [made]


def _record(kind: str, url: str, block: bytes, number: int) -> bytes:
    head = [
        "WARC/1.1",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        f"WARC-Date: 2024-05-06T07:08:{number:02}Z",
        f"WARC-Record-ID: <urn:uuid:{number}>",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def _warc() -> list[bytes]:
    """Records: a redirect, a document in Brotli, a style sheet in chunks, an image, and their requests."""
    asked = b"GET / HTTP/1.1\r\nAccept: text/html\r\nReferer: " + BASE.encode() + b"\r\n\r\n"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CSS), CSS)
    answers = [
        ("http://site.test/", b"301 Moved\r\nLocation: " + BASE.encode(), b""),
        (BASE, b"200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br", brotli.compress(HTML)),
        (BASE + "s.css", b"200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked", chunked),
        (
            BASE + "a.png",
            b"200 OK\r\nContent-Type: image/png\r\nContent-Encoding: gzip",
            gzip.compress(b"PNG"),
        ),
    ]
    records = [_record("warcinfo", "", b"software: x\r\n", 0)]
    for number, (url, head, body) in enumerate(answers, 1):
        records.append(_record("response", url, b"HTTP/1.1 " + head + b"\r\n\r\n" + body, number))
        records.append(_record("request", url, asked, number))
    return records


def _archives(folder: Path) -> list[Path]:
    plain, packed, zipped = folder / "site.warc", folder / "site.warc.gz", folder / "site.wacz"
    plain.write_bytes(b"".join(_warc()))
    packed.write_bytes(b"".join(gzip.compress(record, mtime=0) for record in _warc()))
    listed = json.dumps({"id": "p", "url": BASE, "title": "A page", "ts": "2024-05-06T07:08:02Z"})
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.warc.gz", packed.read_bytes())
        archive.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0"}\n' + listed + "\n")
    return [plain, packed, zipped]


def _logs(folder: Path) -> list[Path]:
    events: list[dict[str, Any]] = []
    for number, (path, mime) in enumerate(
        [("", "text/html"), ("s.css", "text/css"), ("m.js", "text/javascript"), ("a.png", "image/png")]
    ):
        ident, at = str(number), 1000.0 + number / 10
        timing = {"requestTime": at, "connectStart": 0, "connectEnd": 30, "sslStart": 10, "sslEnd": 30,
                  "sendEnd": 31, "receiveHeadersEnd": 51}  # fmt: skip
        request = {
            "url": BASE + path,
            "method": "GET",
            "headers": {"Referer": BASE},
            "initialPriority": "High",
        }
        response = {"status": 200, "mimeType": mime, "headers": {"content-type": mime}, "protocol": "h2",
                    "encodedDataLength": 100, "connectionId": 7, "timing": timing}  # fmt: skip
        kind = "Document" if number == 0 else "Script"
        sent = {"requestId": ident, "frameId": "main", "request": request, "timestamp": at, "type": kind,
                "wallTime": 1.7e9 + number, "initiator": {"type": "parser", "url": BASE}}  # fmt: skip
        body = HTML if number == 0 else b""
        events += [
            {"method": "Network.requestWillBeSent", "params": sent},
            {"method": "Network.responseReceived", "params": {"requestId": ident, "response": response}},
            {"method": "Network.dataReceived",
             "params": {"requestId": ident, "dataLength": len(body) or 900}},
            {"method": "Network.loadingFinished",
             "params": {"requestId": ident, "encodedDataLength": 700, "timestamp": at + 0.08}},
        ]  # fmt: skip
        if body:
            events.append({"method": "Network.getResponseBody", "id": 9, "params": {"requestId": ident}})
            events.append({"id": 9, "result": {"body": body.decode("latin-1"), "base64Encoded": False}})
    events.append({"method": "Page.loadEventFired", "params": {"timestamp": 1001.0}})
    whole, lines = folder / "log.json", folder / "lines.json"
    whole.write_text(json.dumps(events))
    lines.write_text("\n".join(json.dumps({"message": json.dumps({"message": event})}) for event in events))
    return [whole, lines]


def _results(folder: Path) -> list[Path]:
    sys.path.insert(0, str(ROOT / "python/tests"))
    from runners import plans

    work = folder / ".work"
    work.mkdir()
    with contextlib.redirect_stderr(io.StringIO()):
        plans.carry_out(work, folder / "results", plans.Fake())
    shutil.rmtree(work)
    return [folder / "results"]


def _traces(folder: Path) -> list[Path]:
    plain, packed = folder / "own.down", folder / "own.gz"
    text = "\n".join(str(at) for at in range(0, 3000, 3)).encode()
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text, mtime=0))
    return [plain, packed]


# Changes.

ADDRESSES = [
    "http://a:99999/", "http://a:0/", "http://a:b/", "http://[::1", "http://[::1]/", "http://[zz]/", "http:///",
    "http://", "https://:443/", "http://" + "a" * 300 + "/", "http://" + "a." * 200 + "com/", "http://a..b/",
    "http://\u0000/", "http://a\u0000b/", "http://a/\u001b[2J", "http://xn--/", "http://xn--a-ecp.ru/",
    "http://\u2025/", "http://\u00fc.test/", "http://a%00b/", "http://user:pw@a/", "http://1.2.3.999/",
    "http://a/\ud800", "file:///etc/passwd", "javascript:1", "data:,x", "//a/", "http://a/" + "x" * 70_000,
    "http://a\\b/", "http://a b/", "HTTP://SITE.TEST/", BASE + "#x", "http://\u202e/", "https://site.test./",
    "http://a:\u0663/", "https://site.test/?" + "&".join("a=b" for _ in range(5000)), "../../etc/passwd",
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 2**31, 2**32, 2**52, 2**53, 2**63, 2**64, -(2**63), 10**30, 1e300, -1e300, 5e-324, float("nan"),
    float("inf"), float("-inf"), 0.1, 2**26, 2**30, 65_535, 3_600_001,
]  # fmt: skip
TEXTS = [
    "", " ", "\0", "\n", "\x1b[2J", "\ud800", "\udcff", "a" * 100_000, "../../etc/passwd", "/etc/passwd",
    "gzip", "br", "deflate", "zstd", "identity", "gzip, gzip, gzip, br", "chunked", "text/html", "image/png",
    "9" * 5000, "2026-01-02", "0001-01-01T00:00:00", "9999-12-31T23:59:59+14:00", "true", "null", "h2",
    "base64", "{}", "\u202e", "%", "~nobody/x", "./evaluation.toml", "1e400 Mbit/s", "99999999999999999999 s",
]  # fmt: skip
CODINGS = ("gzip", "br", "deflate", "zstd", "identity", "gzip, br", "x-gzip", "")
_BOMB = gzip.compress(bytes(2**24)) * 64
"""One GiB."""


_LARGEST = 2**23
"""Bytes of a file that is changed once more, and of a list that is repeated."""


def bomb(random: Random) -> bytes:
    """Bytes that unpack to very many."""
    pick = random.randrange(4)
    if pick == 0:
        return _BOMB
    if pick == 1:
        return gzip.compress(bytes(2**28))
    if pick == 2:
        return brotli.compress(bytes(2**28), quality=1)
    return gzip.compress(b"1\n" * 2**24)


def change_bytes(data: bytes, random: Random) -> bytes:
    """Flips, cuts, repeats, inserts or packs."""
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice([1, 4, 64, 4096]))
    match random.randrange(12):
        case 0 | 1 | 2 if data:
            flipped = bytearray(data)
            for _ in range(random.choice([1, 1, 3, 30])):
                flipped[random.randrange(len(data))] ^= 1 << random.randrange(8)
            return bytes(flipped)
        case 3:
            return data[:at]
        case 4:
            return data[:at] + data[end:]
        case 5:
            return data[:end] + data[at:end] * random.choice([1, 3, 1000]) + data[end:]
        case 6:
            return data[:at] + random.randbytes(random.choice([1, 4, 1000])) + data[at:]
        case 7:
            nasty = random.choice(
                [b"\0", b"\xff\xfe", b"[" * 20_000, b'{"a":' * 20_000, b"9" * 100_000, b"\n" * 10**6]
            )
            return data[:at] + nasty + data[at:]
        case 8:
            return gzip.compress(data, 1)
        case 9 if random.random() < 0.3:
            return bomb(random)
        case 10:
            return data * random.choice([2, 50 if len(data) < 2**20 else 2])
        case _:
            return data.replace(b"0", random.choice([b"9" * 400, b"-1", b"1e999", b"\xc0\x80"]), 1)


def change_json(value: Any, random: Random) -> Any:
    """One place of a JSON value becomes another value, goes, or comes often."""
    places = list(_places(value))
    path = random.choice(places[1:] or places)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if not path:
        return _nasty(value, random)
    last, old = path[-1], holder[path[-1]]
    match random.randrange(8):
        case 0:
            del holder[last]
        case 1 if isinstance(old, list) and old:
            times = random.choice([2, 1000, 6000 // len(old) + 1])
            holder[last] = old * min(times, _LARGEST // len(json.dumps(old)) + 1)
        case 2:
            other = random.choice(places)
            copied = value
            for key in other:
                copied = copied[key]
            holder[last] = json.loads(json.dumps(copied))
        case 3 if isinstance(holder, dict):
            holder[random.choice([str(last) + "x", "", "a" * 10_000, "\ud800"])] = old
        case _:
            holder[last] = _nasty(old, random)
    return value


def _nasty(old: Any, random: Random) -> Any:
    if isinstance(old, str) and old.startswith(("http://", "https://")) and random.random() < 0.7:
        return random.choice(ADDRESSES)
    if isinstance(old, str) and old in CODINGS and random.random() < 0.7:
        return random.choice(CODINGS)
    if isinstance(old, int | float) and random.random() < 0.7:
        return random.choice(NUMBERS)
    deep: Any = []
    for _ in range(random.choice([10, 150, 900])):
        deep = [deep] if random.random() < 0.5 else {"a": deep}
    kinds = [random.choice(NUMBERS), random.choice(TEXTS), random.choice(ADDRESSES), None, True, [], {}, deep]
    return random.choice(kinds)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


def write_json(value: Any, random: Random) -> bytes:
    """JSON text, sometimes with a key twice, deep nesting or a number of very many digits."""
    text = json.dumps(value)
    if random.random() < 0.15:
        keys = re.findall(r'"(\w+)": ', text)
        key = random.choice(keys) if keys else "a"
        again = random.choice(["1", '"x"', "[]", "[" * 50_000, "9" * 100_000, "1e99999", "NaN", "-Infinity"])
        text = text.replace(f'"{key}": ', f'"{key}": {again}, "{key}": ', 1)
    return text.encode()


def change_toml(text: str, random: Random) -> str:
    """A value, a key or a line becomes another."""
    lines = text.splitlines()
    at = random.randrange(len(lines))
    match random.randrange(9):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, random.choice(lines))
        case 2:
            lines.insert(at, ".".join("a" * random.choice([10, 20_000])) + " = 1")
        case 3:
            lines.insert(at, f"a = {'[' * 20_000}")
        case 4:
            lines.insert(at, f"[{'.'.join('a' * random.choice([3, 20_000]))}]")
        case 5:
            lines[at] = re.sub(r"\b\d+\b", lambda _: _toml(random.choice(NUMBERS)), lines[at], count=1)
        case 6:
            pages = ", ".join(f'"./p{n}"' for n in range(random.choice([500, 5_000, 40_000])))
            lines[at] = re.sub(r"\[.*\]", f"[{pages}]", lines[at], count=1)
        case 7:
            lines[at] = re.sub(r'= ".*?"', lambda _: "= " + _toml(_nasty("", random)), lines[at], count=1)
        case _:
            nasty = random.choice(TEXTS + ADDRESSES)
            strings = list(re.finditer(r'"[^"\n]*"', text))
            found = random.choice(strings)
            return text[: found.start()] + _toml(nasty) + text[found.end() :]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, float):
        return str(value)
    if isinstance(value, int) and abs(value) > 2**40 and value % 2:
        return hex(abs(value) ** 1000)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 3000 else text[:3000] + '"'


def change_zip(data: bytes, random: Random) -> bytes:
    """The members of a zip: others, more, bombs, names that lead out."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        members = {name: old.read(name) for name in old.namelist()}
        name = random.choice(list(members))
        match random.randrange(6):
            case 0:
                members[name] = bomb(random)
            case 1:
                members[random.choice(["../../x.har", "/etc/x", "archive/../../x.warc", "a\0b", "\\x"])] = (
                    members[name]
                )
            case 2:
                members[name] = change_bytes(members[name], random)
            case 3:
                members |= {f"archive/{n}.warc": members[name] for n in range(random.choice([3, 2000]))}
            case 4:
                members[name] = bytes(2**28)
            case _:
                del members[name]
        for each, content in members.items():
            new.writestr(zipfile.ZipInfo(each), content, zipfile.ZIP_DEFLATED, 1)
    return made.getvalue() if random.random() < 0.8 else change_bytes(made.getvalue(), random)


def change_file(path: Path, random: Random) -> None:
    """A file becomes a pipe, a device, a link, a folder or nothing."""
    path.unlink()
    match random.randrange(6):
        case 0:
            os.mkfifo(path)
        case 1:
            path.symlink_to(
                random.choice(["/dev/zero", "/etc/passwd", "/proc/kmsg", "/proc/self/mem", ".", path.name])
            )
        case 2:
            path.mkdir()
        case 3:
            path.touch()
        case 4:
            with path.open("wb") as file:
                file.truncate(2**33)
        case _:
            pass


def change_body(folder: Path, random: Random) -> None:
    """A stored body of a page becomes another, under its own hash."""
    index = json.loads((folder / "page.json").read_text())
    stored = [resource for resource in index["resources"] if resource["body"]]
    if not stored:
        return
    resource = random.choice(stored)
    old = (folder / "bodies" / resource["body"]).read_bytes()
    new = bomb(random) if random.random() < 0.4 else change_bytes(old, random)
    resource["body"] = hashlib.sha256(new).hexdigest()
    (folder / "bodies" / resource["body"]).write_bytes(new)
    if random.random() < 0.8:
        resource["wire_bytes"] = len(new)
    if random.random() < 0.3:
        resource["decoded_bytes"] = random.choice([1, 2**20, 2**27])
    (folder / "page.json").write_text(json.dumps(index))


def mutate(path: Path, random: Random) -> None:
    """Changes the file or folder at ``path`` one to three times."""
    if (path / "bodies").is_dir() and random.random() < 0.2:
        change_body(path, random)
        return
    for _ in range(random.choice([1, 1, 2, 3])):
        files = sorted(file for file in [path, *path.rglob("*")] if file.is_file() and not file.is_symlink())
        named = [file for file in files if file.suffix in (".json", ".toml", ".har")]
        file = random.choice(named if named and random.random() < 0.6 else files) if files else None
        if file is None or file.stat().st_size > _LARGEST:
            return
        if random.random() < 0.03:
            change_file(file, random)
        elif random.random() < 0.7:
            file.write_bytes(_changed(file, random))
        else:
            file.write_bytes(change_bytes(file.read_bytes(), random))


def _changed(file: Path, random: Random) -> bytes:
    """The content with its structure changed where it has one."""
    data = file.read_bytes()
    try:
        if file.suffix == ".toml":
            return change_toml(data.decode(), random).encode("utf-8", "surrogatepass")
        if data[:2] == b"PK":
            return change_zip(data, random)
        packed = data[:2] == b"\x1f\x8b"
        text = gzip.decompress(data) if packed and len(data) < 2**17 else data
        if text[:1] in (b"{", b"["):
            text = write_json(change_json(json.loads(text), random), random)
        else:
            text = change_bytes(text, random)
        return gzip.compress(text, 1) if packed else text
    except Exception:  # it has no structure any more
        return change_bytes(data, random)


@dataclass(frozen=True)
class Kind:
    """A kind of foreign file: its originals, and of a folder the file that is read."""

    originals: Callable[[Path], list[Path]]
    reads: str = ""


KINDS = {
    "har": Kind(_hars),
    "page": Kind(_pages),
    "evaluation": Kind(_evaluations, "evaluation.toml"),
    "archive": Kind(_archives),
    "devtools": Kind(_logs),
    "results": Kind(_results),
    "trace": Kind(_traces),
}
