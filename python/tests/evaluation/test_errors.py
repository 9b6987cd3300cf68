"""Each fault of an evaluation file is answered in one sentence: file, key, found, accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import plan
from wirepaint.evaluation.pages import PageRef

GOOD = """
title = "CUBIC or FLD?"
backend = "testbed"

[scenarios]
network = [{title = "fast", down = {rate = "25 Mbit/s", delay = "13 ms"}, up = {delay = "13 ms"}}]
congestion = ["cubic", "reno"]
http = ["h2"]

[[user_agents]]
pages = ["some-page", "path/to/imported-page"]
visits = 11
"""

FAULTS: dict[str, tuple[str, str]] = {
    "a syntax error": ('title = "CUBIC or FLD?"', "title = CUBIC or FLD?"),
    "a key twice": ("visits = 11", "visits = 11\nvisits = 12"),
    "an unknown key": ("backend", "back_end"),
    "an unknown key in a table": ("visits = 11", "visit = 11"),
    "an unknown key in an inline table": ('rate = "25', 'rat = "25'),
    "a key of another table": ("[scenarios]", "visit = 11\n[scenarios]"),
    "true in place of a table": ("[scenarios]", "capture = true\n[scenarios]"),
    "a share in place of a table": ('rate = "25', 'loss = "1 %", rate = "25'),
    "a missing key": ('title = "CUBIC or FLD?"', ""),
    "a missing table": ("[[user_agents]]", "[[stop]]"),
    "a missing key in an inline table": (', up = {delay = "13 ms"}', ""),
    "a wrong unit": ("25 Mbit/s", "25 Mbps"),
    "a number without a unit": ('"13 ms"}, up', "13}, up"),
    "a text instead of a number": ("visits = 11", 'visits = "eleven"'),
    "a fraction of a visit": ("visits = 11", "visits = 1.5"),
    "true instead of a number": ("visits = 11", "visits = true"),
    "no visit": ("visits = 11", "visits = 0"),
    "too many visits": ("visits = 11", "visits = 100000000"),
    "a text instead of a list": ('http = ["h2"]', 'http = "h2"'),
    "an empty list": ('congestion = ["cubic", "reno"]', "congestion = []"),
    "an unknown HTTP version": ('"h2"', '"h4"'),
    "an unknown back end": ('"testbed"', '"simulater"'),
    "an unknown network": ("network = [{", 'network = ["nowhere", {'),
    "a network file that is not there": ("network = [{", 'network = ["./nowhere.toml", {'),
    "an unknown congestion control": ('"reno"', '"cubik"'),
    "a parameter of a kernel's own": ('"reno"', '{name = "reno", beta = 3}'),
    "a parameter that is no number": ('"reno"', '{name = "reno", beta = "3"}'),
    "an unknown parameter": ('"reno"', '{name = "fld", fld_treshold = 3}'),
    "a parameter out of range": ('"reno"', '{name = "fld", fld_ecn = 2}'),
    "a value twice": ('"reno"', '"cubic"'),
    "two networks of one name": (
        "network = [{",
        'network = [{title = "Fast", down = {rate = "1 Mbit/s"}, up = {}}, {',
    ),
    "rate and trace": ('rate = "25 Mbit/s"', 'rate = "25 Mbit/s", trace = "x.down"'),
    "a trace that is not there": ('rate = "25 Mbit/s"', 'trace = "nowhere.down"'),
    "an unknown queue": ('rate = "25 Mbit/s"', 'rate = "25 Mbit/s", queue = {kind = "red"}'),
    "a queue without a kind": ('rate = "25 Mbit/s"', 'rate = "25 Mbit/s", queue = {packets = 100}'),
    "a key of another queue": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "codel", bytes = "64 kB"}',
    ),
    "a queue with two byte limits": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "droptail", bytes = "64 kB", bdp = 1.0}',
    ),
    "two service classes for the rest": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "classes", classes = [{weight = 2}, {weight = 1}]}',
    ),
    "a code point in two classes": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "classes", classes = [{dscp = [8]}, {dscp = [8]}, {}]}',
    ),
    "a BDP without a rate": ('rate = "25 Mbit/s", ', 'queue = {kind = "droptail", bdp = 1.0}, '),
    "a loss above one": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", loss = {kind = "independent", probability = "101 %"}',
    ),
    "changes out of order": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", changes = [{at = "5 s", rate = "1 Mbit/s"}, {at = "2 s", rate = "2 Mbit/s"}]',
    ),
    "an unknown key in a change": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", changes = [{at = "5 s", rates = "1 Mbit/s"}]',
    ),
    "a packet that a script names twice": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", scripted = [{nth = 3, action = {kind = "drop"}}, '
        '{nth = 3, action = {kind = "mark"}}]',
    ),
    "a kernel setting outside the network": (
        'title = "CUBIC',
        'sysctls = {"vm.swappiness" = 1}\ntitle = "CUBIC',
    ),
    "a kernel setting with a list": (
        'title = "CUBIC',
        'sysctls = {"net.ipv4.tcp_sack" = [1]}\ntitle = "CUBIC',
    ),
    "a queue that takes no full frame": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "droptail", bytes = "1 kB"}',
    ),
    "a service class that takes no full frame": (
        'rate = "25 Mbit/s"',
        'overhead = 40, queue = {kind = "classes", classes = [{bytes = "1514 B"}]}',
    ),
    "too many flows of FQ-CoDel": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "fq_codel", flows = 100000}',
    ),
    "a quantum below a header": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "fq_codel", quantum = 10}',
    ),
    "a quantum above a megabyte": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "fq_codel", quantum = 1000001}',
    ),
    "PIE without an update": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "pie", update = "0 s"}',
    ),
    "CoDel without a target": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "codel", target = "0 ms"}',
    ),
    "CoDel with a long interval": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "codel", interval = "61 min"}',
    ),
    "packets beyond 64 bits": (
        'rate = "25 Mbit/s"',
        'rate = "25 Mbit/s", queue = {kind = "codel", packets = 9223372036854775808}',
    ),
    "a rate beyond a packet a nanosecond": ('rate = "25 Mbit/s"', 'rate = "5000 Gbit/s"'),
    "a rate of a change beyond that": (
        'rate = "25 Mbit/s"',
        'changes = [{at = "5 s", rate = "1001 Gbit/s"}]',
    ),
    "a delay of a change beyond the hour": (
        'rate = "25 Mbit/s"',
        'changes = [{at = "5 s", delay = "60 min"}]',
    ),
    "jitter beyond the hour": ('rate = "25 Mbit/s"', 'jitter = {kind = "normal", stddev = "61 min"}'),
    "a packet held beyond the hour": (
        'rate = "25 Mbit/s"',
        'scripted = [{nth = 3, action = {kind = "hold", extra = "61 min"}}]',
    ),
    "a packet held for no time": (
        'rate = "25 Mbit/s"',
        'scripted = [{nth = 3, action = {kind = "hold", extra = "0 s"}}]',
    ),
    "a delay beyond the hour": ('"13 ms"}, up', '"90 min"}, up'),
    "no time for a page": ('title = "CUBIC', 'timeout = "0 s"\ntitle = "CUBIC'),
    "more than a day for a page": ('title = "CUBIC', 'timeout = "1441 min"\ntitle = "CUBIC'),
    "a kernel setting that is none": (
        'title = "CUBIC',
        'sysctls = {"net.ipv4.tcp_sakc" = 1}\ntitle = "CUBIC',
    ),
    "a kernel setting of one value that is none": (
        '"reno"',
        '{name = "reno", sysctls = {"net.ipv4.tcp_sakc" = 1}}',
    ),
    "a network titled without ASCII": ('title = "fast"', 'title = "北京"'),
    "a congestion control titled without ASCII": ('"reno"', '{name = "reno", title = "北京"}'),
    "the home of nobody for a network": ("network = [{", 'network = ["~nouser/a.toml", {'),
    "the home of nobody for a trace": ('rate = "25 Mbit/s"', 'trace = "~nouser/a.down"'),
    "the home of nobody for a congestion control": ('"reno"', '"~nouser/a.c"'),
    "a page twice": ('"path/to/imported-page"', '"other/some-page"'),
    "a user agent with a space": ("visits = 11", 'visits = 11\nname = "my phone"'),
    "a date": ('title = "CUBIC or FLD?"', "title = 2026-11-21"),
}


def page(reference: str, base: Path, place: str) -> PageRef:
    return PageRef(name=Path(reference).name, folder=base / reference, sha256="0" * 64)


def refusal(folder: Path, text: str) -> str:
    file = folder / "evaluation.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        plan(file, page_resolver=page)
    return str(refused.value).replace(f"{folder}/", "")


def test_each_fault_is_answered_in_one_sentence(tmp_path: Path, snapshot):
    """The snapshot is the table of all answers; read it as a user would."""
    answers = {}
    for fault, (good, bad) in FAULTS.items():
        assert good in GOOD, fault
        answers[fault] = refusal(tmp_path, GOOD.replace(good, bad, 1))
        assert "\n" not in answers[fault]
        assert answers[fault].startswith("evaluation.toml: ")
    assert answers == snapshot


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(
        UsageError, match=r"nowhere\.toml: found no such file or directory; accepted: a TOML file"
    ):
        plan(tmp_path / "nowhere.toml")


def test_a_folder_instead_of_a_file(tmp_path: Path):
    with pytest.raises(UsageError, match="found a folder; accepted: a TOML file"):
        plan(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"a = " + b"[" * 100_000, b"\x00", b"[" * 50_000 + b"]" * 50_000, b"x" * 5_000_000],
    ids=["not UTF-8", "deep", "zero byte", "deep table", "large"],
)
def test_bytes_that_are_no_evaluation_are_refused(tmp_path: Path, content: bytes):
    file = tmp_path / "evaluation.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError):
        plan(file)
