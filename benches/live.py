"""A recorded page beside the same site served live, over the same emulated link.

    sudo .venv/bin/python benches/live.py [--network NAME ...] [--visits N] [--json]

The site is that of ``record.py``: several hosts, redirects, a single-page application from an npm package, a
slow programming interface. ``wirepaint page record`` records it, ``wirepaint run`` visits the archive on the
testbed and in the simulator. Arm ``live`` is nginx with the site itself in the server's namespace, behind the
emulator with the network of those visits. Prints medians of the page load time, and their ratios to live.

Needs what ``record.py`` needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import page_load
import record
from pyroute2 import IPRoute

from wirepaint import metrics, recording
from wirepaint.results import Results
from wirepaint.runners.testbed.cells import SCRATCH, Cells
from wirepaint.statistics.agreement import pairs

EVALUATION = """\
title = "A recorded page"
backend = "both"
[scenarios]
network = {networks}
congestion = ["cubic"]
http = ["h2"]
[[user_agents]]
pages = ["page"]
visits = {visits}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", nargs="+", default=["lte", "wpt-cable"])
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    record.require_programs()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # a cell imports this file by name
    with tempfile.TemporaryDirectory(prefix="wirepaint-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the browser is another user
        rows = measure(folder, options.network, options.visits)
    if options.json:
        print(json.dumps(rows))
        return
    print(f"page load time in ms, median of {options.visits} visits")
    print(f"{'':14}{'live':>9}{'testbed':>9}{'simulator':>11}{'testbed/live':>14}{'simulator/live':>16}")
    for row in rows:
        times = f"{row['live']:9.1f}{row['testbed']:9.1f}{row['simulator']:11.1f}"
        ratios = f"{row['testbed'] / row['live']:14.3f}{row['simulator'] / row['live']:16.3f}"
        print(f"{row['network']:14}{times}{ratios}")


def measure(folder: Path, networks: list[str], visits: int) -> list[dict[str, Any]]:
    """A row for each network: median page load times in ms, by arm."""
    with record.site(folder) as port:
        recording.record(record.wish_of(f"https://spa.test:{port}/", port), folder / "page")
    (folder / "live.toml").write_text(EVALUATION.format(networks=json.dumps(networks), visits=visits))
    program = Path(sys.executable).with_name("wirepaint")
    command = [program, "run", folder / "live.toml", "-o", folder / "results"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    results = Results.open(folder / "results")
    points = pairs(metrics.table(results), metrics.get("page-load-time"))
    rows = []
    with Cells() as cells:
        for point in points.iter_rows(named=True):
            of_network = sorted((results.folder / "runs").glob(f"{point['network']}-*/run.json"))
            run = next(path for path in of_network if json.loads(path.read_text())["sites"])
            ask = {"folder": str(folder), "port": port, "run": str(run)}
            live = [
                cells.call("live:load", ask, timeout_s=90, log=folder / "live.txt") for _ in range(visits + 1)
            ]
            times = {arm: point[arm] for arm in ("testbed", "simulator")}
            rows.append({"network": point["network"], "live": statistics.median(live[1:])} | times)
    return rows


def load(ask: dict[str, Any]) -> float:
    """Inside a cell: the page load time in ms of one visit of the live site over the link of a run."""
    from wirepaint.runners.testbed import browser, namespaces, process

    run = json.loads(Path(ask["run"]).read_text())
    [site] = run["sites"].values()
    addresses = {origin["host"]: origin["address"] for origin in site["origins"]}
    work = SCRATCH / "live"
    work.mkdir(mode=0o755)
    paths = namespaces.Namespaces.create()
    server = next(host for host in run["hosts"] if host["role"] == "server")
    namespaces.build(paths, addresses.values(), initial_window=server["initial_window"])
    # nginx asks for no congestion control, so the route to the client names that of the visits.
    with paths.inside(paths.server), IPRoute() as ip:
        [index] = ip.link_lookup(ifname="s0")
        ip.route(
            "replace",
            dst=f"{namespaces.CLIENT_ADDRESS}/32",
            oif=index,
            scope="link",
            metrics={"initcwnd": server["initial_window"], "cc_algo": server["congestion"]},
        )
    run |= {"epoch_ns": time.monotonic_ns(), "trace_dir": str(work), "work_dir": str(work)}
    run_file = work / "run.json"
    run_file.write_text(json.dumps(run))
    root, site = Path(ask["folder"]) / "www", work / "nginx"
    site.mkdir()
    spki = page_load._certificate(site, list(record.HOSTS))
    with (work / "log.txt").open("a") as log, ExitStack() as stack:
        emulator = process.Part(["emulate"], run_file, log, paths.wire)
        stack.callback(emulator.kill)
        emulator.wait_ready()
        backend = process.spawn(
            [sys.executable, record.__file__, "--backend"],
            namespace=paths.server,
            stdout=subprocess.PIPE,
            cwd=Path(record.__file__).parent,
        )
        assert backend.stdout is not None
        behind = int(backend.stdout.readline())
        configuration = record.configuration(site, root, ask["port"], behind, "0.0.0.0")
        (site / "nginx.conf").write_text(configuration)
        process.spawn(
            ["nginx", "-e", site / "error.log", "-p", site, "-c", site / "nginx.conf", "-g", "daemon off;"],
            namespace=paths.server,
        )
        subprocess.run(
            ["sh", "-c", f"until [ -s {site}/nginx.pid ]; do sleep 0.01; done"], check=True, timeout=10
        )

        def spawn(argv: Sequence[str | Path], **settings: Any) -> subprocess.Popen[bytes]:
            return process.spawn(argv, namespace=paths.client, ordinary_user=True, **settings)

        seen = browser.visit(
            browser.BrowserOptions(
                url=f"https://spa.test:{ask['port']}/",
                http="h2",
                hosts={f"{host}:{ask['port']}": f"{addresses[host]}:{ask['port']}" for host in record.HOSTS},
                ca_spki_sha256=spki,
                epoch_ns=run["epoch_ns"],
                work_dir=work,
            ),
            spawn=spawn,
        )
    return (seen.load_event - seen.navigation_start) / 1e6


if __name__ == "__main__":
    main()
