"""h2spec in strict mode against the replay server, or the PEP's side that browsers connect to.

    .venv/bin/python benches/h2spec.py [--pep] [PROGRAM]

Prints the cases that fail and the last line; exit code 1 where a case fails. PROGRAM is h2spec
(github.com/summerwind/h2spec, `go install .../cmd/h2spec@latest`), from PATH where it is left out.
``--pep`` needs root.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wirepaint import dataplane
from wirepaint.dataplane.description import Host, Origin, Pep, Run, Sending, Site

ADDRESS, PORT = "127.0.0.1", 8443
"""Where h2spec connects to."""
BEHIND, LINK = 8444, 8445
"""Ports of the replay server behind the PEP, and of the PEP's ground side."""
SERVER = ("replay",)
PROXIES = (("pep", "--side", "ground"), ("pep", "--side", "remote"))
"""Verbs in the order of their start: the replay server makes the authority that the PEP uses."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="h2spec", metavar="PROGRAM")
    parser.add_argument("--pep", action="store_true", help="test the PEP before the replay server")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirepaint-h2spec-") as name, ExitStack() as parts:
        run = described(Path(name), pep=options.pep)
        for verb in (SERVER, *(PROXIES if options.pep else ())):
            parts.enter_context(running(run, *verb))
        asked = [options.program, "-h", "localhost", "-p", str(PORT), "-t", "-k", "-S"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False)
    lines = found.stdout.splitlines()
    print("\n".join(line for line in lines if "\N{MULTIPLICATION SIGN}" in line or " passed" in line))
    return found.returncode


@contextmanager
def running(run: Path, *verb: str) -> Iterator[None]:
    """A verb of the data plane, ready."""
    command = [dataplane.program(), verb[0], run, *verb[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            if '"ready":true' not in child.stdout.readline():
                raise SystemExit(f"{verb[0]} did not start")
            yield
        finally:
            child.terminate()
            child.communicate()


def described(folder: Path, *, pep: bool) -> Path:
    """A run whose one origin answers each method with a body that fills several windows."""
    folder.chmod(0o755)
    body = folder / "body"
    body.write_bytes(b"a" * 200_000)
    answer = {"url": f"https://localhost:{PORT}/", "status": 200, "headers": [], "body": str(body)}
    origin = Origin(
        address=ADDRESS, port=PORT, encrypted=True, host="localhost", listen_port=BEHIND if pep else None
    )
    sending = Sending(congestion="cubic")
    sides = [
        Host(name="remote", role="proxy", congestion="cubic", upstream=sending),
        Host(name="ground", role="proxy", congestion="cubic", address=ADDRESS, upstream=sending),
    ]
    proxy = Pep(
        remote="remote",
        ground="ground",
        port=LINK,
        connections=3,
        multiplexed=True,
        compression="none",
        schedule="fair",
        ahead="markup",
        buffer_bytes=64 * 2**20,
    )
    return Run(
        id="h2spec",
        trace_dir=folder,
        work_dir=folder,
        hosts=[Host(name="server", role="server", congestion="cubic"), *(sides if pep else ())],
        proxies=[proxy] if pep else [],
        sites={
            "h2spec": Site(
                origins=[origin],
                responses=[{"method": method} | answer for method in ("GET", "POST", "HEAD")],
            )
        },
    ).write()


if __name__ == "__main__":
    sys.exit(main())
