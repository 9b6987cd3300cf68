"""Bad recordings and damaged page folders end in one line that names file and place."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import entry, log, write

from wirepaint.errors import UsageError
from wirepaint.pages import import_folder, import_har, load, prepare, readers

BASE = "https://site.test/"


def without(key: str) -> dict[str, Any]:
    broken = entry(BASE)
    parts = key.split(".")
    holder = broken
    for part in parts[:-1]:
        holder = holder[part]
    del holder[parts[-1]]
    return broken


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (without("request"), "log.entries[1].request: found nothing"),
        (without("request.url"), "log.entries[1].request.url: found nothing"),
        (without("response.status"), "log.entries[1].response.status: found nothing"),
        (without("startedDateTime"), "log.entries[1].startedDateTime: found nothing"),
        (entry(BASE) | {"startedDateTime": "soon"}, 'log.entries[1].startedDateTime: found "soon"'),
        (entry(BASE, status=900), "log.entries[1].response.status: found 900"),
        (entry("https://"), "log.entries[1].request.url: found 'https://'"),
        (entry("https://user:pw@site.test/"), "log.entries[1].request.url"),
        (entry("https://site.test:99999/"), "log.entries[1].request.url"),
        (entry("https://site.test/a b"), "log.entries[1].request.url"),
        (entry(BASE + "x", method="G T"), "log.entries[1].request.method: found 'G T'"),
        (
            entry(BASE + "x", response={"content": {"text": "abc", "encoding": "base64"}}),
            "log.entries[1].response.content.text: found broken base64",
        ),
        (
            entry(BASE + "x", response={"content": {"text": "abc", "encoding": "rot13"}}),
            "log.entries[1].response.content.encoding: found 'rot13'",
        ),
        (
            entry(BASE + "x", response={"content": {"text": 5}}),
            "log.entries[1].response.content.text: found 5",
        ),
        (entry(BASE + "x", response={"headers": "none"}), 'log.entries[1].response.headers: found "none"'),
    ],
)
def test_a_broken_entry_is_named(tmp_path: Path, broken: dict[str, Any], place: str) -> None:
    path = write(tmp_path, entry(BASE), broken)
    with pytest.raises(UsageError) as caught:
        import_har(path, tmp_path / "page")
    message = str(caught.value)
    assert message.startswith(f"{path}: {place}")
    assert "accepted: " in message
    assert "\n" not in message
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "found an empty file; accepted: a HAR"),
        (b" \n body {}", 'found a file that begins with "body {}"; accepted: a HAR'),
        (b"\x89PNG\r\n", "found a file that begins with "),
        (b"{", "found what is no JSON (EOF while parsing an object at line 1 column 1); accepted: JSON"),
        (b"[1, 2]", "found"),
        (b"\xff\xfe\x00", "found"),
        (b'{"log": {}}', "log.entries: found nothing"),
        (json.dumps(log()).encode(), "log.entries: found an empty list"),
        (json.dumps(log(entry("data:,x"))).encode(), "found no answered http or https request"),
        (b"[" * 100_000, "found"),
        (b"\x1f\x8bnonsense", "found broken gzip"),
        (gzip.compress(json.dumps(log(entry(BASE))).encode())[:-12], "found gzip that ends too early"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "page.har"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=re.escape(found)) as caught:
        import_har(path, tmp_path / "page")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unknown_page_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.har: found no such file"):
        import_har(tmp_path / "none.har", tmp_path / "page")
    path = write(tmp_path, entry(BASE), pages=[{"id": "p1"}])
    with pytest.raises(UsageError, match=r"page: found '7'; accepted: a number from 1 or an id .*: p1"):
        import_har(path, tmp_path / "page", page="7")


def test_a_name_or_seed_that_no_page_can_have_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, entry(BASE))
    for name in ("My Page", "../x", "", "a" * 65):
        with pytest.raises(UsageError, match=r"--name: found .*; accepted: 1 to 64 of"):
            import_har(path, tmp_path / "page", name=name)
    with pytest.raises(UsageError, match="--seed: found -1"):
        import_har(path, tmp_path / "page", seed=-1)


def test_what_is_no_page_folder_is_never_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, entry(BASE))
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    (tmp_path / "a-file").write_text("x")
    for out in (precious, tmp_path / "a-file"):
        with pytest.raises(UsageError, match="accepted: a new folder, an empty one or a page folder"):
            import_har(path, out)
    assert (precious / "thesis.tex").exists()
    import_har(path, tmp_path / "page")
    import_har(path, tmp_path / "page")


@pytest.mark.parametrize("index", ["{}", '{"name": "our-cms", "version": 3}', "no JSON"])
def test_a_folder_with_a_page_json_of_something_else_is_never_replaced(tmp_path: Path, index: str) -> None:
    path = write(tmp_path, entry(BASE))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "page.json").write_text(index)
    (theirs / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=r"theirs: found something that is no page \(.*page\.json"):
        import_har(path, theirs)
    assert sorted(file.name for file in theirs.iterdir()) == ["page.json", "thesis.tex"]


@pytest.mark.parametrize("out", [".", ".."])
def test_the_working_folder_is_never_replaced(tmp_path: Path, monkeypatch, out: str) -> None:
    (tmp_path / "recordings").mkdir()
    path = write(tmp_path / "recordings", entry(BASE))
    import_har(path, tmp_path / "page")
    (tmp_path / "page" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "page" if out == "." else tmp_path / "page" / "below")
    with pytest.raises(UsageError, match="found a folder that is not named; accepted: the name of"):
        import_har(path, Path(out))
    assert (tmp_path / "page" / "page.json").exists()


def test_a_source_is_never_replaced_by_its_page(tmp_path: Path) -> None:
    import_har(write(tmp_path, entry(BASE)), tmp_path / "page")
    for site in (tmp_path / "page", tmp_path / "page" / "bodies"):
        (site / "index.html").write_text("<title>A site</title>")
    write(tmp_path / "page", entry(BASE))
    (tmp_path / "link").symlink_to("page")
    before = sorted((tmp_path / "page").rglob("*"))
    apart = "; accepted: a folder apart from the source"
    for out in (tmp_path / "page", tmp_path / "link", tmp_path / "page" / ".." / "page"):
        with pytest.raises(UsageError, match=f"found the source itself{apart}"):
            import_folder(tmp_path / "page", out)
    with pytest.raises(UsageError, match=f"found a place within the source .*{apart}"):
        import_folder(tmp_path / "page", tmp_path / "page" / "made")
    with pytest.raises(UsageError, match=f"found the folder that holds the source .*{apart}"):
        import_folder(tmp_path / "page" / "bodies", tmp_path / "page")
    with pytest.raises(UsageError, match=f"found the folder that holds the source .*{apart}"):
        import_har(tmp_path / "page" / "page.har", tmp_path / "page")
    assert sorted((tmp_path / "page").rglob("*")) == before


def test_a_gzip_bomb_ends_within_the_bounds_of_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.har.gz"
    block = gzip.compress(b" " * 2**24)
    path.write_bytes(block * 64)  # 1 GiB
    script = (
        "import re, sys, pathlib\n"
        "from wirepaint.pages import import_har\n"
        "from wirepaint.errors import UsageError\n"
        "try: import_har(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))\n"
        "except UsageError as error: print(error)\n"
        # Unlike ru_maxrss, it leaves out what this process was forked from.
        "print(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path / "out"],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    message, peak = done.stdout.splitlines()
    assert message == f"{path}: found more than that; accepted: {readers.ACCEPTED}"
    assert int(peak) < 512 * 1024


def damaged(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        index = json.loads((folder / "page.json").read_text())
        change(index)
        (folder / "page.json").write_text(json.dumps(index))

    return apply


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i: i.update(format=2), "format: found 2"),
        (lambda i: i.update(name="../x"), 'name: found "../x"'),
        (lambda i: i.update(resources=[]), "resources: found"),
        (lambda i: i["resources"][0].update(body="../../etc/passwd"), "resources[0].body: found"),
        (lambda i: i["resources"][0].update(url="file:///etc/passwd"), "resources[0].url: found"),
        (
            lambda i: i["resources"][0].update(headers=[["a", "b\r\nc: d"]]),
            "resources[0].headers[0][1]: found",
        ),
        (lambda i: i["resources"][1]["cause"].update(by=1), "a cause must come before its effect"),
        (lambda i: i["resources"][1].update(id=7), "it must be its position 1"),
        (lambda i: i["resources"][1].update(url=BASE), "occurs twice"),
        (lambda i: i.update(colour="red"), "colour: found"),
    ],
)
def test_a_damaged_index_is_refused_with_its_key(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    folder = tmp_path / "page"
    import_har(write(tmp_path, entry(BASE), entry(BASE + "a.png", mime="image/png", at=9)), folder)
    damaged(change)(folder)
    with pytest.raises(UsageError) as caught:
        prepare(folder, tmp_path / "cache")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder / "page.json"))


def test_a_changed_or_missing_body_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    page = import_har(write(tmp_path, entry(BASE, text="<p>hello")), folder)
    body = folder / "bodies" / (page.resources[0].body or "")
    body.write_bytes(b"<p>other")
    with pytest.raises(UsageError, match=r"resources\[0\]\.body: found [0-9a-f]{64}"):
        prepare(folder, tmp_path / "cache")
    body.unlink()
    with pytest.raises(UsageError, match=r"resources\[0\]\.body: found no such file"):
        prepare(folder, tmp_path / "cache")


def test_a_folder_without_a_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"page\.json: found no such file.*; accepted: a page folder"):
        load(tmp_path)
    with pytest.raises(UsageError, match=r"found no index\.html; accepted: the folder of a static site"):
        import_folder(tmp_path, tmp_path / "out")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(
        ["http://[", "https://a.test/\ud800x", "gzip", "base64", "text/html; charset=utf-16", "302", BASE]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [place for key, inner in items for place in places(inner, (*path, key))]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_whatever_a_recording_holds_it_is_imported_or_refused_in_one_line(data: st.DataObject) -> None:
    recording = log(
        entry(BASE, status=302, headers={"location": "/b"}, size=0),
        entry(BASE + "b", at=40, text='<img src="a.png"><style>@import "x.css"</style>', _initiator=BASE),
        entry(BASE + "a.png", at=90, mime="image/png", timings={"connect": 5.0, "ssl": 2.0},
              _initiator={"type": "script", "stack": {"callFrames": []}},
              headers={"content-encoding": "gzip", "expires": "0", "date": "x"}),
        entry(BASE + "c", at=95, method="POST", mime="application/json", asked={"referer": BASE}),
        pages=[{"id": "p", "startedDateTime": "2026-01-02T03:04:05", "pageTimings": {"onLoad": 70}}],
    )  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from([p for p in places(recording) if p]))
        holder: Any = recording
        for key in path:
            holder = holder[key]
        holder[last] = data.draw(ANYTHING)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "page.har").write_text(json.dumps(recording))
        try:
            import_har(folder / "page.har", folder / "page")
        except UsageError as error:
            assert "\n" not in str(error)
            assert str(error).startswith(str(folder / "page.har"))
            return
        prepared = prepare(folder / "page", folder / "cache")
        for response in prepared.responses:
            assert response["body"] is None or Path(response["body"]).is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda i: i["resources"][0].update(wire_bytes=2**52),
            "resources[0].wire_bytes: found 4503599627370496",
        ),
        (
            lambda i: i["resources"][0].update(decoded_bytes=2**52),
            "resources[0].decoded_bytes: found 45035996",
        ),
        (lambda i: i["resources"][0].update(think_ms=1e300), "resources[0].think_ms: found 1e+300"),
        (lambda i: i["resources"][0].update(compressibility=float("nan")), ".compressibility: found NaN"),
        (
            lambda i: i["resources"][0].update(residual_bytes=2**60),
            ".residual_bytes: found 1152921504606846976",
        ),
        (
            lambda i: i["resources"][0]["recorded"].update(post_bytes=2**52),
            ".recorded.post_bytes: found 45035",
        ),
        (lambda i: i["resources"][0].update(headers=[["a", "b"]] * 3000), ".headers: found"),
        (lambda i: i.update(viewport=[2**52, 1]), "viewport[0]: found 4503599627370496"),
        (lambda i: i.update(seed=2**70), "seed: found 1180591620717411303424"),
        (lambda i: i["resources"].extend(i["resources"] * 3000), "resources: found"),
        (
            lambda i: (
                [r.update(synthetic=True, body=None, decoded_bytes=2**26) for r in i["resources"] * 3]
                and i["resources"].extend(
                    {**i["resources"][1], "id": n, "url": f"{BASE}{n}"} for n in range(2, 6)
                )
            ),
            "bodies are together 402653184 bytes, they may be 268435456",
        ),
    ],
)
def test_sizes_and_times_that_no_page_has_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    test_a_damaged_index_is_refused_with_its_key(tmp_path, change, message)


ADDRESSES = [
    "http://a:99999/", "http://a:0/", "http://a:b/", "http://[::1", "http:///x", "https://:443/", "http://a..b/",
    f"http://{'a' * 300}/", "http://xn--ü/", "http://a\x00b/", "http://a/\x1b[2J", "http://u:p@a/", "http://1.2.3.999/",
    "http://a b/", "http://a/#x", "http://a/\u202e", "http://a/" + "x" * 70_000, "ftp://a/", "http://a:\u0663/",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_no_browser_asks_for_is_refused(tmp_path: Path, address: str) -> None:
    change = lambda i: i["resources"][1].update(url=address)  # noqa: E731
    test_a_damaged_index_is_refused_with_its_key(tmp_path, change, "resources[1].url: found")


@pytest.mark.parametrize(
    "address",
    ["https://a.b-c.d_e:8443/x?y=[z]|{}", "https://[::1]:81/", "https://127.0.0.1/", "https://a./é"],
)
def test_an_address_as_browsers_ask_for_it_is_taken(tmp_path: Path, address: str) -> None:
    page = import_har(write(tmp_path, entry(BASE), entry(address, at=9)), tmp_path / "page")
    assert address in {resource.url for resource in page.resources}


@pytest.mark.parametrize(
    "address", [a for a in ADDRESSES if a.startswith("http://") and len(a) < 200 and "#" not in a]
)
def test_a_recording_of_such_an_address_is_refused_with_its_place(tmp_path: Path, address: str) -> None:
    path = write(tmp_path, entry(BASE), entry(address, at=9))
    with pytest.raises(UsageError, match=r"log\.entries\[1\]\.request\.url: found"):
        import_har(path, tmp_path / "page")


def test_hosts_and_paths_that_are_too_long_are_left_out_of_a_recording(tmp_path: Path) -> None:
    long = [f"http://{'a.' * 150}b/", f"{BASE}{'x' * 9000}"]
    page = import_har(write(tmp_path, entry(BASE), *map(entry, long)), tmp_path / "page")
    assert len(page.resources) == 1 and "2 addresses longer than servers take" in page.notes


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (entry(BASE, size=2**52), "log.entries[0].response.content.size: found 4503599627370496"),
        (
            entry(BASE, size=9, response={"bodySize": 2**52, "headers": []}, mime="image/png"),
            "log.entries[0].response.bodySize: found 4503599627370496",
        ),
        (entry(BASE) | {"startedDateTime": "0001-01-01T00:00:00"}, "log.entries[0].startedDateTime: found"),
        (
            entry(BASE) | {"startedDateTime": "9999-12-31T23:59:59-14:00"},
            "log.entries[0].startedDateTime: found",
        ),
        (entry(BASE, response={"status": 10**400}), "log.entries[0].response.status: found"),
    ],
)
def test_sizes_and_dates_that_no_recording_has_are_refused(
    tmp_path: Path, broken: dict[str, Any], place: str
) -> None:
    path = write(tmp_path, broken)
    with pytest.raises(UsageError) as caught:
        import_har(path, tmp_path / "page")
    assert str(caught.value).startswith(f"{path}: {place}")
    assert len(str(caught.value)) < 1000


def test_times_that_are_none_count_as_unknown(tmp_path: Path) -> None:
    odd = {"connect": 1e300, "wait": float("nan"), "receive": float("inf")}
    page = import_har(write(tmp_path, entry(BASE, time=1e300, timings=odd)), tmp_path / "page")
    assert page.resources[0].think_ms == 0 and page.resources[0].recorded.wait_ms == 0


def test_an_index_that_is_a_link_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    import_har(write(tmp_path, entry(BASE)), tmp_path / "page")
    index = tmp_path / "page" / "page.json"
    index.rename(tmp_path / "apart.json")
    index.symlink_to(tmp_path / "apart.json")
    with pytest.raises(UsageError, match=r"page\.json: found a link; accepted: a page folder"):
        load(tmp_path / "page")
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(UsageError, match=r"page\.json: found no regular file"):
        load(tmp_path / "page")
    for recording in (index, Path("/dev/zero"), Path("/proc")):
        with pytest.raises(UsageError, match=r"found (no regular file|a folder); accepted: a HAR"):
            import_har(recording, tmp_path / "other" / "page")


@pytest.mark.parametrize(
    "index",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"seed": ' + b"9" * 100_000, b'{"title": "\\ud800"', b"\xff",
     b"[" + b"{}," * 600_000],
    ids=["lists", "tables", "digits", "surrogate", "no UTF-8", "objects"],
)  # fmt: skip
def test_an_index_that_is_no_json_of_a_page_is_refused(tmp_path: Path, index: bytes) -> None:
    (tmp_path / "page.json").write_bytes(index)
    with pytest.raises(UsageError, match=r"page\.json: found") as caught:
        load(tmp_path)
    assert len(str(caught.value)) < 1000


def test_what_people_read_of_a_page_holds_no_command_for_a_terminal(tmp_path: Path) -> None:
    page = import_har(write(tmp_path, entry(BASE)), tmp_path / "page", title="\x1b[2J\nTwo lines \u202e")
    assert page.title == "\\x1b[2J Two lines \\u202e"
