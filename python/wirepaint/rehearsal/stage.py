"""Loads a page in a rehearsal: the replay server on loopback addresses and a browser, without a network.

Nothing here needs root: hosts have addresses of 127.0.0.0/8 and ports above 1024, and
resolver rules give them to the browser. Each answer can have a delay of its own.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from wirepaint.dataplane.description import Host, Origin, Run, Site, Transport
from wirepaint.errors import RunFailed
from wirepaint.runners.testbed import browser, host, process

TIMEOUT_S = 30.0
"""Answers are at most a fraction of a second late: a page that has not loaded by then never will."""
_TRIES = 5
_HOSTS_OF_A_BLOCK = 250
_PORTS = 40_000
"""Ports above 20,000 in place of an origin's own."""


class Stage:
    """Loads one page; every :meth:`load` has a server and a browser of its own.

    ``work`` is for their files. ``remove`` is given the folder of a load that ended; None removes it at once.
    """

    def __init__(
        self,
        origins: Sequence[tuple[str, str, int]],
        url: str,
        work: Path,
        remove: Callable[[Path], object] | None = None,
    ) -> None:
        self._origins, self._url, self._work = origins, url, work
        self._remove = remove or partial(shutil.rmtree, ignore_errors=True)
        self._congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()

    def load(
        self,
        responses: Sequence[dict[str, Any]],
        *,
        http: str = "h2",
        clock_ms: int,
        seed: int,
        viewport: tuple[int, int],
        mobile: bool = False,
        trace: tuple[str, ...] = (),
        quiet_s: float | None = None,
        expected: frozenset[str] = frozenset(),
        sure_s: float | None = None,
    ) -> tuple[browser.PageLoad, list[dict[str, Any]], float]:
        """Loads the page once. Returns the browser's observations, the server's records of the requests, and
        the share of the machine's CPU time that others used.

        ``responses`` are in the form of the run description, with their think times. Raises ``RunFailed``
        if the page does not load.
        """
        work = Path(tempfile.mkdtemp(dir=self._work))
        try:
            work.chmod(0o755)
            with (work / "log.txt").open("a") as log, self._serving(work, responses, http, log) as place:
                load = browser.visit(
                    browser.BrowserOptions(
                        url=self._url,
                        http="h2" if http == "h2" else "h1",
                        hosts=place["hosts"],
                        ca_spki_sha256=place["ca_spki_sha256"],
                        epoch_ns=place["epoch_ns"],
                        work_dir=work,
                        timeout_s=TIMEOUT_S,
                        viewport=viewport,
                        mobile=mobile,
                        screencast=False,
                        clock_ms=clock_ms,
                        seed=seed,
                        trace=trace,
                        quiet_s=quiet_s,
                        expected=expected,
                        sure_s=sure_s,
                    ),
                    spawn=_spawn,
                )
                counters = place["witness"].stop(load.cpu_s)
                place["stop"]()
                records = (work / "server-requests.jsonl").read_text("utf-8").splitlines()
                others = (counters.foreign + counters.steal) / counters.total
                return load, [json.loads(line) for line in records], others
        finally:
            self._remove(work)

    @contextmanager
    def _serving(
        self, work: Path, responses: Sequence[dict[str, Any]], http: str, log: Any
    ) -> Iterator[dict[str, Any]]:
        for left in reversed(range(_TRIES)):
            origins, hosts = _places(self._origins, usual_ports=left == _TRIES - 1)
            epoch = time.monotonic_ns()
            run = Run(
                id="stage",
                epoch_ns=epoch,
                trace_dir=work,
                work_dir=work,
                hosts=[Host(name="server", role="server", congestion=self._congestion)],
                transport=Transport(http=http),
                sites={"page": Site(origins=origins, responses=responses)},
            )
            part = process.Part(["replay"], run.write(), log)
            try:
                try:
                    ready = part.wait_ready()
                except RunFailed as error:
                    if left and "in use" in str(error):
                        continue  # by another rehearsal, or by a server that listens on all addresses
                    raise
                yield {
                    "hosts": hosts,
                    "ca_spki_sha256": ready["ca_spki_sha256"],
                    "epoch_ns": epoch,
                    "stop": part.stop,
                    "witness": host.Witness({"server": part.pid}),
                }
                return
            finally:
                part.kill()


def _places(
    origins: Sequence[tuple[str, str, int]], *, usual_ports: bool
) -> tuple[list[Origin], dict[str, str]]:
    """Origins of a run description, and the browser's resolver rules for them."""
    shift = random.randrange(_PORTS)
    block = random.randrange(1, 254), random.randrange(1, 250)
    numbers = {host: number for number, host in enumerate(dict.fromkeys(host for _, host, _ in origins))}
    described: list[Origin] = []
    hosts: dict[str, str] = {}
    for scheme, name, port in origins:
        number = numbers[name]
        address = f"127.{block[0]}.{block[1] + number // _HOSTS_OF_A_BLOCK}.{number % _HOSTS_OF_A_BLOCK + 1}"
        listen = port if usual_ports and port >= 1024 else 20_000 + (port + shift) % _PORTS
        encrypted = scheme == "https"
        described.append(
            Origin(address=address, port=port, listen_port=listen, encrypted=encrypted, host=name)
        )
        hosts[f"{name}:{port}"] = f"{address}:{listen}"
    return described, hosts


def _spawn(argv: Sequence[str | Path], **options: Any) -> Any:
    # A benchmark may run this as root.
    return process.spawn(argv, ordinary_user=os.geteuid() == 0, **options)
