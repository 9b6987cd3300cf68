"""Web archives: written by warcio, and by hand where archivers differ from it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import random
import zipfile
from pathlib import Path

import brotli
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from wirepaint.errors import UsageError
from wirepaint.pages import Page, import_har

BASE = "https://site.test/"
HTML = b"<!doctype html><link rel=stylesheet href=s.css><img src=a.png><iframe src=frame></iframe>"
CSS = b"body{background:url(b.png)}"
NAVIGATION = {"Accept": "text/html,*/*;q=0.8"}


class Archive:
    """An archive on its way to a file; a second passes between records."""

    def __init__(self, *, packed: bool = True, version: str = "1.1") -> None:
        self.buffer = io.BytesIO()
        self.writer = WARCWriter(self.buffer, gzip=packed, warc_version=version)
        self._seconds = 0

    def add(
        self,
        url: str,
        body: bytes,
        mime: str,
        *,
        status: str = "200 OK",
        asked: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        fields: dict[str, str] | None = None,
    ) -> None:
        """A response and, unless ``asked`` is None, its request."""
        self._seconds += 1
        dated = {"WARC-Date": f"2024-05-06T07:08:{self._seconds:02}Z"} | (fields or {})
        head = StatusAndHeaders(status, [("Content-Type", mime), *(headers or {}).items()], "HTTP/1.1")
        answer = self.writer.create_warc_record(
            url, "response", io.BytesIO(body), http_headers=head, warc_headers_dict=dated
        )
        if asked is None:
            self.writer.write_record(answer)
            return
        sent = StatusAndHeaders("GET / HTTP/1.1", list(asked.items()), is_http_request=True)
        request = self.writer.create_warc_record(
            url, "request", http_headers=sent, warc_headers_dict={"WARC-Date": dated["WARC-Date"]}
        )
        self.writer.write_request_response_pair(request, answer)

    def revisit(self, url: str, digest: str, refers: str, date: str, asked: dict[str, str]) -> None:
        self._seconds += 1
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/css")], "HTTP/1.1")
        record = self.writer.create_revisit_record(url, digest, refers, date, http_headers=head)
        record.rec_headers.replace_header("WARC-Date", f"2024-05-06T07:08:{self._seconds:02}Z")
        sent = StatusAndHeaders("GET / HTTP/1.1", list(asked.items()), is_http_request=True)
        request = self.writer.create_warc_record(url, "request", http_headers=sent)
        self.writer.write_request_response_pair(request, record)

    def data(self) -> bytes:
        return self.buffer.getvalue()


def site(archive: Archive) -> Archive:
    archive.add(BASE, HTML, "text/html", asked=NAVIGATION)
    archive.add(BASE + "s.css", CSS, "text/css", asked={"Referer": BASE})
    archive.add(BASE + "a.png", b"PNG", "image/png", asked={"Referer": BASE})
    archive.add(BASE + "b.png", b"PNG2", "image/png", asked={"Referer": BASE + "s.css"})
    archive.add(BASE + "frame", b"<p>in", "text/html", asked=NAVIGATION | {"Referer": BASE})
    return archive


def imported(folder: Path, data: bytes, name: str = "x.warc.gz", page: str | None = None) -> Page:
    (folder / name).write_bytes(data)
    return import_har(folder / name, folder / "page", page=page)


def found(page: Page) -> list[tuple[str, str, int | None]]:
    return [(r.url.removeprefix(BASE), r.type, r.cause.by) for r in page.resources]


def body(folder: Path, page: Page, number: int = 0) -> bytes:
    return (folder / "page" / "bodies" / (page.resources[number].body or "")).read_bytes()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("packing", ["plain", "a member a record", "one member"])
def test_an_archive_gives_the_page_with_its_causes(tmp_path: Path, version: str, packing: str) -> None:
    data = site(Archive(packed=packing == "a member a record", version=version)).data()
    page = imported(tmp_path, gzip.compress(data) if packing == "one member" else data)
    assert found(page) == [
        ("", "html", None), ("s.css", "css", 0), ("a.png", "image", 0), ("b.png", "image", 1),
        ("frame", "html", 0),
    ]  # fmt: skip
    assert body(tmp_path, page) == HTML
    assert all(r.cause.after_ms == 0 for r in page.resources)


def test_codings_are_undone_and_their_sizes_kept(tmp_path: Path) -> None:
    text = b"<p>" + b"hello " * 500
    packed, chunks = brotli.compress(text), gzip.compress(text)
    chunked = b"5\r\n%s\r\n%x;x=y\r\n%s\r\n0\r\n\r\n" % (chunks[:5], len(chunks) - 5, chunks[5:])
    archive = Archive()
    archive.add(BASE, text, "text/html", asked=NAVIGATION, headers={"X-Orig-Content-Encoding": "br"})
    archive.add(BASE + "a", packed, "text/css", asked={"Referer": BASE}, headers={"Content-Encoding": "br"})
    both = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    archive.add(BASE + "b", chunked, "text/css", asked={"Referer": BASE}, headers=both)
    archive.add(BASE + "c", text, "text/css", asked={"Referer": BASE}, headers={"Content-Encoding": "gzip"})
    archive.add(BASE + "d", packed, "text/css", asked={"Referer": BASE}, headers={"Content-Encoding": "zstd"})
    page = imported(tmp_path, archive.data())
    sizes = [(r.decoded_bytes, r.header("content-encoding")) for r in page.resources]
    assert sizes[:4] == [(len(text), coding) for coding in ("br", "br", "gzip", "gzip")]
    assert [r.wire_bytes for r in page.resources[1:3]] == [len(packed), len(chunks)]
    assert page.resources[4].body is None
    assert "1 bodies that cannot be decoded, replaced by synthesised ones" in page.notes


def test_a_body_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    archive = Archive()
    bomb = gzip.compress(bytes(2**26 + 1))
    archive.add(BASE, bomb, "text/html", asked=NAVIGATION, headers={"Content-Encoding": "gzip"})
    with pytest.raises(UsageError, match=r"https://site\.test/: found a larger body"):
        imported(tmp_path, archive.data())


def second_page(archive: Archive) -> Archive:
    html = b"<!doctype html><link rel=stylesheet href=s.css><img src=c.png>"
    archive.add(BASE + "two", html, "text/html", asked=NAVIGATION | {"Referer": BASE})
    archive.add(BASE + "c.png", b"PNG3", "image/png", asked={"Referer": BASE + "two"})
    return archive


def test_of_several_pages_one_is_chosen_by_number_or_address(tmp_path: Path) -> None:
    data = second_page(site(Archive())).data()
    assert imported(tmp_path, data).url == BASE
    assert len(imported(tmp_path, data).resources) == 5
    for page in ("2", BASE + "two"):
        second = imported(tmp_path, data, page=page)
        # The browser had the stylesheet, and what it names, from the page before.
        assert [r.url for r in second.resources if r.type == "html"] == [BASE + "two"]
        assert {url for url, _, _ in found(second)} == {"two", "s.css", "b.png", "c.png"}
    with pytest.raises(UsageError, match=r"page: found '3'; accepted: a number .*/, https://site\.test/two"):
        imported(tmp_path, data, page="3")


def test_a_crawl_without_requests_gives_pages_with_what_they_refer_to(tmp_path: Path) -> None:
    archive = Archive()
    for url, content, mime in [
        ("", b"<!doctype html><a href=two>x</a><img src=a.png><iframe src=f>", "text/html"),
        ("two", b"<!doctype html><link rel=stylesheet href=s.css>", "text/html"),
        ("f", b"<p>frame", "text/html"), ("s.css", CSS, "text/css"), ("b.png", b"2", "image/png"),
        ("a.png", b"1", "image/png"),
    ]:  # fmt: skip
        archive.add(BASE + url, content, mime)
    first = imported(tmp_path, archive.data())
    assert [(url, kind) for url, kind, _ in found(first)] == [
        ("", "html"), ("f", "html"), ("a.png", "image"),
    ]  # fmt: skip
    second = imported(tmp_path, archive.data(), page="2")
    assert {"two", "s.css", "b.png"} <= {url for url, _, _ in found(second)}


def test_redirects_in_front_of_a_page_belong_to_it(tmp_path: Path) -> None:
    archive = Archive()
    for url, to in (("http://site.test/", BASE), (BASE, BASE + "home")):
        moved = {"Location": to}
        archive.add(url, b"", "text/html", status="301 Moved", asked=NAVIGATION, headers=moved)
    archive.add(BASE + "home", HTML, "text/html", asked=NAVIGATION)
    page = imported(tmp_path, archive.data())
    assert [(r.url, r.status) for r in page.resources] == [
        ("http://site.test/", 301), (BASE, 301), (BASE + "home", 200),
    ]  # fmt: skip


def test_revisits_have_the_body_that_they_name(tmp_path: Path) -> None:
    archive = Archive()
    archive.add(BASE + "old.css", CSS, "text/css")
    digest = "sha1:" + base64.b32encode(hashlib.sha1(CSS).digest()).decode()
    archive.add(BASE, HTML, "text/html", asked=NAVIGATION)
    sent = {"Referer": BASE}
    archive.revisit(BASE + "s.css", "sha1:OTHER", BASE + "old.css", "2024-05-06T07:08:01Z", sent)
    archive.revisit(BASE + "t.css", digest, "https://gone.test/", "2020-01-01T00:00:00Z", sent)
    archive.revisit(BASE + "u.css", "sha1:NONE", "https://gone.test/", "2020-01-01T00:00:00Z", sent)
    page = imported(tmp_path, archive.data())
    urls = [r.url for r in page.resources]
    assert BASE + "u.css" not in urls
    for name in ("s.css", "t.css"):
        assert page.resources[urls.index(BASE + name)].decoded_bytes == len(CSS)
    assert "1 revisits of answers that the archive does not hold" in page.notes


def test_resource_records_are_answers_of_their_own(tmp_path: Path) -> None:
    archive = Archive()
    for url, mime, content in ((BASE, "text/html", HTML), (BASE + "a.png", "image/png", b"PNG")):
        record = archive.writer.create_warc_record(
            url, "resource", io.BytesIO(content), warc_content_type=mime
        )
        archive.writer.write_record(record)
    page = imported(tmp_path, archive.data())
    assert [(r.url, r.status, r.header("content-type")) for r in page.resources] == [
        (BASE, 200, "text/html"), (BASE + "a.png", 200, "image/png"),
    ]  # fmt: skip


def test_page_ids_part_the_pages_of_a_crawl(tmp_path: Path) -> None:
    archive = Archive()
    for page in ("p1", "p2"):
        fields = {"WARC-Page-ID": page}
        archive.add(f"{BASE}{page}", b"<!doctype html><p>x", "text/html", asked=NAVIGATION, fields=fields)
        archive.add(f"{BASE}{page}.png", b"x", "image/png", asked={}, fields=fields)
    archive.add(f"{BASE}late.png", b"x", "image/png", asked={}, fields={"WARC-Page-ID": "p1"})
    assert [url for url, _, _ in found(imported(tmp_path, archive.data()))] == ["p1", "p1.png", "late.png"]


def wacz(folder: Path, archive: bytes, pages: list[dict[str, str]]) -> bytes:
    path = folder / "made"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("archive/data.warc.gz", archive)
        lines = [{"format": "json-pages-1.0"}, *pages]
        made.writestr("pages/pages.jsonl", "\n".join(json.dumps(line) for line in lines) + "\nno JSON\n")
    return path.read_bytes()


def test_the_list_of_a_wacz_names_its_pages(tmp_path: Path) -> None:
    data = wacz(
        tmp_path, second_page(site(Archive())).data(), [{"url": BASE + "two#part", "title": "The second"}]
    )
    page = imported(tmp_path, data, "x.wacz")
    assert (page.url, page.title) == (BASE + "two", "The second")


def test_archives_without_a_page_and_broken_ones_are_refused(tmp_path: Path) -> None:
    image = Archive()
    image.add(BASE + "a.png", b"x", "image/png")
    whole = site(Archive(packed=False)).data()
    cases = {
        "an archive of 1 answers, none of which is an HTML document": image.data(),
        "record 1 that ends too early": whole[:300],
        "record 2, which begins with": whole[: whole.index(b"WARC/", 10)] + b"nonsense\r\n",
        "of the length 'many'": b"WARC/1.0\r\nContent-Length: many\r\n\r\n",
        "a line of more than": b"WARC/1.0\r\n" + b"a" * 100_000,
    }
    for message, data in cases.items():
        with pytest.raises(UsageError, match=message):
            imported(tmp_path, data)


def test_a_damaged_archive_is_imported_or_refused_in_one_line(tmp_path: Path) -> None:
    chance = random.Random(3)
    packed = second_page(site(Archive())).data()
    for data in (packed, second_page(site(Archive(packed=False))).data(), wacz(tmp_path, packed, [])):
        for _ in range(40):
            changed = bytearray(data)
            for _ in range(chance.choice((1, 4, 30))):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            end = chance.randrange(len(changed)) if chance.random() < 0.3 else len(changed)
            try:
                imported(tmp_path, bytes(changed[:end]))
            except UsageError as error:
                assert "\n" not in str(error)


def test_what_an_archive_unpacks_to_is_bounded_in_lines_headers_members_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirepaint.pages.readers import source, warc, warc_archive

    whole = site(Archive()).data()
    monkeypatch.setattr(source, "_LINES", 1000)
    with pytest.raises(UsageError, match="found more than 1,000 lines"):
        imported(tmp_path, whole + gzip.compress(b"\n" * 1001))
    monkeypatch.setattr(source, "_MEMBERS", 100)
    with pytest.raises(UsageError, match="found gzip of more than 100 members"):
        imported(tmp_path, whole + gzip.compress(b"") * 101)
    monkeypatch.setattr(warc, "MAX_BYTES", len(gzip.decompress(whole)) * 3 // 2)
    with zipfile.ZipFile(tmp_path / "two", "w") as made:
        made.writestr("archive/1.warc.gz", whole)
        made.writestr("archive/2.warc.gz", whole)
    with pytest.raises(UsageError, match=r"'archive/2\.warc\.gz': found more than that"):
        imported(tmp_path, (tmp_path / "two").read_bytes(), "x.wacz")
    monkeypatch.setattr(warc_archive, "_HEADERS", 3)
    with pytest.raises(
        UsageError, match=r"record \d: found more than that; accepted: at most 3 HTTP headers"
    ):
        imported(tmp_path, whole)


def test_no_member_of_a_zip_is_written_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with zipfile.ZipFile(tmp_path / "inner" / "x.wacz", "w") as made:
        made.writestr("archive/data.warc.gz", site(Archive()).data())
        for name in ("../out.txt", "/tmp/out-of-it.txt", "archive/../../out.txt"):
            made.writestr(name, "x")
    import_har(tmp_path / "inner" / "x.wacz", tmp_path / "inner" / "page")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner"]
    assert sorted(path.name for path in (tmp_path / "inner").iterdir()) == ["page", "x.wacz"]
    assert not Path("/tmp/out-of-it.txt").exists()
