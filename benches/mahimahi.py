"""A path through Mahimahi's mm-delay and mm-link, for probes of our own.

Mahimahi refuses root, so its shells run as an ordinary user; the probe, which has root, enters the
namespace that they made. mm-delay delays each direction, mm-link takes a packet-delivery trace.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
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


class ShellPath:
    """Probes from inside the shell to the host, with the methods of ProbedPath that the bench uses."""

    def __init__(self, shell: int, host: str) -> None:
        self._source = {"namespace": f"/proc/{shell}/ns/net", "address": "0.0.0.0"}
        self._destination = {"namespace": "/proc/self/ns/net", "address": host}

    def probe(self, side: str, kind: str, **probes: Any) -> dict[str, Any]:
        return self._measure({"kind": kind, "probes": probes})

    def tcp(self, side: str, duration_ns: int, congestion: str) -> dict[str, Any]:
        return self._measure({"kind": "tcp", "duration_ns": duration_ns, "congestion": congestion})

    def _measure(self, measure: dict[str, Any]) -> dict[str, Any]:
        request = {"source": self._source, "destination": self._destination, "measure": measure}
        return dataplane.call("probe", json.dumps(request))


@contextmanager
def path(rate: int | None, delay_ms: int) -> Iterator[ShellPath]:
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
            [*command, "sh", "-c", "echo $$ $MAHIMAHI_BASE; exec cat"],
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


def _inside(shell: subprocess.Popen[str]) -> ShellPath:
    assert shell.stdout is not None and shell.stderr is not None
    # Mahimahi makes no PID namespace, so the number is the host's; the address is that of the host.
    match shell.stdout.readline().split():
        case [pid, host]:
            return ShellPath(int(pid), host)
    raise RunFailed(f"mm-delay: {shell.stderr.read().strip()}")


def _constant(rate: int) -> str:
    """A trace of a constant rate: as many opportunities in each whole millisecond as fall into it."""
    period_ms = 1000
    count = round(rate * period_ms / 1000 / OPPORTUNITY_BITS)
    return "".join(f"{(i + 1) * period_ms // count}\n" for i in range(count))
