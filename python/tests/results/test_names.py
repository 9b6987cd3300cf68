"""Names that become paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.results import durable, names
from wirepaint.results.contents import Contents
from wirepaint.results.lock import Lock

KEYS = ["lte-fld-h2.user.some-page.v03", "a.b_c-1-iw10.user1.x.v00", "_x.u.p.v10000", "x" * 226 + ".v01"]
NO_KEYS = ["../../x", "..", ".", "", "/etc.v01", "a/b.v01", ".hidden.v01", "-x.v01", "A.v01", "a.v1", "a",
           "ä.v01", "a.v01\n", "a\0.v01", "x" * 227 + ".v01", 7, None, b"a.v01", ["a.v01"]]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_run_key_is_given_back(key: str):
    assert names.run_key(key, "here") == key


@pytest.mark.parametrize("key", NO_KEYS, ids=repr)
def test_what_is_no_run_key_is_refused_at_its_place(key):
    with pytest.raises(
        UsageError, match=r"here: found the run key .*; accepted: a run key: at most 230 of a-z"
    ):
        names.run_key(key, "here")


@pytest.mark.parametrize("name", ["lte", "My network (fast)", "netz-ü", "x" * 230])
def test_a_network_may_have_any_name_that_a_file_can_have(name: str):
    assert names.network(name, "here") == name


@pytest.mark.parametrize("name", ["../up", "/etc/x", "", "a\nb", "a\0b", "ü" * 116, 7, None], ids=repr)
def test_a_network_whose_file_would_lie_elsewhere_is_refused(name):
    with pytest.raises(UsageError, match="here: found the network"):
        names.network(name, "here")


@pytest.mark.parametrize("name", ["../x", "/etc/shadow", "a/../../x", "", "a//b", "./a", "a\0", 3], ids=repr)
def test_a_file_of_a_run_lies_in_its_folder(name, tmp_path: Path):
    with pytest.raises(UsageError, match="found the file"):
        Contents(tmp_path, {name: "0" * 64})
    Contents(tmp_path, {"page.parquet": "0" * 64, "deeper/log.txt": "0" * 64})


def test_a_link_anywhere_below_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names.inside(tmp_path, "real", "deep", "new") == tmp_path / "real/deep/new"
    assert names.inside(tmp_path / "link", "deep") == tmp_path / "link/deep", "the folder itself may be one"
    with pytest.raises(UsageError, match="link: found a symbolic link"):
        names.inside(tmp_path, "link", "deep")


def test_what_is_written_takes_the_place_of_a_link_and_leaves_its_target(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "file").symlink_to(tmp_path / "mine")
    durable.write(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new" and not (tmp_path / "file").is_symlink()
    (tmp_path / ".file.new").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        durable.write(tmp_path / "file", b"newer")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"):
        Lock(tmp_path / "lock", "here", "nothing")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("said", "number"),
    [("writing x: No space left on device (os error 28)", 28), ("os error 28", None), ("(os error x)", None)],
)
def test_what_the_system_said_is_found_in_the_words_of_a_program(said: str, number: int | None):
    error = durable.of_system(said)
    assert (error and error.errno) == number
