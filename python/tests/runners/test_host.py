"""CPU accounting of process trees and of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wirepaint.results import trace
from wirepaint.runners.testbed import host, others
from wirepaint.runners.testbed.browser import processes

from . import visits as v

# A child that burns 0.3 s of CPU and ends when its input ends.
CHILD = """
import sys, time
while time.process_time() < 0.3: pass
print(flush=True)
sys.stdin.read()
"""
# A parent that ends its child on request.
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(flush=True)
sys.stdin.readline()
child.communicate()
print(flush=True)
sys.stdin.read()
"""


def test_a_tree_counts_children_that_live_and_children_that_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    try:
        process.stdout.readline()
        assert len(processes.tree(process.pid)) == 2
        alive = processes.cpu(process.pid)
        assert 0.25 < alive < 3
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert [found.pid for found in processes.tree(process.pid)] == [process.pid]
        assert processes.cpu(process.pid) >= alive - 0.03
    finally:
        processes.kill(process.pid)
        process.communicate()
    assert processes.tree(process.pid) == []


def test_kill_ends_the_whole_tree() -> None:
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60; true"])
    deadline = time.monotonic() + 5
    while len(tree := processes.tree(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(tree) == 3
    processes.kill(process.pid)
    process.wait()
    for member in tree:
        while (state := _state(member.pid)) not in (None, "Z") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert state in (None, "Z"), "gone, or dead and not yet collected by its new parent"


def _state(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None


def test_a_process_outside_any_sandbox_is_told() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()", "--type=renderer"], stdin=subprocess.PIPE)
    try:
        time.sleep(0.2)
        assert processes.unconfined(process.pid) == "a renderer without a user namespace of its own"
    finally:
        process.communicate(b"\n")


def test_a_tree_without_pages_has_no_renderer() -> None:
    process = subprocess.Popen(["/bin/sleep", "5"])
    try:
        assert processes.unconfined(process.pid) == "no renderer found"
    finally:
        process.kill()
        process.wait()


def test_a_witness_knows_its_part_from_the_rest() -> None:
    part = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        witness = host.Witness({"server": part.pid})
        time.sleep(0.5)
        counters = witness.stop(browser_cpu_s=0.1)
    finally:
        part.kill()
        part.wait()
    assert 0.5 <= counters.duration < 5
    assert 0.05 < counters.parts["server"] <= counters.duration + 0.05
    assert counters.tasks >= counters.parts["server"] - 0.1
    assert counters.total == pytest.approx(counters.duration * counters.cores)


def test_foreign_is_what_no_part_used_and_never_negative() -> None:
    assert v.counters(tasks=1.0).foreign == pytest.approx(1.0 - 0.15 - 0.4 - 0.05)
    assert v.counters(tasks=0.1).foreign == 0


def test_the_row_has_the_columns_of_the_table() -> None:
    row = v.counters().row(v.emulator_summary())
    assert set(row) == set(trace.polars_schema("host"))
    assert (row["cpu_server"], row["lateness_p99"], row["cpu_total"]) == (0.1, 20_000, 2.0)


def test_those_who_used_the_cpu_are_named_without_the_run_itself(tmp_path: Path) -> None:
    busy = tmp_path / "busy (one"
    busy.symlink_to(sys.executable)
    spin = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    proc = os.open("/proc", os.O_RDONLY)
    own = subprocess.Popen([sys.executable, "-c", f"{spin}\ntime.sleep(60)"])
    other = None
    try:
        seen = others.Others(proc, own.pid)
        other = subprocess.Popen([str(busy), "-c", f"{spin}\ntime.sleep(60)"])
        while processes.cpu(other.pid) < 0.5 or processes.cpu(own.pid) < 0.5:
            time.sleep(0.05)
        used = {pid: each.name for pid, each in others.processes(proc, own.pid).items()}
        assert own.pid not in used
        assert used[other.pid] == "busy (one"
        named = dict(seen.most())
        # Others on this machine may use more than it.
        assert named.get("busy (one", 0.5) >= 0.45
        assert len(named) <= others.MOST
    finally:
        for process in filter(None, (own, other)):
            process.kill()
            process.wait()
        os.close(proc)


def test_a_child_that_ended_counts_for_the_parent_that_waited_for_it() -> None:
    shell = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]]); "
        "print(flush=True); input()"
    )
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    pipe = subprocess.PIPE
    proc = os.open("/proc", os.O_RDONLY)
    with subprocess.Popen([sys.executable, "-c", shell, spin], stdin=pipe, stdout=pipe) as parent:
        parent.stdout.readline()
        assert others.processes(proc, parent.pid + 1)[parent.pid].cpu_s >= 0.25
        parent.communicate(b"\n")
    os.close(proc)
