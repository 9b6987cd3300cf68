"""What the native arm holds a C file of one's own to, and what it needs."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from wirepaint.cc import new
from wirepaint.cli import invoke

SCRIPT = """\
# Slow start by {pct} hundredths of a segment per acked segment; what is no whole segment is kept.
cc mine.c mine_grow={pct}
open iw=10
write bulk   => cwnd 10
{acks}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A new file whose slow start has a parameter in hundredths."""
    new.write("mine", tmp_path)
    file = tmp_path / "mine.c"
    text = file.read_text()
    for old, instead in (
        ("ss_grow(tp, acked, 1)", "ss_grow_pct(tp, acked, param(sk, mine_grow), &mine->rest)"),
        ("\tu32 losses;", "\tu32 rest;\n\tu32 losses;"),
        (
            "CC_PARAM(mine_step",
            'CC_PARAM(mine_grow, 100, 1, 1000, "hundredths of a segment per acked one")\nCC_PARAM(mine_step',
        ),
        (
            "\tstruct tcp_sock *tp = tcp_sk(sk);\n\n\t/* A window",
            "\tstruct tcp_sock *tp = tcp_sk(sk);\n\tstruct mine *mine = inet_csk_ca(sk);\n\n\t/* A window",
        ),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, instead)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("pct", "acks"),
    [
        (100, "round => cwnd 20\nround => cwnd 40"),
        (150, "ack 1 => cwnd 11\nack 1 => cwnd 13\nack 1 => cwnd 14\nack 1 => cwnd 16"),
        (25, "ack 1 => cwnd 10\nack 1 => cwnd 10\nack 1 => cwnd 10\nack 1 => cwnd 11"),
    ],
)
def test_slow_start_grows_by_hundredths_of_a_segment(
    mine: Path, pct: int, acks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.with_name("mine-1.ack").write_text(SCRIPT.format(pct=pct, acks=acks))
    assert invoke(["cc", "test", str(mine), "--arm", "native"]) == 0, capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.testbed
def test_the_kernel_grows_by_the_same_hundredths(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = SCRIPT.format(pct=150, acks="round => cwnd 25\nround => cwnd 62")
    mine.with_name("mine-1.ack").write_text(script)
    assert invoke(["cc", "test", str(mine)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("statement", "column", "word"),
    [("acked = acked * 1.5;", 18, "1.5"), ("double gain = 2;", 2, "double"), ("acked += 1e3;", 11, "1e3")],
)
def test_floating_point_is_refused_with_its_place_before_any_run(
    mine: Path, statement: str, column: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = mine.read_text()
    before = "\tif (tcp_in_slow_start(tp)) {"
    assert text.count(before) == 1
    mine.write_text(text.replace(before, f"\t{statement}\n{before}"))
    line = mine.read_text()[: mine.read_text().index(statement)].count("\n") + 1
    place = f"{mine}:{line}:{column}: error: floating point, {word}"
    assert invoke(["cc", "test", str(mine), "--arm", "native"]) == 2
    assert place in capsys.readouterr().err
    (tmp_path / "e.toml").write_text(
        'title = "x"\nbackend = "simulator"\n[scenarios]\nnetwork = ["lte"]\ncongestion = ["./mine.c"]\n'
        '[[user_agents]]\npages = ["kit"]\n'
    )
    assert invoke(["run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"), "--trust"]) == 2
    assert "floating point" in capsys.readouterr().err and not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('#include "cc.h"', '#include "cc.h"\n#include <stdio.h>', ':{line}: error: it includes "stdio.h"'),
        (
            "\tif (tcp_in_slow_start(tp)) {",
            "\tstatic u32 calls;\n\n\tacked += calls++ & 1;\n\tif (tcp_in_slow_start(tp)) {",
            ":{line}:13: error: a global variable, calls",
        ),
        (
            "CC_STATE(struct mine);",
            'CC_STATE(struct mine);\nCC_PARAM(mine_wide, 7, 1, 5, "1")',
            ':{line}:1: error: static assertion failed: "mine_wide: its default is not within its range"',
        ),
    ],
)
def test_what_the_kernel_has_not_is_refused_with_its_place(
    mine: Path, before: str, after: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = mine.read_text()
    assert text.count(before) == 1
    mine.write_text(text.replace(before, after))
    added = next(word for word in ("#include <", "static u32 calls", "CC_PARAM(mine_wide") if word in after)
    line = text.replace(before, after).partition(added)[0].count("\n") + 1
    assert invoke(["cc", "test", str(mine), "--arm", "native"]) == 2
    said = f"{mine}{said.format(line=line)}"
    found = capsys.readouterr().err
    assert said in found and found.count("accepted: ") == 1


def dividing(mine: Path, divisor: str) -> None:
    """Has a hook divide; with a script that calls it."""
    text = mine.read_text()
    before = "\tif (tcp_in_slow_start(tp)) {"
    mine.write_text(text.replace(before, f"\ttp->snd_cwnd_cnt = 100 / ({divisor});\n{before}"))
    mine.with_name("mine-1.ack").write_text(SCRIPT.format(pct=150, acks="round => cwnd 25"))


def test_a_division_by_zero_is_told_from_a_wrong_pointer(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dividing(mine, "mine->losses")
    assert invoke(["cc", "test", str(mine), "--arm", "native"]) == 1
    assert "killed by SIGFPE: does a hook divide by zero?" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.testbed
def test_a_signed_division_is_refused_by_name_for_the_kernel(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dividing(mine, "(s32)acked")
    assert invoke(["cc", "test", str(mine)]) != 0
    assert "error: signed division in mine_cong_avoid" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.testbed
def test_the_native_arm_works_while_another_command_has_the_testbed(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wirepaint.runners.testbed.cells import LOCK

    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert invoke(["cc", "test", "std", "--arm", "native"]) == 0
        assert invoke(["cc", "test", "std", "--arm", "kernel"]) == 2
        assert "the testbed" in capsys.readouterr().err
    finally:
        os.close(descriptor)
