"""Every format of recordings is read, or refused with its name and advice."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import os
import random
import socket
import zipfile
from pathlib import Path
from typing import Any

import pytest
from recording import START, entry, log

from wirepaint.errors import UsageError
from wirepaint.pages import Page, import_har
from wirepaint.pages.import_har import name_from

BASE = "https://site.test/"


def har(*entries: dict[str, Any], **keys: Any) -> bytes:
    return json.dumps(log(*entries, **keys)).encode()


def imported(folder: Path, name: str, data: bytes, **options: Any) -> Page:
    path = folder / name
    path.write_bytes(data)
    return import_har(path, folder / "page", **options)


def refused(folder: Path, name: str, data: bytes, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        imported(folder, name, data, **options)
    message = str(caught.value)
    assert message.startswith(str(folder / name))
    assert "\n" not in message
    return message


def zipped(folder: Path, **members: bytes) -> bytes:
    path = folder / "made.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), data)
    data = path.read_bytes()
    path.unlink()
    return data


def body(folder: Path, page: Page, number: int = 0) -> bytes:
    return (folder / "page" / "bodies" / (page.resources[number].body or "")).read_bytes()


ATTACHED = entry(BASE, response={"content": {"mimeType": "text/html", "_file": "0.html"}})


@pytest.mark.parametrize(
    "data",
    [
        har(entry(BASE)),
        b"\xef\xbb\xbf" + har(entry(BASE)),
        b"\xff\xfe" + har(entry(BASE)).decode().encode("utf-16-le"),
        b"onInputData(" + har(entry(BASE)) + b");\n",
        gzip.compress(har(entry(BASE))),
        gzip.compress(har(entry(BASE))[:100]) + gzip.compress(har(entry(BASE))[100:]) + bytes(100),
    ],
    ids=["plain", "byte order mark", "UTF-16", "JSONP", "gzip", "gzip of two members with padding"],
)
def test_a_har_is_read_in_each_wrapping(tmp_path: Path, data: bytes) -> None:
    assert [r.url for r in imported(tmp_path, "page.har", data).resources] == [BASE]


def test_a_zipped_har_takes_its_bodies_from_the_files_beside_it(tmp_path: Path) -> None:
    data = zipped(tmp_path, har_har=har(ATTACHED), **{"0_html": b"<p>hello"})
    assert body(tmp_path, imported(tmp_path, "page.har.zip", data)) == b"<p>hello"


def test_a_har_in_a_folder_takes_its_bodies_from_the_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "0.html").write_bytes(b"<p>hello")
    assert body(tmp_path, imported(tmp_path, "page.har", har(ATTACHED))) == b"<p>hello"


def test_a_missing_file_beside_a_har_is_a_missing_body_with_a_note(tmp_path: Path) -> None:
    page = imported(tmp_path, "page.har", har(ATTACHED))
    assert page.resources[0].body is None
    assert page.notes[0] == "1 bodies missing beside the HAR"


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "..", "a\\b", "c:d", "x\0y"])
def test_a_file_outside_the_folder_is_never_read(tmp_path: Path, name: str) -> None:
    found = entry(BASE, response={"content": {"_file": name}})
    assert "content._file: found" in refused(tmp_path, "page.har", har(found))
    assert "content._file: found" in refused(tmp_path, "p.zip", zipped(tmp_path, har_har=har(found)))


def test_a_link_out_of_the_folder_is_never_followed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (inside / "0.html").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="found a link out of its folder"):
        imported(inside, "page.har", har(ATTACHED))


@pytest.mark.parametrize(
    ("data", "found", "accepted"),
    [
        (b'{"constants":{"logEventTypes":{}},"events":[]}', "a NetLog of Chrome", "page record URL"),
        (b'{\n "traceEvents": []}', "a performance trace", "page record URL"),
        (b'[{"args":{},"ph":"M","ts":0}]', "a performance trace", "page record URL"),
        (b'{"lighthouseVersion":"12"}', "a report of Lighthouse", "devtoolslog.json"),
        (b"From: <Saved by Blink>\r\n", "a saved page (MHTML", "page record URL"),
        (b"<!doctype html><p>", "an HTML document", "the folder that it lies in: "),
        (b"\xef\xbb\xbf\n<title>A page</title>", "an HTML document", "--start file.json -o PAGE`, or a HAR"),
        (b"<!-- a page --><p>", "an HTML document", "page record URL"),
        (gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "gzip within gzip", "gunzip"),
        (bz2.compress(b"{}"), "a bzip2 file", "bunzip2"),
        (b"\x28\xb5\x2f\xfd\0\0", "a zstd file", "zstd -d"),
        (b"filedesc://x 0", "an ARC archive", "warcio recompress"),
        (b"\xd4\xc3\xb2\xa1\x02\0", "a packet capture", "a HAR"),
        (b'{"log": [' + b"0," * 4_100_000, "JSON of more than", "a HAR"),
        (gzip.compress(har(entry(BASE)), mtime=0)[:-12], "gzip that ends too early", "a HAR"),
        (gzip.compress(har(entry(BASE)), mtime=0) + b"more", "gzip with something else after it", "a HAR"),
    ],
)
def test_what_is_no_recording_is_refused_with_what_it_is(
    tmp_path: Path, data: bytes, found: str, accepted: str
) -> None:
    message = refused(tmp_path, "file.json", data)
    assert f"found {found}" in message
    assert accepted in message.partition("accepted: ")[2]


@pytest.mark.parametrize(("name", "start"), [("index.html", ""), ("My demo.html", " --start 'My demo.html'")])
def test_an_html_document_is_refused_with_the_import_of_its_folder(tmp_path, name: str, start: str) -> None:
    message = refused(tmp_path, name, b"<html></html>")
    assert f"`wirepaint page import {tmp_path}{start} -o PAGE`" in message


def test_zips_without_a_recording_are_refused(tmp_path: Path) -> None:
    two = zipped(tmp_path, a_har=b"{}", b_har=b"{}")
    assert "found a zip of 'a.har, b.har'" in refused(tmp_path, "x.zip", two)
    assert "found a zip of 'raw/1.txt'" in refused(tmp_path, "x.saz", zipped(tmp_path, raw__1_txt=b""))
    assert "found a broken zip" in refused(tmp_path, "x.zip", two[:-30])
    assert "found a broken zip" in refused(tmp_path, "x.zip", b"PK\x03\x04")


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    spaces = zipped(tmp_path, har_har=b" " * (100 * 2**20))
    assert len(spaces) < 200_000
    assert "'har.har': found more than that" in refused(tmp_path, "x.har.zip", spaces)
    member = zipped(tmp_path, har_har=har(ATTACHED), **{"0_html": b" " * (130 * 2**20)})
    assert "'0.html': found more than that" in refused(tmp_path, "x.har.zip", member)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.har"
    os.mkfifo(pipe)
    try:
        with pytest.raises(UsageError, match="found no regular file"):
            import_har(pipe, tmp_path / "page")
    finally:
        pipe.unlink()  # whoever searches the folder would wait for it


@pytest.mark.parametrize(
    "name",
    [
        "a.b.har",
        "a.b.har.gz",
        "a.b.HAR.zip",
        "a.b.warc",
        "a.b.warc.gz",
        "a.b.wacz",
        "a.b.json.gz",
        "a.b.harp",
    ],
)
def test_a_page_is_named_by_its_file_without_the_suffixes_of_formats(name: str) -> None:
    assert name_from(Path(name)) == "a.b"


def test_what_other_recorders_leave_out_is_not_missed(tmp_path: Path) -> None:
    unknown = {"httpVersion": "", "headersSize": -1, "bodySize": -1, "content": {"size": 0, "mimeType": ""}}
    page = imported(
        tmp_path,
        "page.har",
        har(
            entry(BASE, timings={"wait": -1, "receive": None}, time=-1, pageref="run 2"),
            entry(BASE + "a.png", at=5, mime="image/png", response=unknown, pageref="run 2"),
            entry(BASE + "b.png", at=5, mime="image/png", pageref="run 1"),
            pages=[{"id": "run 1", "title": ""}, {"id": "run 2"}],
        ),
        page="2",
    )
    assert [r.url for r in page.resources] == [BASE, BASE + "a.png"]


def test_an_import_needs_no_network_and_runs_no_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("an import asked the network")

    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    script = "<script>document.write('<img src=/written.png>')</script><img src='https://other.test/x.png'>"
    page = imported(tmp_path, "page.har", har(entry(BASE, text=script)))
    assert [r.url for r in page.resources] == [BASE]


def damaged(data: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return data[: chance.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(chance.choice((1, 3, 20))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def test_a_damaged_recording_is_imported_or_refused_in_one_line(tmp_path: Path) -> None:
    chance = random.Random(7)
    text = base64.b64encode(b"<img src=a.png>").decode()
    whole = har(
        entry(BASE, response={"content": {"text": text, "encoding": "base64", "mimeType": "text/html"}}),
        entry(BASE + "a.png", at=60, mime="image/png"),
        ATTACHED,
    )
    event = {"request": {"url": BASE, "method": "GET"}, "requestId": "1", "timestamp": START.timestamp()}
    answer = {"requestId": "1", "response": {"status": 200, "mimeType": "text/html"}}
    devtools = [
        {"method": "Network.requestWillBeSent", "params": event},
        {"method": "Network.responseReceived", "params": answer},
    ]
    files = {
        "a.har": whole,
        "a.har.gz": gzip.compress(whole),
        "a.har.zip": zipped(tmp_path, har_har=whole, **{"0_html": b"<p>hello"}),
        "a.json": json.dumps(devtools).encode(),
    }
    for name, data in files.items():
        for _ in range(60):
            try:
                imported(tmp_path, name, damaged(data, chance))
            except UsageError as error:
                assert "\n" not in str(error)
