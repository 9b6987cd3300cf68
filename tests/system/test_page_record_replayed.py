"""A page served by the replay server over HTTP/2 and recorded again is the page it was."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import brotli
import pytest

from wirepaint import dataplane, recording
from wirepaint.dataplane.description import Host, Origin, Run, Site
from wirepaint.errors import MachineLacks
from wirepaint.pages import PreparedPage, load, prepare, shipped
from wirepaint.runners.testbed import process
from wirepaint.runners.testbed.browser.chromium import program

try:
    program.find()
    dataplane.program()
except MachineLacks as missing:
    pytest.skip(f"{missing}", allow_module_level=True)

THINK_TOLERANCE_MS = 60


def addresses(page: PreparedPage) -> dict[tuple[str, int], str]:
    """A loopback address for each host, of this process alone."""
    first = f"127.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}"
    return {(host, port): f"{first}.{number}" for number, (_, host, port) in enumerate(page.origins, start=1)}


def decoded(data: bytes, coding: str) -> bytes:
    return {"gzip": gzip.decompress, "br": brotli.decompress}.get(coding, bytes)(data)


@pytest.mark.timed
@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "name", ["agency", *(pytest.param(name, marks=pytest.mark.slow) for name in ("photos", "shop-large"))]
)
def test_a_shipped_page_recorded_from_its_replay_is_the_same_page(name: str, tmp_path: Path) -> None:
    page = prepare(shipped()[name], tmp_path / "cache")
    places = addresses(page)
    origins = [
        Origin(address=places[host, port], port=port, encrypted=scheme == "https", host=host)
        for scheme, host, port in page.origins
    ]
    run_file = Run(
        id="record",
        trace_dir=tmp_path,
        work_dir=tmp_path,
        hosts=[Host(name="server", role="server", congestion="reno")],
        sites={"page": Site(origins=origins, responses=page.responses)},
    ).write()
    with (tmp_path / "log.txt").open("w") as log:
        part = process.Part(["replay"], run_file, log)
        try:
            part.wait_ready()
            where = {f"{host}:{port}": f"{address}:{port}" for (host, port), address in places.items()}
            wish = replace(recording.read(page.url, insecure=True), resolve=where)
            recording.record(wish, tmp_path / "page")
            part.stop()
        finally:
            part.kill()
    made = load(tmp_path / "page")
    asked = Counter((r["method"], r["url"]) for r in page.responses)
    assert Counter((r.method, r.url) for r in made.resources) == asked
    served = {(r["method"], r["url"]): r for r in page.responses}
    for resource in made.resources:
        sent = served[resource.method, resource.url]
        assert resource.status == sent["status"]
        assert resource.recorded.protocol == ("h2" if resource.url.startswith("https") else "http/1.1")
        if resource.id == 0:  # later ones wait behind others on their connection, too
            assert abs(resource.think_ms - sent["think_ns"] / 1e6) < THINK_TOLERANCE_MS
        body = Path(sent["body"]).read_bytes() if sent["body"] else b""
        if not body or resource.status != 200:
            continue
        assert resource.body is not None and not resource.synthetic
        coding = dict(sent["headers"]).get("content-encoding", "identity")
        kept = (tmp_path / "page/bodies" / resource.body).read_bytes()
        assert decoded(kept, resource.header("content-encoding") or "identity") == decoded(body, coding)
        assert abs(resource.wire_bytes - len(body)) <= 0.02 * len(body) + 3, resource.url
