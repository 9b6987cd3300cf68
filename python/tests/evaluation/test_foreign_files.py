"""An evaluation that somebody else wrote ends in one line, soon and in little memory."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from wirepaint.errors import LONGEST_MESSAGE, UsageError
from wirepaint.evaluation import network, pages, plan
from wirepaint.evaluation.pages import PageRef

START = """
title = "Foreign"
backend = "simulator"
[scenarios]
network = [{title = "fast", down = {rate = "25 Mbit/s", delay = "13 ms"}, up = {delay = "13 ms"}}]
congestion = ["cubic"]
[[user_agents]]
"""


def page(reference: str, base: Path, place: str) -> PageRef:
    return PageRef(name=Path(reference).name, folder=base, sha256="0" * 64)


def refusal(folder: Path, text: str | bytes) -> str:
    file = folder / "evaluation.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    with pytest.raises(UsageError) as refused:
        plan(file, page_resolver=page)
    message = str(refused.value)
    assert message.startswith(str(file)) and "\n" not in message and len(message) <= LONGEST_MESSAGE
    return message.replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".".join("a" * 20_000) + " = 1", "found a key of more than 16 parts"),
        (".".join(['"a b"'] * 20_000) + " = 1", "found a key of more than 16 parts"),
        (" . ".join("a" * 20_000) + " = 1", "found a key of more than 16 parts"),
        ("[" + ".".join("a" * 20_000) + "]", "found a key of more than 16 parts"),
        ("x = " + "[" * 20_000, "found tables nested too deeply"),
        ("x = " + "{a=" * 20_000, "found tables nested too deeply"),
        ("seed = " + "9" * 100_000, "found a syntax error: Exceeds the limit"),
        ("seed = 0x" + "9" * 100_000, "user_agents[0].seed: found a int too large to show"),
        ("visits = 0x" + "9" * 100_000, "user_agents[0].visits: found a int too large to show"),
        ("visits = nan", "user_agents[0].visits: found NaN"),
        ("visits = 1e300", "user_agents[0].visits: found 1e+300"),
        ("x" * 100_000 + " = 1", "user_agents[0].xxx"),
        ('pages = ["' + '", "'.join(f"./p{n}" for n in range(100_000)) + '"]', "found"),
        ('pages = ["' + '", "'.join(f"./p{n}" for n in range(1_001)) + '"]', "at most 1000 in the list"),
        ('pages = ["./a", "./b", "./a"]', 'pages[2]: found a second "./a"'),
        ('name = "\\u001b[2J"', 'user_agents[0].name: found "\\u001b[2J"'),
        ("viewport = [0x" + "9" * 9_000 + ", 800]", "user_agents[0].viewport[0]: found a int too large"),
    ],
)  # fmt: skip
def test_nothing_in_it_takes_long_or_is_told_at_length(tmp_path: Path, line: str, said: str) -> None:
    pages = "" if line.startswith("pages") else 'pages = ["./p"]\n'
    assert said in refusal(tmp_path, f"{START}{pages}{line}")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('sysctls = {"net.ipv4.tcp_sack" = 0x' + "9" * 9_000 + "}", "sysctls.net.ipv4.tcp_sack: found a int"),
        ('sysctls = {"net.ipv4.tcp_sack" = "1\\n2"}', 'sysctls.net.ipv4.tcp_sack: found "1\\n2"'),
        ('sysctls = {"net.ipv4.' + "a" * 300 + '" = 1}', 'accepted: names such as "net.ipv4'),
        ('sysctls = {"net.ipv4./../../kernel/x" = 1}', 'accepted: names such as "net.ipv4'),
        ("stop = {interval = 0x" + "9" * 9_000 + "}", "stop.interval: found a int too large"),
        ("stop = {interval = nan}", "stop.interval: found NaN"),
        ('timeout = "' + "9" * 100_000 + ' s"', "timeout: found"),
    ],
)
def test_no_value_of_a_key_is_taken_that_cannot_be_one(tmp_path: Path, key: str, said: str) -> None:
    assert said in refusal(tmp_path, f'{key}\n{START}pages = ["./p"]')


def test_more_runs_than_can_be_are_refused_before_they_are_made(tmp_path: Path) -> None:
    windows = ", ".join(map(str, range(1, 1001)))
    text = START.replace(
        'congestion = ["cubic"]', f'congestion = ["cubic", "reno"]\ninitial_window = [{windows}]'
    )
    message = refusal(tmp_path, text + 'pages = ["./p"]\nvisits = 10000')
    assert message.endswith("found 20000000 runs; accepted: at most 1000000 runs")
    fewer = text.replace(windows, "1, 2, 3, 4, 5, 6") + 'pages = ["./p"]\nvisits = 10000'
    assert (
        'found 120000 runs; accepted: at most 100000 runs whose traces stay, or results.keep = "metrics"'
        in (refusal(tmp_path, fewer))
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"title = '\xed\xa0\x80'", "found bytes that are not UTF-8"),
        (b"\xff\xfet\0", "found bytes that are not UTF-8"),
        (b"a" * (2**20 + 1), "found more than 1048576 bytes"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refusal(tmp_path, content)


def test_a_pipe_or_device_is_no_evaluation(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="found no regular file; accepted: a TOML file"):
            plan(path)


@pytest.mark.parametrize(
    "reference",
    [
        "/proc",
        "/dev",
        "/",
        "/dev/zero",
        "./pipe",
        "/proc/kmsg",
        "/proc/self/mem",
        "a\0b",
        "x" * 300,
        "x/" * 3000,
    ],
)
def test_what_is_no_page_is_refused_at_once(tmp_path: Path, reference: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    if reference.startswith("/proc/") and not os.access(reference, os.R_OK):
        pytest.skip(f"{reference} cannot be read here")
    with pytest.raises(UsageError) as refused:
        pages.resolve(reference, tmp_path, "user_agents[0].pages[0]")
    assert len(str(refused.value)) <= LONGEST_MESSAGE


def test_a_site_of_very_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_MOST_FILES", 3)
    (tmp_path / "index.html").touch()
    (tmp_path / "endless").symlink_to("/dev/zero")
    for number in range(3):
        (tmp_path / str(number)).touch()
    with pytest.raises(UsageError, match="found more than that; accepted: a recording or site of at most"):
        pages.resolve(str(tmp_path), tmp_path, "pages[0]")


def trace(folder: Path, content: bytes) -> str:
    (folder / "own.gz").write_bytes(gzip.compress(content, 1))
    file = folder / "own.toml"
    file.write_text('title = "Own"\n[down]\ntrace = "own.gz"\n[up]\ntrace = "own.gz"\n')
    with pytest.raises(UsageError) as refused:
        network.load(str(file))
    return str(refused.value)


def test_a_capacity_trace_of_too_many_opportunities_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "MOST_OPPORTUNITIES", 1000)
    assert "own.gz: found more than that; accepted: capacity traces of at most" in trace(
        tmp_path, b"1\n" * 1001
    )
    network._opportunities.cache_clear()
    message = trace(tmp_path, b"1\n" * 600)
    assert "own.toml: up.trace: found more than that; accepted: capacity traces of at most" in message
