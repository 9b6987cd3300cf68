"""The verbs of ``wirepaint cc`` that need no root."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import re
import shutil
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from wirepaint import dataplane
from wirepaint.cli import invoke

GUIDE = Path(__file__).parents[3] / "docs/guide/write-a-congestion-control.md"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The guide's congestion control and its script."""
    for language, file in (("c", "gentle.c"), ("ack", "gentle-1.ack")):
        [block] = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        (tmp_path / file).write_text(block)
    return tmp_path / "gentle.c"


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(list(arguments)) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_the_list_says_where_each_runs_and_what_can_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["cc", "list", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["fld"]["where"] == ["kernel", "native"]
    assert entries["reno"]["where"] == ["kernel"]
    [threshold] = [p for p in entries["fld"]["parameters"] if p["name"] == "fld_threshold"]
    assert threshold["default"] == 2_000_000
    assert invoke(["cc", "list"]) == 0
    assert re.search(r"^ +fld_threshold +2000000 +0 to ", capsys.readouterr().out, re.MULTILINE)


def test_show_teaches_the_algorithm_and_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["cc", "show", "std"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("STD: standard TCP as RFC 5681 words it")
    assert "std_flight" in shown and "Needs net.ipv4.tcp_slow_start_after_idle = 0" in shown


def test_show_draws_a_picture_of_the_example(example: Path, tmp_path: Path) -> None:
    picture = tmp_path / "gentle.svg"
    assert invoke(["cc", "show", str(example), "--plot", str(picture)]) == 0
    text = picture.read_text()
    assert text.startswith("<svg") and "gentle: 10 Mbit/s, 100 ms" in text


def test_the_example_of_the_guide_passes_its_script(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["cc", "test", str(example), "--arm", "native"]) == 0
    assert "1 of 1 scripts" in capsys.readouterr().out


def test_a_new_file_passes_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "mine.c"), str(tmp_path / "mine-1.ack")]
    assert invoke(["cc", "test", str(tmp_path / "mine.c"), "--arm", "native"]) == 0
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 2, "nothing is overwritten"


@pytest.mark.parametrize("name", ["fld", "reno", "far_too_long", "Mine", "my-cc"])
def test_a_name_that_is_taken_or_no_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert "NAME: found" in refusal(capsys, "cc", "new", name, "-o", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_what_differs_is_told_as_a_dialogue(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = example.parent / "gentle-1.ack"
    script.write_text(script.read_text().replace("=> cwnd 80\n", "=> cwnd 90\n"))
    assert invoke(["cc", "test", str(example), "--arm", "native"]) == 1
    said = capsys.readouterr().out
    assert "rtt 120ms" in said, "the exchange before it"
    assert "gentle-1.ack:8 (native): after `round`: expected cwnd 90, found 80" in said


def test_a_file_that_does_not_compile_names_its_first_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    file = tmp_path / "mine.c"
    file.write_text(file.read_text().replace("mine->losses++;", "tcp_sk(sk)->srtt_us = 1;", 1))
    line = refusal(capsys, "cc", "test", str(file), "--arm", "native")
    assert re.search(r"mine\.c:\d+:\d+: error: .*read-only", line)


def test_a_mistake_says_once_what_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["cc", "new", "mine"]) == 0
    capsys.readouterr()
    assert 'or the path of a C file (did you mean "mine.c"?)' in refusal(capsys, "cc", "test", "mine")
    file = Path("mine.c")
    file.write_text(file.read_text().replace("mine->losses++;", "mine->losses *= 1.5;", 1))
    line = refusal(capsys, "cc", "test", "mine.c", "--arm", "native")
    assert "floating point, 1.5" in line and line.count("accepted: ") == 1


def test_a_file_that_lacks_a_hook_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    file = tmp_path / "mine.c"
    file.write_text(re.sub(r"\t\.ssthresh = .*\n", "\t.init = 0,\n", file.read_text()) + "\n")
    assert "mine" in refusal(capsys, "cc", "show", str(file))


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("mine->losses += *(u32 *)(unsigned long)param(sk, mine_keep);", "killed by SIGSEGV"),
        ("while (*(volatile u32 *)&mine->losses < 2) mine->losses = 1;", "no end after 2 s"),
    ],
)
def test_a_file_that_crashes_or_never_ends_does_not_pass(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mistake: str,
    told: str,
) -> None:
    monkeypatch.setattr("wirepaint.cc.testing.LONGEST_S", 2.0)
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    file = tmp_path / "mine.c"
    file.write_text(file.read_text().replace("mine->losses++;", mistake, 1))
    assert invoke(["cc", "test", str(file), "--arm", "native"]) == 1
    said = capsys.readouterr().out
    assert "mine-1.ack (native): " in said and told in said
    assert "0 of 1 scripts" in said


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["cc", "show", "fdl"], 'did you mean "fld"?'),
        (["cc", "show", "nowhere.c"], "no such file"),
        (["cc", "test"], "--all"),
        (["cc", "show", "fld", "--plot", "x.gif"], ".svg, .png, .pdf"),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], found: str) -> None:
    assert found in refusal(capsys, *arguments)


def _test_std_as_ordinary_user(connection: Connection, folder: str) -> None:
    invoke(["cc", "test", "std", "--arm", "native"])  # loads what nobody may not read in root's home
    Path(folder).chmod(0o755)
    os.environ["WIREPAINT_DATAPLANE"] = shutil.copy(dataplane.program(), folder)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = invoke(["cc", "test", "std"])
    connection.send((code, said.getvalue()))


def test_without_root_the_kernel_arm_is_skipped_aloud() -> None:
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (there, folder)
        process = multiprocessing.get_context("spawn").Process(
            target=_test_std_as_ordinary_user, args=arguments
        )
        process.start()
        assert here.poll(120)
        code, said = here.recv()
        process.join(10)
    assert code == 0
    assert "the kernel arm is skipped: it needs root" in said


@pytest.mark.slow
def test_a_run_whose_hook_never_ends_fails_with_that_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["cc", "new", "mine", "-o", str(tmp_path)]) == 0
    file = tmp_path / "mine.c"
    endless = "while (*(volatile u32 *)&mine->losses < 2) mine->losses = 1;"
    file.write_text(file.read_text().replace("mine->losses++;", endless, 1))
    asked = ["agency", "--network", "3g", "--cc", str(file), "--visits", "1", "--backend", "simulator"]
    assert invoke(["run", *asked, "--no-rehearse", "-o", str(tmp_path / "results")]) == 1
    assert "congestion control mine: a hook has not ended for 10 s" in capsys.readouterr().err
