"""doctor tells the truth about this machine, with and without root, and changes nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from wirepaint import cli, doctor
from wirepaint.runners import ownership


def by_name(findings: doctor.Findings) -> dict[str, doctor.Finding]:
    return {check.name: check for check in findings.checks}


def test_every_check_has_a_finding_and_what_is_missing_has_a_remedy():
    findings = doctor.examine()
    for check in findings.checks:
        assert check.found
        if check.level == "missing":
            assert check.remedy
    assert {"rights", "namespaces", "browser", "data plane", "lateness", "leftovers", "steal"} <= set(
        by_name(findings)
    )


def test_json_says_what_runs_and_what_works_without_root(capsys):
    assert cli.invoke(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["testbed"] == all(check["level"] != "missing" for check in said["checks"])
    assert "report" in said["without_root"]


LACKING = doctor.Findings([
    doctor.Finding("rights", "missing", "ordinary user (uid 1000)", "The testbed needs root: use sudo."),
    doctor.Finding("data plane", "ok", "/bin/program"),
])  # fmt: skip


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_what_is_required_and_missing_is_said_on_stderr(json: list[str], capsys, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: LACKING)
    assert cli.invoke(["doctor", "--require", "testbed", *json]) == 2
    out, err = capsys.readouterr()
    assert bool(out) == bool(json)
    assert "ordinary user (uid 1000)" in err
    assert "The testbed needs root: use sudo." in err
    assert err.splitlines()[-1] == (
        "wirepaint: the testbed cannot run here, for want of: rights. The list above says more."
    )


def test_what_is_required_and_there_is_said_on_stdout(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: LACKING)
    assert cli.invoke(["doctor", "--require", "simulator"]) == 0
    out, err = capsys.readouterr()
    assert "The simulator can run here." in out
    assert err == ""


def test_every_command_works_without_root_or_is_known_to_need_it():
    need = {"run", "repeat", "network calibrate", "cc groups"}
    of_itself = {"doctor", "version", "schema"}
    commands = set()
    for name in cli.app:
        if not name.startswith("-") and name not in of_itself:
            inner = [verb for verb in cli.app[name] if not verb.startswith("-")]
            commands |= {f"{name} {verb}" for verb in inner} if inner else {name}
    without = {command for command in commands if doctor.WITHOUT_ROOT.count(command)}
    without |= {command for command in commands if command.startswith("study ")}
    assert {"study", "run --backend simulator", "cc test --arm native"} <= set(doctor.WITHOUT_ROOT)
    assert commands - without == need | {"cc test"}


def _as_ordinary_user(connection) -> None:
    doctor.examine()  # as root: loads what nobody may not read where Python lies in root's home
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    findings = doctor.examine()
    connection.send((findings.can("testbed"), [(c.name, c.level, c.remedy) for c in findings.checks]))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
def test_an_ordinary_user_is_told_what_is_missing():
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_as_ordinary_user, args=(there,))
    process.start()
    assert here.poll(30)
    can, checks = here.recv()
    process.join(10)
    assert not can
    levels = {name: (level, remedy) for name, level, remedy in checks}
    assert levels["rights"] == ("missing", "The testbed needs root: use sudo.")
    assert levels["namespaces"][0] == "missing"


def _owned(then: str) -> subprocess.Popen[bytes]:
    """A command that claims its child processes, starts a sleeper, prints its pid and runs ``then``."""
    code = (
        "import subprocess, time; from wirepaint.runners import ownership\n"
        "ownership.claim()\n"
        "sleeper = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)\n"
        # An exec has succeeded for its parent before the new program has its environment.
        "while not open(f'/proc/{sleeper.pid}/environ', 'rb').read(): time.sleep(0.01)\n"
        f"print(sleeper.pid, flush=True)\n{then}"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_a_process_of_a_living_command_is_no_leftover_and_one_of_a_dead_command_is():
    command = _owned("time.sleep(60)")
    assert command.stdout is not None
    sleeper = int(command.stdout.readline())
    try:
        assert sleeper not in dict(ownership.orphans())
        assert command.pid in ownership.living()
        command.kill()
        command.wait()
        assert dict(ownership.orphans())[sleeper] == "sleep"
        leftovers = by_name(doctor.examine())["leftovers"]
        assert leftovers.level == "note"
        assert f"process {sleeper} (sleep) of a dead command" in leftovers.found
    finally:
        command.kill()
        command.stdout.close()
        os.kill(sleeper, signal.SIGKILL)
