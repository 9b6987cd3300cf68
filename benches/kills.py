"""kill -9 of any part of a run, at any moment: what is left a second later?

    sudo .venv/bin/python benches/kills.py [--kills N] [--seed N] [--users]

Each time an evaluation is begun (fld and cubic on lte; with ``--users`` four browsers behind squid), one of
its processes is killed at a random moment, and the command itself a moment later if it still runs. Counts
processes of the command and BPF programs of congestion controls that are there one second after that, and
ends with 1 if there is any. The first half of the kills begins with an empty cache, and so with the rehearsal
of the page; the second half with its visits.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))

from proc import alive, descendants  # noqa: E402

from wirepaint.runners import bpf, ownership  # noqa: E402

EVALUATION = """
title = "Kills"
warmup = false
[scenarios]
network = ["lte"]
congestion = ["fld", "cubic"]
http = ["h2"]
[[user_agents]]
pages = ["kit"]
visits = 4
"""
USERS = """
title = "Kills of users"
warmup = false
[scenarios]
network = ["lte"]
http = ["h1"]
proxy = ["edge"]
[[proxies]]
name = "edge"
cache = "memory"
tls = "terminate"
[[user_agents]]
pages = ["kit"]
visits = 4
together = true
count = 4
spread = "3 s"
"""
LATEST_S = 9.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--users", action="store_true", help="four browsers behind squid")
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    victims: Counter[str] = Counter()
    left = 0
    with tempfile.TemporaryDirectory(prefix="wirepaint-kills-") as name:
        folder = Path(name)
        (folder / "kills.toml").write_text(USERS if options.users else EVALUATION)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        for number in range(options.kills):
            if number == options.kills // 2:
                subprocess.run(command(folder), capture_output=True, check=True)
            victim, found = kill(folder, drawn)
            victims[victim] += 1
            left += bool(found)
            print(f"{victim}: {found or 'nothing left'}", flush=True)
    print(
        f"{options.kills} kills; {left} left something. Killed: "
        + ", ".join(f"{victim} {count}" for victim, count in victims.most_common())
    )
    return int(left > 0)


def kill(folder: Path, drawn: random.Random) -> tuple[str, str]:
    """Name of the killed process, and what it left behind."""
    before = bpf.struct_ops()
    running = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(drawn.uniform(0.5, LATEST_S))
    pids = [running.pid, *descendants(running.pid)]
    names = {pid: name_of(pid) for pid in pids}
    what = drawn.choice(sorted(set(names.values())))  # each part as often, however many processes it has
    victim = drawn.choice([pid for pid, name in names.items() if name == what])
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        what += " (had ended)"
    time.sleep(drawn.uniform(0, 0.5))
    running.kill()
    running.wait()
    time.sleep(1)
    found = [f"process {name_of(pid)}" for pid in pids if alive(pid)]
    found += [f"process {name}" for _, name in ownership.orphans()]
    found += [f"BPF program {name}" for number, name in bpf.struct_ops().items() if number not in before]
    return what, ", ".join(found)


def command(folder: Path) -> list[Path | str]:
    """The command that carries the evaluation out."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    program = Path(sys.executable).with_name("wirepaint")
    return [program, "run", folder / "kills.toml", "-o", folder / "results"]


def name_of(pid: int) -> str:
    """Name of a process, in one or two words."""
    try:
        words = (
            Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ").split(" ")
        )
    except OSError:
        return "a process that had ended"
    if "wirepaint-dataplane" in words[0]:
        return words[1]
    kind = next((word.removeprefix("--type=") for word in words if word.startswith("--type=")), "")
    return f"{Path(words[0]).name} {kind}".strip()


if __name__ == "__main__":
    sys.exit(main())
