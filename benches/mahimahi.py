"""A path through Mahimahi's mm-delay and mm-link, for probes of our own.

Mahimahi refuses root, so its shells run as an ordinary user; the probe, which has root, enters the
namespace that they made. mm-delay delays each direction, mm-link takes a packet-delivery trace.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wirepaint import dataplane
from wirepaint.errors import RunFailed

PROGRAMS = ("mm-delay", "mm-link")
USER = "65534"
OPPORTUNITY_BITS = 1504 * 8


def installed() -> bool:
    """Whether both programs are on the path."""
    return all(shutil.which(program) for program in PROGRAMS)


class Path_:
    """Probes from outside to inside, with the methods of ProbedPath that the bench uses."""

    def __init__(self, inside: dict[str, str], outside: dict[str, str]) -> None:
        self._inside, self._outside = inside, outside

    def probe(self, side: str, kind: str, **probes: Any) -> dict[str, Any]:
        return self._measure({"kind": kind, "probes": probes})

    def tcp(self, side: str, duration_ns: int, congestion: str) -> dict[str, Any]:
        return self._measure({"kind": "tcp", "duration_ns": duration_ns, "congestion": congestion})

    def _measure(self, measure: dict[str, Any]) -> dict[str, Any]:
        # Mahimahi translates addresses, so only the way out of the shell reaches a listener.
        request = {"source": self._inside, "destination": self._outside, "measure": measure}
        return dataplane.call("probe", json.dumps(request))


@contextmanager
def path(rate: int | None, delay_ms: int) -> Iterator[Any]:
    """A shell behind mm-delay and, with a ``rate`` in bit/s, mm-link inside it."""
    with tempfile.TemporaryDirectory(prefix="mm-") as folder:
        Path(folder).chmod(0o755)
        command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        command += ["mm-delay", str(delay_ms)]
        if rate is not None:
            trace = Path(folder) / "trace"
            trace.write_text(_constant(rate))
            command += ["mm-link", str(trace), str(trace), "--"]
        shell = subprocess.Popen(
            [*command, "sh", "-c", "cat /proc/self/stat; hostname -I; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield _inside(shell)
        finally:
            assert shell.stdin is not None
            shell.stdin.close()
            shell.wait(10)


def _inside(shell: subprocess.Popen[str]) -> Path_:
    assert shell.stdout is not None
    parent = shell.stdout.readline().split()
    inside = shell.stdout.readline().split()
    if len(parent) < 4 or not inside:
        assert shell.stderr is not None
        raise RunFailed(f"mm-delay: {shell.stderr.read().strip()}")
    time.sleep(0.2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # The address by which the host reaches the shell is the shell's way out.
        probe.connect((inside[0], 9))
        outside = probe.getsockname()[0]
    return Path_(
        {"namespace": f"/proc/{parent[3]}/ns/net", "address": inside[0]},
        {"namespace": "/proc/self/ns/net", "address": outside},
    )


def _constant(rate: int) -> str:
    """A trace of a constant rate: as many opportunities in each whole millisecond as fall into it."""
    period_ms = 1000
    count = round(rate * period_ms / 1000 / OPPORTUNITY_BITS)
    return "".join(f"{(i + 1) * period_ms // count}\n" for i in range(count))
