"""What loading costs a browser on this machine: CPU time by thread, for a request, a connection, a KiB.

    sudo .venv/bin/python benches/browser_cost.py [--visits N] [--json]

Loads pages that are made for it, each large in one thing (requests, images, scripts, style rules, text),
through the whole testbed without a limit, and reads every thread's CPU time at the navigation and at the
load event (/proc/PID/task/TID/schedstat). Least squares over the visits give the costs. CPU time hardly
depends on what else the machine does, so the load need not be fast; on a busy machine it comes out a
quarter higher. Prints the figures that the page model's ``Compute`` has as defaults
(python/wirepaint/catalog/browsers); its pages are none of the shipped ones, so that these stay a test.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import page_load
import polars as pl
from scipy.optimize import nnls

from wirepaint import pages
from wirepaint.pages.import_folder import import_folder
from wirepaint.pages.synthesis.binary import image
from wirepaint.runners.testbed.cells import Cells

KIB = 1024
GROUPS: dict[str, Callable[[str, str], bool]] = {
    "main": lambda kind, thread: kind == "renderer" and thread.startswith("chromium"),
    "network": lambda kind, thread: kind == "network" and thread == "Chrome_ChildIOT",
    "server": lambda kind, _: kind in ("replay", "emulate"),
    "aside": lambda _, __: True,
}
"""The page's main thread, the network process, servers and links, and all else; the first that fits."""
FEATURES = (
    "visit",
    "request",
    "connection",
    "kib",
    "html_kib",
    "css_kib",
    "js_kib",
    "image_kib",
    "comment_kib",
)


def make_site(name: str, folder: Path) -> None:
    """A static site that is large in one thing."""
    draw = random.Random(name)
    head, body = [], ["<h1>A page</h1><p>Some text.</p>"]

    def add(file: str, data: bytes) -> str:
        (folder / file).write_bytes(data)
        return file

    def png(size: int, number: int) -> bytes:
        return image("image/png", size, f"{name} {number}")[0]

    match name:
        case "small":
            pass
        case "requests":
            body += [f'<img src="{add(f"{i}.png", png(400, i))}">' for i in range(90)]
        case "images":
            body += [f'<img src="{add(f"{i}.png", png(200 * KIB, i))}">' for i in range(12)]
        case "scripts":
            for i in range(6):
                lines = []
                while sum(map(len, lines)) < 200 * KIB:
                    number = f"{i}_{len(lines)}"
                    lines.append(
                        f"function f{number}(a,b){{var c=a*{draw.random():.9f}+b;if(c>{draw.random():.4f})"
                        f"{{c=c-b}}return{{x:c,y:'{draw.randbytes(6).hex()}'}}}}\n"
                        f"var v{number}=f{number}(1,2);\n"
                    )
                head.append(f'<script src="{add(f"{i}.js", "".join(lines).encode())}"></script>')
        case "comments":
            for i in range(6):
                text = b"/*" + draw.randbytes(300 * KIB).hex().encode() + b"*/"
                head.append(f'<script src="{add(f"{i}.js", text)}"></script>')
        case "rules":
            for i in range(4):
                lines = []
                while sum(map(len, lines)) < 150 * KIB:
                    lines.append(
                        f".c{i}-{len(lines)} .d{draw.randrange(99)}{{margin:{draw.randrange(99)}px;"
                        f"color:#{draw.randbytes(3).hex()};padding:{draw.randrange(9)}em}}\n"
                    )
                head.append(f'<link rel="stylesheet" href="{add(f"{i}.css", "".join(lines).encode())}">')
        case "text":
            while sum(map(len, body)) < 400 * KIB:
                words = " ".join(draw.randbytes(draw.randint(1, 5)).hex() for _ in range(30))
                body.append(
                    f'<div class="a{draw.randrange(50)}"><p>{words}</p><a href="#">{words[:20]}</a></div>\n'
                )
    text = (
        f"<!DOCTYPE html><html><head><title>{name}</title>{''.join(head)}</head><body>{''.join(body)}</body>"
    )
    add("index.html", text.encode())


SITES = ("small", "requests", "images", "scripts", "comments", "rules", "text")


def threads() -> dict[str, tuple[str, str, int]]:
    """Of each thread in the cell: kind of process, name, CPU time in ns."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().split()
            of = {word.split("=")[0]: word.partition("=")[2] for word in words if word.startswith("--")}
            kind = of.get("--utility-sub-type", "").split(".")[0] or of.get("--type") or "browser"
            if words and words[0].endswith("wirepaint-dataplane"):
                kind = words[1]
            for task in (entry / "task").iterdir():
                cpu = int((task / "schedstat").read_text().split()[0])
                found[task.name] = (kind, (task / "comm").read_text().strip(), cpu)
        except OSError:
            continue
    return found


def visit(ask: dict[str, Any]) -> dict[str, Any]:
    """Inside a cell: one visit; CPU seconds by group between navigation and load event."""
    from wirepaint.results.trace import read_table
    from wirepaint.runners.testbed.browser.chromium import load

    samples: list[dict[str, tuple[str, str, int]]] = []
    navigate = load._Browser._navigate

    def watched(self: load._Browser, session: str) -> None:
        samples.append(threads())
        navigate(self, session)
        samples.append(threads())

    load._Browser._navigate = watched
    began = time.monotonic()
    seen = page_load.load_testbed(ask)
    used = dict.fromkeys(GROUPS, 0.0)
    before, after = samples
    for thread, (kind, name, cpu) in after.items():
        group = next(group for group, fits in GROUPS.items() if fits(kind, name))
        used[group] += (cpu - before.get(thread, ("", "", 0))[2]) / 1e9
    connections = read_table(Path(ask["trace"]), "connection").filter(pl.col("tls_done").is_not_null())
    return {"cpu_s": used, "connections": connections.height, "took": time.monotonic() - began} | seen


def features(page: pages.PreparedPage, connections: int) -> list[float]:
    """The visit's value of each of ``FEATURES``."""
    kib = {"html": 0.0, "css": 0.0, "js": 0.0, "image": 0.0, "comment": 0.0}
    for resource in page.resources:
        kib[resource["type"]] += resource["decoded_bytes"] / KIB
    wire = sum(resource["wire_bytes"] for resource in page.resources) / KIB
    if page.name == "comments":
        kib["js"], kib["comment"] = 0.0, kib["js"]
    return [1, len(page.resources), connections, wire, *kib.values()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # a cell imports this file by name
    rows: list[list[float]] = []
    used: dict[str, list[float]] = {group: [] for group in GROUPS}
    loads: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch, Cells() as cells:
        made = {}
        for name in SITES:
            site = Path(scratch) / name
            site.mkdir()
            make_site(name, site)
            import_folder(site, Path(scratch) / f"page-{name}", name=name)
            made[name] = pages.prepare(Path(scratch) / f"page-{name}", Path(scratch) / "cache")
        for number in range(options.visits + 1):
            for name, page in made.items():
                for http in ("h2", "h1"):
                    trace = Path(scratch) / f"{name}-{http}-{number}"
                    seen = page_load.visited(cells, "browser_cost:visit", page, http, trace)
                    if number == 0:
                        continue
                    rows.append(features(page, seen["connections"]))
                    loads.setdefault((name, http), []).append(seen["load_ms"])
                    for group, cpu in seen["cpu_s"].items():
                        used[group].append(cpu * 1e6)
    x = np.array(rows)
    costs = {}
    for group, values in used.items():
        y = np.array(values)
        weights = 1 / np.maximum(y, 1000)
        found, _ = nnls(x * weights[:, None], y * weights)
        error = float(np.median(np.abs(x @ found - y) / y))
        costs[group] = dict(zip(FEATURES, found.tolist(), strict=True)) | {"median_error": error}
    if options.json:
        medians = {"-".join(key): statistics.median(values) for key, values in loads.items()}
        print(json.dumps({"us": costs, "load_ms": medians, "rows": rows, "used_us": used}, indent=1))
        return
    print(f"CPU time in us, median of {options.visits} visits, without a limit")
    print(f"{'':10}" + "".join(f"{name:>12}" for name in FEATURES) + f"{'error':>9}")
    for group, of in costs.items():
        cells_of = "".join(f"{of[name]:12.1f}" for name in FEATURES)
        print(f"{group:10}{cells_of}{100 * of['median_error']:7.1f} %")
    for key, values in loads.items():
        print(
            f"{' '.join(key):14}{statistics.median(values):8.1f} ms, {min(values):.1f} to {max(values):.1f}"
        )


if __name__ == "__main__":
    main()
