"""Browser and replay server on the loopback: their records agree and are joined."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from test_browser import PNG, scratch, spawn

from wirepaint import dataplane
from wirepaint.dataplane.description import Host, Origin, Run, Site, Transport, Visit
from wirepaint.errors import MachineLacks
from wirepaint.runners.testbed import host, join, process, validity
from wirepaint.runners.testbed.browser import BrowserOptions, PageLoad, visit
from wirepaint.runners.testbed.browser.chromium import program

try:
    program.find()
    dataplane.program()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)

HOSTS = {"page.test": "127.0.0.2", "static.test": "127.0.0.3"}
PICTURES = 12
CALM = {
    "faults": [],
    "clock_steps": 0,
    "lateness": {"p50": 1, "p99": 1, "max": 1},
    **{direction: {"largest_shift": 0} for direction in ("down", "up")},
}


def recording(folder: Path, port: int) -> list[dict[str, Any]]:
    """Resources of a page with a style sheet, a script and pictures of another host."""
    page, static = (f"https://{name}:{port}" for name in HOSTS)
    pictures = "".join(f"<img src={static}/{n}.png>" for n in range(PICTURES))
    bodies = {
        f"{page}/": (
            "text/html",
            f"<!doctype html><link rel=stylesheet href=a.css>{pictures}<script src=a.js></script>",
        ),
        f"{page}/a.css": ("text/css", "h1 { color: red }" + " " * 20_000),
        f"{page}/a.js": ("text/javascript", "fetch('data.json')" + " " * 30_000),
        f"{page}/data.json": ("application/json", "{}"),
    }
    resources = []
    for url, (kind, text) in bodies.items():
        resources.append((url, kind, text.encode()))
    resources += [(f"{static}/{n}.png", "image/png", PNG + os.urandom(60_000)) for n in range(PICTURES)]
    rows = []
    for number, (url, kind, body) in enumerate(resources):
        file = folder / f"body{number}"
        file.write_bytes(body)
        rows.append(
            {
                "method": "GET",
                "url": url,
                "status": 200,
                "headers": [["content-type", kind]],
                "body": str(file),
            }
            | {"wire_bytes": len(body)}
        )
    return rows


def visit_replay(work: Path, http: str) -> tuple[PageLoad, join.Joined, dict[str, Any], host.Counters]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        port = probe.getsockname()[1]
    resources = recording(work, port)
    origins = [
        Origin(address=address, port=port, encrypted=True, host=name) for name, address in HOSTS.items()
    ]
    responses = [{k: v for k, v in row.items() if k != "wire_bytes"} for row in resources]
    described = Run(
        id="browser",
        epoch_ns=time.monotonic_ns(),
        trace_dir=work,
        work_dir=work,
        hosts=[
            Host(name="client", role="client", congestion="reno", address="127.0.0.1"),
            Host(name="server", role="server", congestion="reno"),
        ],
        transport=Transport(http=http),
        sites={"p": Site(origins=origins, responses=responses)},
        visits=[Visit(user_agent="u", name="p", timeout_ns=20 * 10**9, site="p")],
        checks={
            "calibration": {"quantities": []},
            "identity": {"page": "p", "user_agent": "u"},
            "pages": {
                "p": {
                    "resources": [{"id": number} | row for number, row in enumerate(resources)],
                    "answering": list(range(len(resources))),
                    "rehearsed": False,
                }
            },
            "own_initial_window": False,
        },
    )
    described.write()
    with (work / "log.txt").open("w") as log:
        server = process.Part(["replay"], work / "run.json", log)
        try:
            ready = server.wait_ready()
            witness = host.Witness({"server": server.pid})
            load = visit(
                BrowserOptions(
                    url=resources[0]["url"],
                    http=http,  # type: ignore[arg-type]
                    hosts=HOSTS,
                    work_dir=work,
                    epoch_ns=described.epoch_ns,
                    ca_spki_sha256=ready["ca_spki_sha256"],
                    timeout_s=20,
                ),
                spawn,
            )
            counters = witness.stop(load.cpu_s)
            server.stop()
        finally:
            server.kill()
    run = described.document()
    return load, join.join([load], run, work, work), run, counters


@pytest.mark.timed
@pytest.mark.parametrize("http", ["h1", "h2"])
def test_browser_and_server_agree_on_every_request_and_connection(http: str) -> None:
    with scratch() as work:
        load, joined, run, counters = visit_replay(work, http)
    reasons = validity.check([load], joined, run, {"emulator": CALM}, counters)
    # Other programs may load this machine, and no probe samples the senders here.
    assert [reason for reason in reasons if reason["check"] not in ("foreign_cpu", "unseen_acks")] == []
    rows = {row["url"]: row for row in joined.tables["object"]}
    ports = {row["connection"]: row["client_port"] for row in joined.tables["connection"]}
    served = {record["url"]: record for record in joined.requests}
    assert set(rows) == set(served) == {row["url"] for row in run["checks"]["pages"]["p"]["resources"]}
    for url, row in rows.items():
        record = served[url]
        assert ports[row["connection"]] == record["client_port"]
        assert row["protocol"] == {"h1": "http/1.1", "h2": "h2"}[http]
        # One clock: the request leaves, is read, and the answer arrives. The browser's network events
        # are stamped on its own threads, the chunk times are cut to milliseconds.
        assert row["sent"] <= record["time"] + 1_000_000
        assert record["time"] <= row["first_byte"] + 1_000_000
        assert row["first_byte"] <= row["last_byte"]
        arrived = sum(
            chunk["bytes"] for chunk in joined.tables["chunk"] if chunk["request"] == row["request"]
        )
        assert arrived == pytest.approx(row["encoded_bytes"], abs=300, rel=0.01)
    for row in joined.tables["connection"]:
        if row["objects"]:
            assert (row["congestion"], row["initial_window"]) == ("reno", 10)
            assert row["opened"] <= row["connected"] <= row["tls_done"] <= row["first_request"]
    (page,) = joined.tables["page"]
    assert (page["objects"], page["failed_objects"]) == (len(rows), 0)
    used = {row["host"] for row in joined.tables["connection"] if row["objects"]}
    assert used == set(HOSTS)
    if http == "h2":
        assert page["connections"] == len(HOSTS), "one connection a host"
    assert load.controller_cpu_s < 0.5 * load.cpu_s
