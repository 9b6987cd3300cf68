"""A congestion control of the user's own, named by its path in an evaluation file."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion
from wirepaint.evaluation.congestion import CongestionTable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from wirepaint.cc import new

    new.write("mine", tmp_path)
    return tmp_path


def resolve(folder: Path, **table: int | str) -> congestion.Congestion:
    value = CongestionTable.model_validate({"name": "./mine.c", **table})
    return congestion.resolve(value, "e.toml: scenarios.congestion[0]", ("testbed",), folder)


def test_each_parameter_set_is_an_instance_of_its_own(folder: Path) -> None:
    plain, kept = resolve(folder), resolve(folder, mine_keep=80)
    assert (plain.label, plain.name, plain.own) == ("mine", "mine", True)
    assert kept.label == "mine-mine_keep-80"
    assert kept.parameters == {"mine_keep": 80}


def test_the_text_is_part_of_the_identity_and_the_path_is_not(folder: Path, tmp_path: Path) -> None:
    before = resolve(folder).model_dump()
    file = folder / "mine.c"
    file.write_text(file.read_text() + "\n/* changed */\n")
    after = resolve(folder).model_dump()
    assert before["file"]["sha256"] != after["file"]["sha256"]
    assert str(folder) not in str(before) and "text" not in before["file"]


def test_a_run_uses_the_text_that_was_planned(folder: Path, tmp_path: Path) -> None:
    planned = resolve(folder)
    text = (folder / "mine.c").read_text()
    (folder / "mine.c").write_text("gone")
    run = tmp_path / "run"
    run.mkdir()
    copy = Path(planned.algorithm(run))
    assert copy == run / "mine.c" and copy.read_text() == text


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"mine_kep": 3}, ["mine_kep", 'did you mean "mine_keep"?']),
        ({"mine_keep": 100}, ["mine_keep: found 100", "1 to 99"]),
        ({"name": "./none.c"}, ["none.c", "no such file"]),
    ],
)
def test_what_is_wrong_is_named_with_what_is_accepted(
    folder: Path, table: dict[str, int | str], words: list[str]
) -> None:
    with pytest.raises(UsageError) as raised:
        resolve(folder, **table)
    assert all(word in str(raised.value) for word in ["e.toml: scenarios.congestion[0]", *words])


def test_a_file_that_does_not_compile_is_refused_with_its_first_error(folder: Path) -> None:
    file = folder / "mine.c"
    file.write_text(file.read_text().replace("mine->losses++;", "mine->nothing++;", 1))
    with pytest.raises(UsageError, match=r"mine\.c:\d+:\d+: error: .*nothing"):
        resolve(folder)
