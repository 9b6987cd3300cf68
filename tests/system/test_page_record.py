"""Recording a live page: the archive has the servers' answers, and no files are left behind."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import brotli
import proc
import pytest
import trustme
from recorded_site import Answer, Answers, Seen, Site

from wirepaint import recording
from wirepaint.cli import invoke
from wirepaint.errors import MachineLacks, PageTimeout, RunFailed
from wirepaint.pages import Page, Resource, load
from wirepaint.rehearsal import rehearse
from wirepaint.runners.testbed.browser.chromium import program

try:
    program.find()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)

SLOW_S = 0.2
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cfc0f01f00"
    "05000201a5f645400000000049454e44ae426082"
)
ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}


def html(text: str, **more: object) -> Answer:
    return replace(Answer(f"<!doctype html><title>t</title>{text}".encode(), "text/html"), **more)


def several_hosts(port: int) -> Answers:
    """A page whose start redirects twice, with parts of all types from four hosts."""
    noise = random.Random(1)
    document = f"""<!doctype html><meta charset=utf-8><title>Ein schöner Titel</title>
        <link rel=stylesheet href="http://cdn.test:{port}/style.css">
        <p class=fancy>text in the font</p><img src="/photo.png"><script src="/old.js"></script>
        <iframe src="http://frame.test:{port}/frame.html"></iframe>
        <script>
          fetch('/api/items?page=1').then(answer => answer.json()).then(items => {{
            for (const item of items) new Image().src = item;
            navigator.sendBeacon('http://stats.test:{port}/beacon', 'x'.repeat(300));
          }});
          new Worker('/worker.js');
        </script>{"<p>filler</p>" * 500}"""
    style = f"@font-face {{ font-family: f; src: url(http://cdn.test:{port}/font.woff2) }}"
    style += ".fancy { font-family: f }"
    any_header = ANY_ORIGIN | {"Access-Control-Allow-Headers": "*"}
    www = f"http://www.site.test:{port}"
    return {
        "site.test/": Answer(status=301, headers={"Location": f"{www}/"}),
        "www.site.test/": Answer(b"moved", status=302, headers={"Location": "/home", "Set-Cookie": "a=1"}),
        "www.site.test/home": Answer(
            b"\xef\xbb\xbf" + document.encode(),
            "text/html",
            headers={"Set-Cookie": "sid=5ecret5ess1on; HttpOnly", "X-Auth-Token": "t0k3n-of-the-server"},
            think_s=SLOW_S,
            gzip=True,
        ),
        "cdn.test/style.css": Answer(style.encode() + b"/* */" * 200, "text/css", gzip=True),
        "cdn.test/font.woff2": Answer(noise.randbytes(30_000), "font/woff2", headers=ANY_ORIGIN),
        "www.site.test/photo.png": Answer(PNG + noise.randbytes(200_000), "image/png", think_s=SLOW_S),
        # Neither UTF-8 nor text in its own charset: 0x81 is nothing in Latin-1's Windows dialect.
        "www.site.test/old.js": Answer(b"var name = 'caf\xe9 \x81';", "text/javascript; charset=iso-8859-1"),
        "www.site.test/api/items": Answer(b'["/late.png?n=1"]', "application/json"),
        "www.site.test/late.png": Answer(PNG, "image/png"),
        "www.site.test/worker.js": Answer(b"fetch('/from-worker.txt')", "text/javascript"),
        "www.site.test/from-worker.txt": Answer(b"worker", gzip=True),
        "frame.test/frame.html": html(f"<p>frame<script>fetch('http://stats.test:{port}/json',"
                                      "{headers: {'x-own': '1'}})</script>"),
        "stats.test/json": Answer(b"{}", "application/json", headers=any_header),
        "stats.test/beacon": Answer(status=204, type="text/plain"),
    }  # fmt: skip


def record(site: Site, place: str, out: Path, **options: object) -> Page:
    wish = replace(recording.read(site.url(place)), resolve=site.resolve, **options)
    return recording.record(wish, out)


def body(folder: Path, resource: Resource) -> bytes:
    """The stored body, decoded."""
    assert resource.body is not None
    data = (folder / "bodies" / resource.body).read_bytes()
    assert len(data) == resource.wire_bytes
    decode = {"gzip": gzip.decompress, "br": brotli.decompress}.get(resource.header("content-encoding") or "")
    return decode(data) if decode else data


def by_path(page: Page) -> dict[str, Resource]:
    return {f"{r.method} {r.url.partition('://')[2].partition('/')[2]}": r for r in page.resources}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """The site of several hosts, and its recording."""
    folder = tmp_path_factory.mktemp("record") / "page"
    site = Site({})
    site.answers |= several_hosts(site.port)
    with site:
        record(site, "site.test/", folder)
    return site, folder


def test_the_archive_holds_each_request_with_its_status_and_its_very_bytes(whole: tuple[Site, Path]) -> None:
    site, folder = whole
    page = load(folder)
    got = [f"{r.method} {r.url.partition('://')[2].replace(f':{site.port}', '')}" for r in page.resources]
    assert sorted(got) == sorted(site.asked)
    assert page.notes == ["1 bodies of redirects, which no browser reads, synthesised"]
    for resource in page.resources:
        place = resource.url.partition("://")[2].replace(f":{site.port}", "").partition("?")[0]
        sent = site.answers[place]
        assert isinstance(sent, Answer)
        assert resource.status == sent.status
        assert resource.synthetic == (place == "www.site.test/")
        assert resource.status == 200 or resource.wire_bytes == len(sent.body)
        if sent.body and sent.status == 200 and resource.method == "GET":
            assert body(folder, resource) == sent.body, place
            wire = len(gzip.compress(sent.body, 6)) if sent.gzip else len(sent.body)
            assert abs(resource.wire_bytes - wire) <= 2, place
            assert (resource.header("content-encoding") == "gzip") == sent.gzip


def test_it_says_what_was_recorded(whole: tuple[Site, Path]) -> None:
    page = load(whole[1])
    assert page.title == "Ein schöner Titel"
    assert page.url == page.source == whole[0].url("site.test/")
    assert page.name == "site.test"
    assert (page.viewport, page.mobile) == ((1280, 800), False)
    assert "HeadlessChrome/" in page.summary


@pytest.mark.timed
def test_server_time_is_what_the_server_took(whole: tuple[Site, Path]) -> None:
    for name, resource in by_path(load(whole[1])).items():
        slow = name in ("GET home", "GET photo.png")
        low, high = (SLOW_S * 1000 - 20, SLOW_S * 1000 + 150) if slow else (0, 150)
        assert low <= resource.think_ms <= high, name


def test_causes_are_those_that_the_page_states(whole: tuple[Site, Path]) -> None:
    page = load(whole[1])
    found = by_path(page)
    names = {resource.id: name for name, resource in found.items()}

    def cause(name: str) -> tuple[str, str]:
        resource = found[name]
        return names[resource.cause.by or 0], resource.cause.kind

    assert [r.status for r in page.resources[:3]] == [301, 302, 200]
    assert page.resources[1].cause.kind == page.resources[2].cause.kind == "redirect"
    assert cause("GET style.css") == ("GET home", "parser")
    assert cause("GET font.woff2") == ("GET style.css", "css")
    assert cause("GET photo.png") == cause("GET old.js") == cause("GET frame.html") == ("GET home", "parser")
    assert cause("GET api/items?page=1") == cause("POST beacon") == ("GET home", "script")
    assert cause("GET json") == ("GET frame.html", "script")
    assert cause("GET from-worker.txt") == ("GET worker.js", "script")
    assert found["POST beacon"].recorded.post_bytes == 300
    assert all(r.priority and r.recorded.protocol == "http/1.1" for r in page.resources)
    connections = {r.recorded.connection for r in page.resources if r.recorded.connection}
    assert len(connections) >= 5, "one a host at least"


def test_cookies_and_tokens_that_servers_set_are_left_out(whole: tuple[Site, Path]) -> None:
    text = (whole[1] / "page.json").read_text()
    assert "5ecret5ess1on" not in text and "set-cookie" not in text.lower()
    assert "t0k3n-of-the-server" not in text


def test_the_users_own_cookies_and_headers_are_sent_to_the_page_alone_and_not_stored(tmp_path: Path) -> None:
    token, session = "Tok3n/of+the=user", "s3ss10n-0f-the-user"

    def repeats(seen: Seen) -> Answer:
        """A page that writes what it got into its text, a script, an address."""
        got, cookie = seen.headers.get("x-token", ""), seen.headers.get("cookie", "")
        text = f"<p>{got} {cookie}<script>t={json.dumps(got)};fetch('/api?t='+encodeURIComponent(t))</script>"
        text += f"<img src='http://other.test:{site.port}/pixel.png'><img src=/away.png>"
        return html(text, gzip=True, headers={"X-Echo": got})

    site = Site({})
    site.answers |= {
        "site.test/": repeats,
        "site.test/api": lambda seen: Answer(seen.path.encode()),
        "site.test/away.png": Answer(
            status=302, headers={"Location": f"http://other.test:{site.port}/far.png"}
        ),
        "other.test/pixel.png": Answer(PNG, "image/png"),
        "other.test/far.png": Answer(PNG, "image/png"),
    }
    jar = tmp_path / "cookies.txt"
    jar.write_text(f"# Netscape HTTP Cookie File\n#HttpOnly_site.test\tFALSE\t/\tFALSE\t0\tsid\t{session}\n")
    with site:
        wish = recording.read(
            site.url("site.test/"), header=[f"X-Token: {token}", "Cookie: lang=en"], cookie_file=jar
        )
        page = recording.record(replace(wish, resolve=site.resolve), tmp_path / "page")
    for seen in site.seen:
        own = seen.host == "site.test"
        assert seen.headers.get("x-token") == (token if own else None), seen.path
        cookies = {"lang=en", f"sid={session}"} if own else {""}
        assert set(seen.headers.get("cookie", "").split("; ")) == cookies
    assert any(f"/api?t={'x' * 23}" in r.url for r in page.resources), "Tok3n%2Fof%2Bthe%3Duser"
    stored = [(tmp_path / "page/page.json").read_bytes()]
    stored += [body(tmp_path / "page", r) for r in page.resources if r.body]
    for secret in (token, "Tok3n%2Fof%2Bthe%3Duser", session):
        assert not any(secret.encode() in data for data in stored)
    assert b"sid=" + b"x" * len(session) in stored[1]
    assert any(note.startswith("the value of cookie sid hidden at ") for note in page.notes)
    assert any(note.startswith("the value of header X-Token hidden at ") for note in page.notes)


@pytest.mark.slow
def test_a_phone_is_what_the_page_sees_with_mobile(tmp_path: Path) -> None:
    seen = (
        "innerWidth, innerHeight, devicePixelRatio, 'ontouchstart' in window, navigator.userAgentData?.mobile"
    )
    text = "<meta name=viewport content='width=device-width'>"
    text += f"<script>onload = () => fetch('/seen-' + [{seen}].join('-'))</script>"
    site = Site({"localhost/": html(text), "localhost/seen-412-823-2.625-true-true": Answer(b"ok")})
    with site:
        wish = recording.read(site.url("localhost/"), mobile=True)
        page = recording.record(wish, tmp_path / "page")
    assert site.seen[-1].path == "/seen-412-823-2.625-true-true"
    assert {
        " Android " in s.headers["user-agent"] and "Headless" not in s.headers["user-agent"]
        for s in site.seen
    } == {True}
    assert site.seen[0].headers["sec-ch-ua-mobile"] == "?1"
    assert (page.viewport, page.mobile) == ((412, 823), True)
    # Loaded again, it is a phone's page still: on a desktop's screen it asks for another address.
    found = rehearse(tmp_path / "page", print).rehearsal
    assert found is not None
    assert (found.verdict, tuple(found.viewport)) == ("replays", (412, 823))


def test_the_viewport_is_the_one_asked_for(tmp_path: Path) -> None:
    text = "<script>onload = () => fetch('/seen?' + [innerWidth, innerHeight])</script>"
    with Site({"site.test/": html(text), "site.test/seen": Answer(b"ok")}) as site:
        page = record(site, "site.test/", tmp_path / "page", viewport=(900, 700))
    assert site.seen[-1].path == "/seen?900,700"
    assert page.viewport == (900, 700)


def test_wait_goes_on_after_the_network_is_quiet(tmp_path: Path) -> None:
    text = "<script>onload = () => setTimeout(() => fetch('/late'), 1500)</script>"
    with Site({"site.test/": html(text), "site.test/late": Answer(b"late")}) as site:
        assert len(record(site, "site.test/", tmp_path / "short").resources) == 1
        longer = record(site, "site.test/", tmp_path / "long", wait_s=2.0)
    assert longer.resources[-1].url.endswith("/late") and longer.resources[-1].recorded.after_load


def test_the_document_that_a_script_leaves_is_kept_too(tmp_path: Path) -> None:
    site = Site(
        {"site.test/": html("<script>location = '/two'</script>"), "site.test/two": html("<p>second")}
    )
    with site:
        page = record(site, "site.test/", tmp_path / "page")
    assert [(r.url.rpartition("/")[2], r.synthetic) for r in page.resources] == [("", False), ("two", False)]


def test_an_answer_cut_off_is_kept_as_far_as_it_came_and_noted(tmp_path: Path) -> None:
    cut = Answer(PNG + bytes(5000), "image/png", close_after=1000)
    with Site({"site.test/": html("<img src=cut.png>"), "site.test/cut.png": cut}) as site:
        page = record(site, "site.test/", tmp_path / "page")
    assert page.resources[1].decoded_bytes == 1000
    assert "1 answers cut off before their end, kept as far as they came" in page.notes


def test_a_service_worker_does_not_run(tmp_path: Path) -> None:
    text = "<script>navigator.serviceWorker.register('/sw.js')</script>"
    worker = b"oninstall = event => event.waitUntil(fetch('/from-sw'))"
    with Site({"localhost/": html(text), "localhost/sw.js": Answer(worker, "text/javascript")}) as site:
        page = record(site, "localhost/", tmp_path / "page", wait_s=1.0)
    assert "GET localhost/from-sw" not in site.asked
    assert len(page.resources) == 1
    assert "service workers were not let run (1)" in page.notes


def test_any_certificate_is_accepted_with_insecure_alone(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("site.test").configure_cert(tls)
    with Site({"site.test/": html("<p>secure")}, tls) as site:
        with pytest.raises(
            RunFailed, match=r"certificate is not accepted \(ERR_CERT_AUTHORITY_INVALID\); --insecure"
        ):
            record(site, "site.test/", tmp_path / "page")
        page = record(site, "site.test/", tmp_path / "page", insecure=True)
    assert page.url.startswith("https://site.test:")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(b"gone", "text/html", status=404), "answered with status 404; check the address"),
        (Answer(status=403), "answered with status 403; --header or --cookie-file may let you in"),
        (Answer(b"x", "application/zip", headers={"Content-Disposition": "attachment"}), "it is a download"),
        (Answer(status=302, headers={"Location": "/"}), "redirects without end"),
    ],
)
def test_what_is_no_page_ends_in_one_line_that_says_what_to_do(
    answer: Answer, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Site({"site.test/": answer}) as site:
        place = f"site.test:{site.port}:127.0.0.1"
        code = invoke(
            ["page", "record", site.url("site.test/"), "-o", str(tmp_path / "p"), "--resolve", place]
        )
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert says in err and err.startswith("wirepaint: ") and err.count("\n") == 1
    assert not (tmp_path / "p").exists() and list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Site({"site.test/": html("")}) as site:
        pass
    with pytest.raises(RunFailed, match=r"site\.test:\d+ refused the connection; check the port"):
        record(site, "site.test/", tmp_path / "page")
    with pytest.raises(RunFailed, match=r"the name nowhere\.invalid was not found"):
        recording.record(recording.read("http://nowhere.invalid/"), tmp_path / "page")


def test_a_page_that_does_not_load_in_time_is_a_timeout(tmp_path: Path) -> None:
    slow = Answer(PNG, "image/png", think_s=3.0)
    with (
        Site({"site.test/": html("<img src=slow.png>"), "site.test/slow.png": slow}) as site,
        pytest.raises(PageTimeout, match=r"not loaded within 1\.5 s \(1 requests were open\); --timeout"),
    ):
        record(site, "site.test/", tmp_path / "page", timeout_s=1.5)


def test_a_folder_that_is_no_page_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert invoke(["page", "record", "http://site.test/", "-o", str(tmp_path)]) == 2
    assert "accepted: a new folder, an empty one or a page folder" in capsys.readouterr().err


def left(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_recording_that_is_ended_leaves_no_process_and_no_folder(
    number: signal.Signals, tmp_path: Path
) -> None:
    hanging = Answer(PNG, "image/png", think_s=20.0)
    with (
        tempfile.TemporaryDirectory() as temporaries,
        Site({"site.test/": html("<img src=slow.png>"), "site.test/slow.png": hanging}) as site,
    ):
        Path(temporaries).chmod(0o711)  # an ordinary user goes through it
        place = f"site.test:{site.port}:127.0.0.1"
        command = ["page", "record", site.url("site.test/"), "-o", str(tmp_path / "p"), "--resolve", place]
        code = "import sys; from wirepaint.cli import invoke; sys.exit(invoke(sys.argv[1:]))"
        started = subprocess.Popen(
            [sys.executable, "-c", code, *command],
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": temporaries},
        )
        try:
            deadline = time.monotonic() + 20
            while "GET site.test/slow.png" not in site.asked and time.monotonic() < deadline:
                time.sleep(0.05)
            running = proc.descendants(started.pid)
            assert len(running) > 3 and len(left(temporaries)) == 1
            os.kill(started.pid, number)
            started.wait(10)
        finally:
            started.kill()
        deadline = time.monotonic() + 15
        while (any(map(proc.alive, running)) or left(temporaries)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in running if proc.alive(pid)]
        assert left(temporaries) == []
