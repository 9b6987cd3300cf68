"""Whatever a run starts dies with it, and with the command that asked for it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from proc import alive, children

from wirepaint.errors import PageTimeout, RunFailed
from wirepaint.runners.testbed import namespaces, process, receive
from wirepaint.runners.testbed.cells import SCRATCH, Cells

pytestmark = pytest.mark.usefixtures("root")
HERE = Path(__file__).parent


def crowd(marker: str) -> None:
    """Runs inside a cell: fills it with all parts of a run, under a name that the test can find."""
    paths = namespaces.Namespaces.create()
    namespaces.build(paths, ["10.65.0.1"], initial_window=10)
    (SCRATCH / marker).write_text("temporary")
    for fd in (paths.client, paths.wire, paths.server):
        process.spawn(["sleep", marker], namespace=fd)
    # A grandchild that detached itself, as a browser's helpers do.
    process.spawn(["sh", "-c", f"setsid sleep {marker} & exit 0"], ordinary_user=True).wait()


def crowd_and_stay(marker: str) -> None:
    crowd(marker)
    time.sleep(600)


def crowd_and_fail(marker: str) -> None:
    crowd(marker)
    raise PageTimeout("the page did not load")


def crowd_and_return(marker: str) -> dict[str, Any]:
    crowd(marker)
    return {"pid": os.getpid(), "processes": len(list(Path("/proc").glob("[0-9]*")))}


def build(_: None) -> tuple[str, list[int]]:
    """Runs inside a cell: the name of the thread with the server's TCP input, and how it is scheduled."""
    paths = namespaces.Namespaces.create()
    namespaces.build(paths, ["10.65.0.1"], initial_window=10)
    with paths.inside(paths.server):
        name = receive.thread_of("s0")
    time.sleep(0.5)
    return name, list(range(receive.other_cpus()))


def kernel_threads() -> dict[str, int]:
    found = {}
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if (name := comm.read_text().strip()).startswith("napi/"):
                found[name] = int(comm.parent.name)
    return found


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def processes(marker: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if marker in command.split():
            found.append(command)
    return found


def test_the_servers_tcp_input_runs_on_a_real_time_thread_off_the_emulators_cpu(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, set[int]]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for name, pid in kernel_threads().items():
                with contextlib.suppress(OSError):
                    seen[name] = os.sched_getscheduler(pid), os.sched_getaffinity(pid)
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with Cells() as cells:
            name, cpus = cells.call(f"{__name__}:build", None, timeout_s=20, log=tmp_path / "log")
    finally:
        over.set()
        watcher.join()
    assert seen[name] == (os.SCHED_FIFO, set(cpus))
    assert name not in kernel_threads()


def gone(marker: str, chain: Iterable[int] = (), within_s: float = 3.0) -> bool:
    """No process of that name is left, and none of ``chain``."""
    deadline = time.monotonic() + within_s
    while processes(marker) or any(map(alive, chain)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def marker() -> str:
    return str(random.randrange(10**9, 2 * 10**9))


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher imports this module by name."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))


def test_a_cell_is_alone_and_answers(marker: str, tmp_path: Path) -> None:
    with Cells() as cells:
        answer = cells.call("test_cells:crowd_and_return", marker, timeout_s=20, log=tmp_path / "log")
    assert answer["pid"] == 1
    assert answer["processes"] < 12
    assert gone(marker)
    assert not (SCRATCH / marker).exists()


def test_a_function_that_fails_gives_its_cause_and_leaves_nothing(marker: str, tmp_path: Path) -> None:
    with Cells() as cells:
        with pytest.raises(PageTimeout, match="the page did not load"):
            cells.call("test_cells:crowd_and_fail", marker, timeout_s=20, log=tmp_path / "log")
        assert gone(marker)


def test_a_cell_that_takes_too_long_is_killed_and_the_next_one_works(marker: str, tmp_path: Path) -> None:
    with Cells() as cells:
        with pytest.raises(RunFailed, match="not done within 1 s") as failed:
            cells.call("test_cells:crowd_and_stay", marker, timeout_s=1, log=tmp_path / "log")
        assert failed.type is RunFailed
        assert gone(marker)
        assert (
            cells.call("test_cells:crowd_and_return", marker, timeout_s=20, log=tmp_path / "log")["pid"] == 1
        )


def test_cells_side_by_side_end_each_by_itself_and_outlive_another_ones_launcher(
    marker: str, tmp_path: Path
) -> None:
    with Cells() as first, Cells(beside=first) as second:
        first.begin("test_cells:crowd_and_stay", marker, timeout_s=60, log=tmp_path / "first")
        second.begin("test_cells:crowd_and_return", marker, timeout_s=20, log=tmp_path / "second")
        assert second.result()["pid"] == 1
        second.begin("test_cells:crowd_and_fail", marker, timeout_s=20, log=tmp_path / "second")
        with pytest.raises(PageTimeout):
            second.result()
        [mother] = [child for child in children(os.getpid()) if b"cells" in command_line(child)]
        [busy] = [launcher for launcher in children(mother) if children(launcher)]
        os.kill(busy, signal.SIGKILL)
        with pytest.raises(RunFailed, match="the launcher of cells died"):
            first.result()
        first.renew()
        assert gone(marker)
        for cells in (second, first):
            answer = cells.call("test_cells:crowd_and_return", marker, timeout_s=20, log=tmp_path / "log")
            assert answer["pid"] == 1
    assert gone(marker, [mother])


@pytest.mark.parametrize(
    "victim",
    [
        "command",
        "cell",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("mother", "launcher", "middle")),
    ],
)
def test_kill_9_of_any_link_of_the_chain_leaves_nothing(victim: str, marker: str, tmp_path: Path) -> None:
    call = f"""{json.dumps(marker)}, timeout_s=60, log=Path({str(tmp_path / "log")!r})"""
    program = f"""
from pathlib import Path
from wirepaint.runners.testbed.cells import Cells
with Cells() as cells:
    cells.call("test_cells:crowd_and_stay", {call})
"""
    command = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(processes(marker)) < 4:
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.02)
    chain = [command.pid]
    while len(chain) < 5:
        chain.append(children(chain[-1])[0])
    os.kill(chain[["command", "mother", "launcher", "middle", "cell"].index(victim)], signal.SIGKILL)
    assert gone(marker, chain)
    command.wait()
