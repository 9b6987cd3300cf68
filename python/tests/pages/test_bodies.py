"""Stored bodies are decoded to the size that page.json states, and not beyond."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotli
import pytest
from recording import entry, write

from wirepaint.errors import UsageError
from wirepaint.pages import bodies, import_har, prepare
from wirepaint.pages.loading import load_graph
from wirepaint.pages.secure import secured

BASE = "https://site.test/"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    text = "<p>hello</p>" * 50
    import_har(
        write(tmp_path, entry(BASE, text=text, headers={"content-encoding": "gzip"})), tmp_path / "page"
    )
    return tmp_path / "page"


def changed(page: Path, body: bytes, **keys: Any) -> None:
    """Gives the document another body under its own hash, and other keys."""
    index = json.loads((page / "page.json").read_text())
    digest = hashlib.sha256(body).hexdigest()
    (page / "bodies" / digest).write_bytes(body)
    index["resources"][0] |= {"body": digest, "wire_bytes": len(body), **keys}
    (page / "page.json").write_text(json.dumps(index))


def coded(coding: str) -> dict[str, Any]:
    return {"headers": [["content-type", "text/html"], ["content-encoding", coding]]}


@pytest.mark.parametrize(
    ("body", "keys", "found"),
    [
        (gzip.compress(bytes(2**25)), {"decoded_bytes": 600}, "a larger body"),
        (brotli.compress(bytes(2**25), quality=1), {"decoded_bytes": 600, **coded("br")}, "a larger body"),
        (gzip.compress(b"x" * 599), {"decoded_bytes": 600}, "a body of 599 bytes"),
        (b"<p>plain", {"decoded_bytes": 8}, "what is not in that coding (Error -3"),
        (gzip.compress(b"x" * 600), {"decoded_bytes": 600, **coded("br")}, "what is not in that coding ("),
        (
            gzip.compress(b"x" * 600)[:-9],
            {"decoded_bytes": 600},
            "what is not in that coding (it ends too early)",
        ),
    ],
    ids=["gzip bomb", "brotli bomb", "shorter", "plain as gzip", "gzip as br", "cut"],
)
def test_a_body_that_is_not_what_the_index_says_is_refused(
    page: Path, tmp_path: Path, body: bytes, keys: dict[str, Any], found: str
) -> None:
    changed(page, body, **keys)
    with pytest.raises(UsageError) as refused:
        prepare(page, tmp_path / "cache")
    message = str(refused.value)
    assert message.startswith(f"{page / 'page.json'}: resources[0].body: found {found}")
    assert f"accepted: a body of {keys['decoded_bytes']} bytes in the coding" in message


def test_a_body_that_changed_after_the_page_was_made_ready_is_refused(page: Path, tmp_path: Path) -> None:
    prepared = prepare(page, tmp_path / "cache")
    Path(prepared.responses[0]["body"]).write_bytes(gzip.compress(bytes(2**25)))
    with pytest.raises(UsageError, match=r"found more than [0-9]+ bytes; accepted: a file of"):
        load_graph(prepared, (1280, 800))


def made_link(body: Path) -> None:
    body.with_name("apart").write_bytes(body.read_bytes())
    body.with_name("apart").rename(body.parents[2] / "apart")
    body.unlink()
    body.symlink_to(body.parents[2] / "apart")


def made_pipe(body: Path) -> None:
    body.unlink()
    os.mkfifo(body)


def made_device(body: Path) -> None:
    body.unlink()
    body.symlink_to("/dev/zero")


def made_endless(body: Path) -> None:
    with body.open("r+b") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (made_link, "a link out of the folder"),
        (made_pipe, "no regular file"),
        (made_device, "a link out of the folder"),
        (made_endless, "more than"),
    ],
)
def test_a_body_that_is_no_file_of_the_folder_is_refused(
    page: Path, tmp_path: Path, change: Callable[[Path], None], found: str
) -> None:
    (body,) = (page / "bodies").iterdir()
    change(body)
    with pytest.raises(UsageError, match=rf"resources\[0\]\.body: found {found}"):
        prepare(page, tmp_path / "cache")


def test_a_coding_that_no_page_has_is_refused(page: Path, tmp_path: Path) -> None:
    changed(page, b"x", decoded_bytes=1, **coded("zstd"))
    with pytest.raises(UsageError, match='content-encoding is "zstd", it must be identity, gzip or br'):
        prepare(page, tmp_path / "cache")


def test_a_copy_holds_the_index_and_its_bodies_and_nothing_else(page: Path, tmp_path: Path) -> None:
    (page / "endless").symlink_to("/dev/zero")
    os.mkfifo(page / "pipe")
    (page / "bodies" / "other").write_text("x")
    (tmp_path / "copy").mkdir()
    bodies.copy(page, tmp_path / "copy")
    copied = sorted(str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*"))
    (digest,) = {p.name for p in (page / "bodies").iterdir()} - {"other"}
    assert copied == ["bodies", f"bodies/{digest}", "page.json"]


def test_a_page_by_https_is_made_without_following_links(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (page / "endless").symlink_to("/dev/zero")
    assert sorted(file.name for file in secured(page).iterdir()) == ["bodies", "page.json"]
