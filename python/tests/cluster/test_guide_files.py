"""The files to copy in the guide "Beyond one machine" do what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from dask_cluster import SCRIPTS
from sweeps import Sweep, command
from waiting import holds_within

GUIDE = Path(__file__).parents[3] / "docs/guide/cluster.md"


def block(having: str) -> str:
    """The text of the guide's only block of code with this text."""
    found = [
        text for text in re.findall(r"^```\w*\n(.*?)^```", GUIDE.read_text(), re.M | re.S) if having in text
    ]
    assert len(found) == 1, f"{len(found)} blocks with {having}"
    return found[0]


def for_here(text: str, folder: Path) -> str:
    """A file of the guide with the paths of this machine, and for its cores."""
    for known, here in {
        "/opt/wirepaint/.venv/bin": str(SCRIPTS),
        "/shared": str(folder),
        "-o results/sweep": f"-o {folder}/r --no-rehearse",
        "--array=1-50 --cpus-per-task=8": "--array=1-2 --cpus-per-task=1",
    }.items():
        text = text.replace(known, here)
    return text


@pytest.fixture
def slurm() -> None:
    if shutil.which("sinfo") is None:
        pytest.skip("Slurm is not installed: apt-get install slurm-wlm munge")
    found = subprocess.run(["sinfo", "-h", "-t", "idle,mixed", "-o", "%n"], capture_output=True, text=True)
    if not found.stdout.strip():
        pytest.skip("Slurm has no node that is free")


@pytest.mark.slow
def test_a_sweep_on_slurm(slurm: None, tmp_path: Path) -> None:
    sweep = Sweep(tmp_path, 8 * 40)
    expected = tmp_path / "expected"
    subprocess.run(command(sweep.file, expected), check=True)
    (tmp_path / "worker.sh").write_text(for_here(block("#SBATCH"), tmp_path))
    text = for_here(block("sbatch --parsable"), tmp_path).replace("sweep.toml", str(sweep.file))
    (tmp_path / "sweep.sh").write_text(text)
    done = subprocess.run(["sh", "sweep.sh"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sweep.wrong(expected) == []
    jobs = ["squeue", "-h", "-n", "wirepaint-worker"]
    assert holds_within(60, lambda: not subprocess.run(jobs, capture_output=True, check=True).stdout)


@pytest.mark.slow
def test_a_sweep_with_dask_jobqueue(slurm: None, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    sweep = Sweep(tmp_path, 8 * 40)
    expected = tmp_path / "expected"
    subprocess.run(command(sweep.file, expected), check=True)
    (tmp_path / "jobs.py").write_text(block("SLURMCluster").replace("maximum=400", "maximum=2"))
    with subprocess.Popen(
        [sys.executable, "jobs.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as jobs:
        try:
            assert jobs.stdout is not None
            said = jobs.stdout.readline()
            run = sweep.start(said.split()[-1])
            assert run.wait(300) == 0, sweep.said()
        finally:
            jobs.communicate("\n", timeout=60)
    assert sweep.wrong(expected) == []


def test_dask_kubernetes_takes_the_file() -> None:
    operator = "dask_kubernetes.operator.controller.controller"
    made_by = pytest.importorskip(operator, reason="dask-kubernetes is not installed")
    asked = yaml.safe_load(block("kind: DaskCluster"))
    charts = Path(made_by.__file__).parents[1] / "deployment/helm/dask-kubernetes-operator"
    (version,) = yaml.safe_load((charts / "crds/daskcluster.yaml").read_text())["spec"]["versions"]
    jsonschema.validate(asked, version["schema"]["openAPIV3Schema"])

    name, spec = asked["metadata"]["name"], asked["spec"]
    service = made_by.build_scheduler_service_spec(name, spec["scheduler"]["service"], {}, {})
    scheduler = made_by.build_scheduler_deployment_spec(name, spec["scheduler"]["spec"], {}, {})
    worker = made_by.build_worker_deployment_spec(
        f"{name}-default", "default", name, "1", spec["worker"]["spec"], {}, {}
    )
    (opens,), (works,) = (of["spec"]["template"]["spec"]["containers"] for of in (scheduler, worker))
    # The operator looks for both when it takes workers away.
    assert [port["targetPort"] for port in service["spec"]["ports"]] == ["tcp-comm", "http-dashboard"]
    assert [port["name"] for port in opens["ports"]] == ["tcp-comm", "http-dashboard"]
    assert works["args"][:2] == ["wirepaint", "worker"]
    assert works["args"][2] == f"tcp://{service['metadata']['name']}:8786"
    assert "DASK_WORKER_NAME" in [variable["name"] for variable in works["env"]]
    assert "--name=$(DASK_WORKER_NAME)" in works["args"]
