"""Files that others wrote: no device, no pipe, no more bytes than asked for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wirepaint import files
from wirepaint.errors import UsageError


def refusal(path: Path, most: int = 1000) -> str:
    with pytest.raises(UsageError) as refused:
        files.text(path, most, "a note")
    assert str(refused.value).endswith("; accepted: a note")
    return refused.value.found


def test_a_file_that_may_not_be_read_asks_for_the_right(tmp_path: Path, monkeypatch) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    (tmp_path / "note").touch()
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(
        UsageError, match=r"note: found permission denied; accepted: a file that this user may read$"
    ):
        files.hashed(tmp_path / "note", 1000, "a recording of at most 1 GiB")


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"x" * 1000)
    assert files.content(tmp_path / "note", 1000, "a note") == b"x" * 1000
    assert refusal(tmp_path / "note", 999) == "more than 999 bytes"


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to("circle")
    assert refusal(tmp_path / "pipe") == "no regular file"
    assert refusal(tmp_path / "link") == "no regular file"
    assert refusal(Path("/dev/tty")) == "no regular file"
    assert refusal(tmp_path) == "a folder"
    assert refusal(tmp_path / "none") == "no such file or directory"
    assert refusal(tmp_path / "circle") == "too many levels of symbolic links"
    assert refusal(tmp_path / ("x" * 300)) == "file name too long"
    assert refusal(Path("a\0b")) == "embedded null byte"


def test_a_file_of_the_kernel_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    for path in map(Path, ("/proc/kmsg", "/proc/self/mem", "/proc/self/pagemap")):
        if path.exists() and os.access(path, os.R_OK):
            assert len(files.content(path, 2**31, "a note") if path.name == "kmsg" else refusal(path)) < 2**24


def test_text_that_is_no_utf_8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"abc\xff")
    assert refusal(tmp_path / "note") == "bytes that are not UTF-8 at byte 3"


@pytest.mark.parametrize(
    ("text", "good"),
    [("./a.har", True), ("a\0b", False), ("x" * 256, False), ("x/" * 1001, False), ("\ud800", False)],
)
def test_what_no_file_can_be_called_is_known_without_asking(text: str, good: bool) -> None:
    assert files.is_path(text) is good
