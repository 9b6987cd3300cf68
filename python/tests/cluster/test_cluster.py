"""Runs on Dask: the same numbers as here; versions, addresses, certificates and wrong ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trustme
from dask_cluster import WIREPAINT, Cluster, cluster
from simulated_runs import OWN_METRIC
from sweeps import Sweep
from waiting import holds_within

import wirepaint
from wirepaint import dataplane, metrics
from wirepaint.cli import invoke
from wirepaint.cluster import batch, connection, worker
from wirepaint.cluster.connection import Connection, Offers, offer
from wirepaint.results import Results
from wirepaint.results.verify import verify

SWEEP = """\
title = "A sweep"
backend = "simulator"
metrics = ["./mine.py"]
[results]
keep = "{keep}"
[scenarios]
network = [
  "lte",
  {{ title = "steps", down = {{ trace = "./steps.txt", delay = "20 ms" }}, up = {{ rate = "2 Mbit/s" }} }},
]
congestion = ["cubic", "./own/own.c"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["agency", "blog-small"]
visits = 3
"""


def evaluation(folder: Path, keep: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(OWN_METRIC)
    (folder / "steps.txt").write_text("".join(f"{ms}\n" for ms in range(3, 3000, 3)))
    assert invoke(["cc", "new", "own", "-o", str(folder / "own")]) == 0
    (folder / f"{keep}.toml").write_text(SWEEP.format(keep=keep))
    return folder / f"{keep}.toml"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of this machine, with all traces."""
    folder = tmp_path_factory.mktemp("here")
    asked = [
        "run",
        str(evaluation(folder, "all")),
        "-o",
        str(folder / "r"),
        "--no-rehearse",
        "--trust",
        "--quiet",
    ]
    assert invoke(asked) == 0
    return folder / "r"


@pytest.mark.parametrize(
    ("keep", "on_dask"),
    [("all", True), ("medians", True), ("metrics", True), ("medians", False), ("metrics", False)],
)
def test_a_sweep_in_batches_has_the_same_numbers(
    here: Path, dask: Cluster, tmp_path: Path, keep: str, on_dask: bool
) -> None:
    file = evaluation(tmp_path, keep)
    asked = ["run", str(file), "-o", str(tmp_path / "r"), "--no-rehearse", "--trust", "--quiet"]
    assert invoke([*asked, "--on", dask.address if on_dask else "local"]) == 0, dask.logs()
    alone, spread = Results.open(here), Results.open(tmp_path / "r")
    assert metrics.table(spread, None).equals(metrics.table(alone, None))
    assert metrics.table(spread)["largest_object"].null_count() == 0
    assert spread.runs().drop("attempts").equals(alone.runs().drop("attempts"))
    assert verify(tmp_path / "r").faults == []
    kept = sorted(path.name for path in (tmp_path / "r/runs").iterdir())
    assert len(kept) == {"all": 8 * 2 * 3 + 8, "medians": 8 * 2, "metrics": 0}[keep]
    for key in kept:
        for table in ("object", "connection", "tcp"):
            assert spread.trace(key, table).equals(alone.trace(key, table))


def test_a_run_comes_back_with_the_trace_that_it_had(here: Path, dask: Cluster, tmp_path: Path) -> None:
    file = evaluation(tmp_path, "metrics")
    asked = ["run", str(file), "-o", str(tmp_path / "r"), "--no-rehearse", "--trust", "--quiet"]
    assert invoke([*asked, "--on", dask.address]) == 0
    keys = Results.open(tmp_path / "r").runs()["run_key"]
    assert invoke([*asked, "--only", f"{keys[3]},{keys[9]}"]) == 0
    assert invoke([*asked, "--only", keys[11], "--on", dask.address]) == 0
    back = Results.open(tmp_path / "r")
    assert {path.name for path in (tmp_path / "r/runs").iterdir()} == {keys[3], keys[9], keys[11]}
    for key in (keys[3], keys[9], keys[11]):
        assert back.trace(key, "object").equals(Results.open(here).trace(key, "object"))
    assert metrics.table(back, None).equals(metrics.table(Results.open(here), None))


def other_program(folder: Path) -> dict[str, str]:
    """The environment of a worker with another data plane."""
    other = folder / "wirepaint-dataplane"
    shutil.copy(dataplane.program(), other)
    with other.open("ab") as program:
        program.write(b"another build")
    return {"WIREPAINT_DATAPLANE": str(other)}


def other_source(folder: Path) -> dict[str, str]:
    """The environment of a worker whose Python differs by a comment."""
    package = Path(wirepaint.__file__).parent
    archives = str(package / "catalog/pages")
    shutil.copytree(
        package, folder / "wirepaint", ignore=lambda of, names: names if of.startswith(archives) else []
    )
    with (folder / "wirepaint/runners/simulator.py").open("a") as source:
        source.write("# changed\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(("other", "differs"), [(other_program, "data plane"), (other_source, "wirepaint")])
def test_a_worker_of_another_version_is_refused_before_the_first_run(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: Callable[[Path], dict[str, str]],
    differs: str,
) -> None:
    with cluster(tmp_path) as started:
        started.start_worker(1, **other(tmp_path))
        file = evaluation(tmp_path, "metrics")
        asked = [
            "run",
            str(file),
            "-o",
            str(tmp_path / "r"),
            "--no-rehearse",
            "--trust",
            "--on",
            started.address,
        ]
        assert invoke(asked) == 2
    said = capsys.readouterr().err
    assert "the worker tcp://127.0.0.1:" in said
    assert f"accepted: {differs} {batch.versions()[differs]}, as here" in said
    assert said.count(f"{differs} ") == 2
    assert not (tmp_path / "r").exists()


def test_a_worker_of_another_version_that_comes_later_is_told_and_gets_no_run(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path, 8 * 200)
    with cluster(tmp_path) as started:
        first = started.start_worker(1)
        run = sweep.start(started.address)
        assert sweep.goes_on(run, 0) and run.poll() is None, sweep.said()
        os.killpg(first.pid, signal.SIGKILL)
        assert holds_within(30, lambda: "All workers are lost" in sweep.said()), sweep.said()
        started.start_worker(1, **other_program(tmp_path))
        wrong = f"accepted: data plane {batch.versions()['data plane']}, as here. It gets no run."
        assert holds_within(30, lambda: wrong in sweep.said()), sweep.said()
        started.start_worker(1)
        assert run.wait(120) == 0, sweep.said()
    assert sweep.said().count("It gets no run.") == 1
    assert Results.open(sweep.results).runs("done").height == sweep.runs


def test_what_is_lost_with_its_worker_before_it_came_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, lost = Connection._fetch, []

    def fetch_too_late(connection: Connection, future: Any) -> None:
        if not lost:
            lost.append(os.killpg(first.pid, signal.SIGKILL))
            assert holds_within(30, lambda: not connection.offers())
        fetch(connection, future)

    monkeypatch.setattr(Connection, "_fetch", fetch_too_late)
    seen: list[Offers] = []
    with cluster(tmp_path) as started:
        first = started.start_worker(1)
        with Connection(started.address.replace("dask", "tcp"), None, nullcontext) as connection:
            connection.submit("versions", batch.versions, resource=offer("simulator"))
            # A look takes place while there is nothing, so that the user can be told.
            assert holds_within(30, lambda: not connection.next("simulator", seen.append) and {} in seen)
            started.start_worker(1)
            ended = None
            end = time.monotonic() + 30
            while ended is None and time.monotonic() < end:
                ended = connection.next("simulator", seen.append)
            assert ended is not None
            assert connection.result(ended) == batch.versions()


def test_an_encrypted_scheduler_needs_the_certificates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    tls = [f"--tls-{name}={tmp_path / name}.pem" for name in ("ca", "cert", "key")]
    tls = [part for option in tls for part in option.split("=")]
    file = evaluation(tmp_path, "metrics")
    asked = ["run", str(file), "-o", str(tmp_path / "r"), "--no-rehearse", "--trust", "--quiet"]
    with cluster(tmp_path, tls) as started:
        started.start_worker(1)
        assert invoke([*asked, "--on", started.address]) == 2
        assert "without certificates; accepted: --tls-ca, --tls-cert and --tls-key" in capsys.readouterr().err
        assert invoke([*asked, "--on", started.address, *tls]) == 0, started.logs()
        capsys.readouterr()
    assert Results.open(tmp_path / "r").runs("done").height == 8 * 2 * 3 + 8


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("slurm", '--on: found "slurm"; accepted: dask://HOST:PORT'),
        ("dask://127.0.0.1:1", "no scheduler at tcp://127.0.0.1:1"),
        (
            "no-address.json",
            "no-address.json: found no address; accepted: the file that a Dask scheduler wrote",
        ),
    ],
)
def test_what_is_no_scheduler_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], on: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "_CONNECT_S", 1.0)
    Path("no-address.json").write_text(json.dumps({"id": "Scheduler"}))
    asked = ["run", "agency", "--network", "lte", "--backend", "simulator", "--no-rehearse"]
    assert invoke([*asked, "--on", on]) == 2
    found = capsys.readouterr().err
    assert said in found.splitlines()[-1] and "Traceback" not in found
    # By itself: a browser of other tests may have an event loop in this process.
    worker = subprocess.run([WIREPAINT, "worker", on], capture_output=True, text=True)
    assert worker.returncode == 2 and "found" in worker.stderr
    assert not list(tmp_path.glob("results"))


def test_a_worker_leaves_nothing_behind(tmp_path: Path) -> None:
    with cluster(tmp_path) as started:
        worker = started.start_worker(1, TMPDIR=str(tmp_path))
        assert started.workers()
        assert left(tmp_path)
        worker.terminate()
        assert worker.wait(30) == 0
        assert started.workers() == []
        assert left(tmp_path) == []
        killed = started.start_worker(1, TMPDIR=str(tmp_path))
        of_killed = started.workers()
        killed.kill()
        assert holds_within(30, lambda: left(tmp_path) == [] and not any(map(alive, of_killed)))


def test_dask_knows_simulating_workers_by_name_and_they_have_our_settings(tmp_path: Path) -> None:
    from dask import config
    from distributed import Client

    with cluster(tmp_path) as started:
        started.start_worker(1, name="of-1")
        started.start_worker(2, name="of-2")
        with Client(started.address.replace("dask", "tcp"), set_as_default=False) as client:
            found = client.scheduler_info(n_workers=-1)["workers"].values()
            assert sorted(one["name"] for one in found) == ["of-1", "of-2-0", "of-2-1"]
            for setting, asked in worker.SETTINGS.items():
                assert [*client.run(config.get, setting).values()] == [asked] * 3, setting
            # As the operator of dask-kubernetes asks which deployments to remove.
            idle = client.sync(client.scheduler.workers_to_close, n=3, attribute="name")
            assert sorted(idle) == ["of-1", "of-2-0", "of-2-1"]
        asked = ["worker", started.address, "--backend", "simulator", "--processes", "1", "--name", "of-1"]
        refused = subprocess.run([WIREPAINT, *asked], capture_output=True, text=True)
        assert refused.returncode == 2
        assert "--name: found of-1, which another worker has" in refused.stderr


def test_of_two_workers_of_one_name_at_once_the_later_is_told_so(tmp_path: Path) -> None:
    options = ["--backend", "simulator", "--processes", "1", "--name", "both"]
    with cluster(tmp_path) as started:
        argv = [WIREPAINT, "worker", started.address, *options]
        two = [subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            assert holds_within(60, lambda: any(one.poll() is not None for one in two))
            (lost,) = (one for one in two if one.returncode is not None)
            said = lost.communicate()[1]
            assert (lost.returncode, said.count("\n")) == (2, 1), said
            assert "--name: found both, which another worker has" in said
        finally:
            for one in two:
                one.terminate()
                one.wait(30)


def left(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


def alive(pid: int) -> bool:
    """Whether a process lives; one that ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_help_of_worker_names_the_address() -> None:
    said = subprocess.run([WIREPAINT, "worker", "--help"], capture_output=True, text=True, check=True)
    assert "dask://host:8786" in said.stdout
