"""h2spec in strict mode against the replay server: prints its last line; exit code 1 where a case fails.

    .venv/bin/python benches/h2spec.py [PROGRAM]

PROGRAM is h2spec (github.com/summerwind/h2spec, `go install .../cmd/h2spec@latest`), from PATH where it is
left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from wirepaint import dataplane
from wirepaint.dataplane.description import Host, Origin, Run, Site

ADDRESS, PORT = "127.0.0.1", 8443


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", default="h2spec", metavar="PROGRAM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirepaint-h2spec-") as name:
        server = subprocess.Popen(
            [dataplane.program(), "replay", described(Path(name))], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            if '"ready":true' not in server.stdout.readline():
                return 1
            asked = [options.program, "-h", "localhost", "-p", str(PORT), "-t", "-k", "-S"]
            found = subprocess.run(asked, capture_output=True, text=True, check=False)
        finally:
            server.terminate()
            server.wait()
    lines = found.stdout.splitlines()
    print("\n".join(line for line in lines if "\N{MULTIPLICATION SIGN}" in line or " passed" in line))
    return found.returncode


def described(folder: Path) -> Path:
    """A run whose one origin answers each method with a body that fills several windows."""
    folder.chmod(0o755)
    body = folder / "body"
    body.write_bytes(b"a" * 200_000)
    answer = {"url": f"https://localhost:{PORT}/", "status": 200, "headers": [], "body": str(body)}
    return Run(
        id="h2spec",
        trace_dir=folder,
        work_dir=folder,
        hosts=[Host(name="server", role="server", congestion="cubic")],
        sites={
            "h2spec": Site(
                origins=[Origin(address=ADDRESS, port=PORT, encrypted=True, host="localhost")],
                responses=[{"method": method} | answer for method in ("GET", "POST", "HEAD")],
            )
        },
    ).write()


if __name__ == "__main__":
    sys.exit(main())
