"""Page load without delay: the whole testbed beside nginx over a bare veth pair.

Both arms load the same bytes with the same browser over TLS: arm ``testbed`` through emulator
(unlimited, no delay), TCP probe and replay server; arm ``nginx`` over one veth pair with nothing
between. The arms alternate, A B A B, so that a drift of the machine hits both. Prints the medians
and the median of the pair-wise ratios; at most 1.10 is to be reached.

    benches/page_load.py [--page NAME] [--http h1|h2] [--visits N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wirepaint import pages
from wirepaint.dataplane.description import (
    Congestion,
    Interfaces,
    Navigation,
    Origin,
    Run,
    Site,
    Transport,
    Visit,
    one_path,
)
from wirepaint.pages.servers import addresses
from wirepaint.runners.testbed.cells import SCRATCH, Cells

UNLIMITED = {
    "capacity": {"kind": "unlimited"},
    "delay_ns": 0,
    "queue": {"kind": "droptail"},
}
ENDINGS = {
    "text/html": "html",
    "text/css": "css",
    "text/javascript": "js",
    "application/javascript": "js",
    "application/x-javascript": "js",
    "application/json": "json",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "font/woff2": "woff2",
    "font/woff": "woff",
    "application/font-woff2": "woff2",
    "text/plain": "txt",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", default="agency")
    parser.add_argument("--http", choices=["h1", "h2"], default=None, help="default: both")
    parser.add_argument("--visits", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is not installed: apt-get install nginx-light")
    folder = pages.shipped()[options.page]
    page = pages.prepare(folder, pages.cache_dir())
    page = replace(page, responses=[dict(response, think_ns=0) for response in page.responses])
    results = {}
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # a cell imports this file by name
    with tempfile.TemporaryDirectory() as scratch, Cells() as cells:
        for http in [options.http] if options.http else ["h1", "h2"]:
            loads: dict[str, list[dict[str, Any]]] = {"testbed": [], "nginx": []}
            for visit in range(options.visits + 1):
                for arm, seen in loads.items():
                    trace = Path(scratch) / f"{http}-{arm}-{visit}"
                    load = visited(cells, f"page_load:load_{arm}", page, http, trace)
                    if visit > 0:
                        seen.append(load)
            results[http] = _summary(loads)
    if options.json:
        print(json.dumps({"page": options.page, "visits": options.visits, "http": results}, indent=1))
        return
    print(f"page load without delay, {options.page}, median of {options.visits} visits after a warm-up")
    print(f"{'':4}{'testbed':>12}{'nginx, bare veth':>18}{'ratio':>8}{'objects':>9}")
    for http, row in results.items():
        print(
            f"{http:4}{row['testbed_ms']:>9.1f} ms{row['nginx_ms']:>15.1f} ms{row['ratio']:>8.3f}"
            f"{row['objects']:>9}"
        )


def visited(cells: Cells, function: str, page: pages.PreparedPage, http: str, trace: Path) -> Any:
    """The answer of ``function`` (a cell imports it by name) for one visit traced into ``trace``."""
    trace.mkdir()
    ask = {
        "http": http,
        "url": page.url,
        "hosts": addresses(page),
        "origins": page.origins,
        "responses": page.responses,
        "resources": page.resources,
        "answering": page.answering,
        "trace": str(trace),
    }
    return cells.call(function, ask, timeout_s=90, log=trace / "log.txt")


def _summary(loads: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    objects = {load["objects"] for seen in loads.values() for load in seen}
    if len(objects) != 1:
        raise SystemExit(f"the arms did not load the same page: {sorted(objects)} objects")
    times = {arm: [load["load_ms"] for load in seen] for arm, seen in loads.items()}
    pairs = zip(times["testbed"], times["nginx"], strict=True)
    return {
        "testbed_ms": statistics.median(times["testbed"]),
        "nginx_ms": statistics.median(times["nginx"]),
        "ratio": statistics.median(ours / peer for ours, peer in pairs),
        "objects": objects.pop(),
    }


def load_testbed(ask: dict[str, Any]) -> dict[str, Any]:
    """Inside a cell: one visit through the whole testbed on an unlimited link."""
    from wirepaint.results.trace import read_table
    from wirepaint.runners.testbed import page_run

    folder = Path(ask["trace"])
    origins = [
        Origin(address=ask["hosts"][host], port=port, encrypted=scheme == "https", host=host)
        for scheme, host, port in ask["origins"]
    ]
    told = Navigation(url=ask["url"], viewport=(1280, 800), mobile=False, clock_ms=None, seed=1)
    run = Run(
        id="bench",
        trace_dir=folder,
        work_dir=folder,
        **one_path(UNLIMITED, UNLIMITED, client="reno", server="cubic"),
        congestion=[
            Congestion(algorithm="std", name="reno", of_kernel=True),
            Congestion(algorithm="cubic9438", name="cubic", of_kernel=True),
        ],
        transport=Transport(http=ask["http"]),
        sites={"bench": Site(origins=origins, responses=ask["responses"])},
        visits=[
            Visit(user_agent="bench", name="bench", timeout_ns=60 * 10**9, site="bench", navigation=told)
        ],
        checks={
            "calibration": None,
            "own_initial_window": False,
            "pages": {
                "bench": {"resources": ask["resources"], "answering": ask["answering"], "rehearsed": False}
            },
            "identity": {"run_key": folder.name, "user_agent": "bench", "page": "bench", "http": ask["http"]},
        },
    )
    run = replace(run, segments=[replace(run.segments[0], interfaces=Interfaces())])
    page_run.carry_out({"run": run.document(), "faults": []})
    row = read_table(folder, "page").row(0, named=True)
    return {"load_ms": (row["load_event"] - row["navigation_start"]) / 1e6, "objects": row["objects"]}


def load_nginx(ask: dict[str, Any]) -> dict[str, Any]:
    """Inside a cell: one visit of the same bytes from nginx over a bare veth pair."""
    from wirepaint.runners.testbed import browser, namespaces, process

    paths = namespaces.Namespaces.create()
    namespaces.build(paths, ask["hosts"].values(), initial_window=10, emulated=False)
    site = SCRATCH / "nginx"
    site.mkdir(mode=0o755)
    spki = _certificate(site, list(ask["hosts"]))
    (site / "nginx.conf").write_text(_configuration(site, ask))
    process.spawn(
        ["nginx", "-e", site / "error.log", "-p", site, "-c", site / "nginx.conf", "-g", "daemon off;"],
        namespace=paths.server,
    )
    subprocess.run(["sh", "-c", f"until [ -s {site}/pid ]; do sleep 0.01; done"], check=True, timeout=10)

    def spawn(argv: Sequence[str | Path], **settings: Any) -> subprocess.Popen[bytes]:
        return process.spawn(argv, namespace=paths.client, ordinary_user=True, **settings)

    options = browser.BrowserOptions(
        url=ask["url"],
        http=ask["http"],
        hosts=ask["hosts"],
        ca_spki_sha256=spki,
        epoch_ns=time.monotonic_ns(),
        work_dir=SCRATCH,
    )
    load = browser.visit(options, spawn=spawn)
    loaded = [exchange for exchange in load.requests if not exchange.failed]
    return {"load_ms": (load.load_event - load.navigation_start) / 1e6, "objects": len(loaded)}


def _certificate(site: Path, hosts: list[str]) -> str:
    """Makes a key and a self-signed certificate for all hosts; returns the key's SPKI hash."""
    names = ",".join(f"DNS:{host}" for host in hosts)
    script = f"""
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=bench \
    -addext subjectAltName={names} -keyout key.pem -out cert.pem 2>/dev/null
openssl x509 -in cert.pem -noout -pubkey | openssl pkey -pubin -outform der >key.der
openssl dgst -sha256 -binary key.der | base64
"""
    done = subprocess.run(["sh", "-ec", script], cwd=site, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _configuration(site: Path, ask: dict[str, Any]) -> str:
    """One server block an origin; each recorded address is a file with the ending of its type."""
    root = site / "root"
    root.mkdir()
    files, encodings = [], []
    for number, response in enumerate(ask["responses"]):
        parts = urlsplit(response["url"])
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        headers = {name.lower(): value for name, value in response["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if response["status"] != 200 or kind not in ENDINGS or response["body"] is None:
            raise SystemExit(
                f"nginx cannot serve {response['url']} ({response['status']}, {kind}): choose another page"
            )
        name = f"/{number}.{ENDINGS[kind]}"
        shutil.copyfile(response["body"], root / name[1:])
        files.append(f'"{parts.hostname}{target}" {name};')
        if encoding := headers.get("content-encoding"):
            encodings.append(f'"{parts.hostname}{target}" {encoding};')
    types = {}
    for kind, ending in ENDINGS.items():
        types.setdefault(ending, kind)
    http2 = " http2" if ask["http"] == "h2" else ""
    servers = "\n".join(
        f"server {{ listen {ask['hosts'][host]}:{port}{f' ssl{http2}' if scheme == 'https' else ''}; "
        f"server_name {host}; location / {{ try_files $file =404; }} }}"
        for scheme, host, port in ask["origins"]
    )
    newline = "\n"
    return f"""
user root;
worker_processes 1;
pid {site}/pid;
error_log {site}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    map_hash_bucket_size 1024;
    map_hash_max_size 8192;
    client_body_temp_path {site}/body; proxy_temp_path {site}/proxy; fastcgi_temp_path {site}/fastcgi;
    uwsgi_temp_path {site}/uwsgi; scgi_temp_path {site}/scgi;
    ssl_certificate {site}/cert.pem;
    ssl_certificate_key {site}/key.pem;
    types {{ {" ".join(f"{kind} {ending};" for ending, kind in types.items())} }}
    map "$host$request_uri" $file {{ {newline.join(files)} }}
    map "$host$request_uri" $encoding {{ default ""; {newline.join(encodings)} }}
    add_header Content-Encoding $encoding;
    add_header Access-Control-Allow-Origin *;
    root {root};
    {servers}
}}
"""


if __name__ == "__main__":
    main()
