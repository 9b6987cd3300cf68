"""Mutants of foreign files: how many are accepted, refused in one line, or make wirepaint fail.

    benches/mutate.py [--kind KIND ...] [--mutants N] [--seed N] [--only N] [--keep DIR] [--worst]

Each mutant (benches/mutants.py) is read as a user would have it read, in a process that may take 512 MiB
more than after its originals, and 5 s of CPU time. Anything but success or one line with exit code 2 is a
failure: the mutant stays in DIR/KIND-SEED-N with what came of it, ``--seed SEED --only N`` makes it again.
Exit code 1 where there is one. ``--worst`` reads files that are as large and bad as may be
(benches/worst_cases.py) instead.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mutants import KINDS, mutate
from worst_cases import CASES

from wirepaint.columns import aligned

MEMORY = 512 * 2**20
SECONDS = 5.0
"""Of CPU time; a mutant that takes six times as long by the clock waits for something that never comes."""
LONGEST_LINE = 1_000
OUTCOMES = ("accepted", "refused", "traceback", "too slow", "too large")
FAILURES = OUTCOMES[2:]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--mutants", type=int, default=2500, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this mutant of each kind alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("results/mutants"), help="folder for failures")
    parser.add_argument("--worst", action="store_true", help="the worst cases instead of mutants")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        return read_all(options.reader)
    rows = []
    for kind in options.kind:
        if options.worst:
            rows.append({"kind": kind, **worst(kind, options.keep)})
            continue
        numbers = [options.only] if options.only is not None else list(range(options.mutants))
        rows.append({"kind": kind, **count(kind, options.seed, numbers, options.workers, options.keep)})
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(aligned([list(rows[0]), *(list(row.values()) for row in rows)])))
    return int(any(row[outcome] for row in rows for outcome in FAILURES))


def count(kind: str, seed: int, numbers: list[int], workers: int, keep: Path) -> dict[str, int]:
    """Outcomes of the mutants of these numbers; those that failed are kept."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="wirepaint-mutants-") as scratch:
        originals = Path(scratch) / "originals"
        originals.mkdir()
        KINDS[kind].originals(originals)
        shares = [numbers[start::workers] for start in range(min(workers, len(numbers)))]
        with ThreadPoolExecutor(len(shares)) as pool:
            jobs = [
                pool.submit(_share, kind, seed, share, originals, Path(scratch) / str(n), keep)
                for n, share in enumerate(shares)
            ]
            for job in jobs:
                counts += job.result()
    return {"mutants": len(numbers), **{outcome: counts[outcome] for outcome in OUTCOMES}}


def worst(kind: str, keep: Path) -> dict[str, int]:
    """Outcomes of the worst cases; says on stderr what came of each."""
    counts: Counter[str] = Counter()
    cases = CASES.get(kind, {})
    with tempfile.TemporaryDirectory(prefix="wirepaint-mutants-") as scratch:
        originals, work = Path(scratch) / "originals", Path(scratch) / "work"
        originals.mkdir()
        KINDS[kind].originals(originals)
        for name, write in cases.items():
            folder = work / "mutant"
            folder.mkdir(parents=True)
            path = write(folder)
            reader = Reader(kind, originals, work)
            outcome, text = reader.read(path)
            seconds, memory = reader.spent
            reader.end()
            counts[outcome] += 1
            print(f"{kind}: {name}: {outcome}, {seconds:.1f} s, {memory} MiB: {text[-150:]}", file=sys.stderr)
            shutil.rmtree(folder)
    return {"mutants": len(cases), **{outcome: counts[outcome] for outcome in OUTCOMES}}


def _share(kind: str, seed: int, numbers: list[int], originals: Path, work: Path, keep: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    reader = Reader(kind, originals, work)
    try:
        for number in numbers:
            folder = work / "mutant"
            path = _mutant(kind, seed, number, originals, folder)
            outcome, text = reader.read(path)
            counts[outcome] += 1
            if outcome in FAILURES:
                kept = keep / f"{kind}-{seed}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(folder, kept)
                (kept / "outcome.txt").write_text(f"{outcome}\n{text}\n", errors="backslashreplace")
                print(
                    f"{kind} {number}: {outcome}: {text.splitlines()[-1][:200] if text else ''}",
                    file=sys.stderr,
                )
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        reader.end()
    return counts


def _mutant(kind: str, seed: int, number: int, originals: Path, folder: Path) -> Path:
    """Writes a mutant into ``folder``; returns the path to read."""
    random = Random(f"{kind} {seed} {number}")
    original = random.choice(sorted(originals.iterdir()))
    folder.mkdir(parents=True)
    path = folder / original.name
    if original.is_dir():
        shutil.copytree(original, path)
    else:
        shutil.copy(original, path)
    mutate(path, random)
    return path / KINDS[kind].reads if KINDS[kind].reads else path


@dataclass
class Reader:
    """A process that reads one mutant after the other; one that died or took too long is replaced."""

    kind: str
    originals: Path
    work: Path
    process: subprocess.Popen[bytes] | None = None
    buffer: bytes = b""
    spent: tuple[float, int] = (0.0, 0)
    """CPU seconds and MiB of the last mutant that came to an end."""

    def read(self, path: Path) -> tuple[str, str]:
        """Outcome of a mutant, and its message."""
        if self.process is None:
            self._start()
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        began, spent = time.monotonic(), _cpu_seconds(self.process.pid)
        while (line := self._line(0.1)) is None or line == b"next":
            if line is not None:
                began, spent = time.monotonic(), _cpu_seconds(self.process.pid)
                continue
            busy = _cpu_seconds(self.process.pid) - spent
            if self.process.poll() is not None:
                code = self.process.returncode
                self.end()
                return ("too large" if code == -signal.SIGABRT else "traceback"), f"it ended with {code}"
            if busy > SECONDS or time.monotonic() - began > 6 * SECONDS:
                self.end()
                return "too slow", f"{busy:.1f} s of CPU time"
        outcome, text, *spent = json.loads(line)
        self.spent = spent[0], spent[1]
        if outcome in FAILURES:
            self.end()
        return outcome, text

    def end(self) -> None:
        """Ends the process."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            self.process, self.buffer = None, b""

    def _start(self) -> None:
        (self.work / "run").mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--reader", self.kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.work / "run",
            env=os.environ
            | {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
            | {"XDG_CACHE_HOME": str(self.work / "run" / "cache"), "MUTATE_ORIGINALS": str(self.originals)},
        )
        deadline = time.monotonic() + 120
        while self._line(1.0) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the originals of {self.kind} are not accepted")

    def _line(self, seconds: float) -> bytes | None:
        assert self.process is not None and self.process.stdout is not None
        if b"\n" not in self.buffer and select.select([self.process.stdout], [], [], seconds)[0]:
            self.buffer += os.read(self.process.stdout.fileno(), 2**16)
        line, end, rest = self.buffer.partition(b"\n")
        if not end:
            return None
        self.buffer = rest
        return line


def _cpu_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


# In the process of a reader. A verb yields where a user would give the next command: each has its own time.


def read_all(kind: str) -> int:
    """Reads the originals, then what stdin names, one path a line; says on stdout what came of each."""
    door = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    verb = VERBS[kind]
    for original in sorted(Path(os.environ["MUTATE_ORIGINALS"]).iterdir()):
        for _ in verb(original / KINDS[kind].reads if KINDS[kind].reads else original):
            pass
        _clean()
    _limit()
    print("ready", file=door)
    for line in sys.stdin.buffer:
        path = Path(os.fsdecode(line.rstrip(b"\n")))
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory is that from now on
        before, began = _memory("VmRSS"), time.process_time()
        outcome, text = _outcome(verb(path), lambda: print("next", file=door))
        spent = time.process_time() - began, (_memory("VmHWM") - before) // 2**20
        if {path.name for path in Path("..").iterdir()} != {"mutant", "run"} and outcome in (
            "accepted",
            "refused",
        ):
            outcome, text = "traceback", "it wrote outside of its folder"
        _clean()
        print(json.dumps([outcome, text, *spent]), file=door)
    return 0


def _outcome(commands: Iterator[None], between: Callable[[], None]) -> tuple[str, str]:
    from wirepaint.errors import WirepaintError

    try:
        for _ in commands:
            between()
    except WirepaintError as error:
        text = str(error)
        if error.exit_code != 2 or "\n" in text or len(text) > LONGEST_LINE or not text.isprintable():
            return "traceback", f"not one line with exit code 2: {type(error).__name__}: {text[:3000]}"
        return "refused", text
    except MemoryError:
        return "too large", traceback.format_exc()[-3000:]
    except BaseException:
        return "traceback", traceback.format_exc()[-3000:]
    return "accepted", ""


def _memory(name: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) * 1024


def _limit() -> None:
    now = _memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    # What a page may write: nothing of a bomb reaches the disk whole.
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _clean() -> None:
    shutil.rmtree("out", ignore_errors=True)
    shutil.rmtree("cache", ignore_errors=True)


def _load(page: Path) -> Iterator[None]:
    from wirepaint.pages import load, prepare, show
    from wirepaint.pages.loading import load_graph

    load_graph(prepare(page, Path("cache/pages")), (1280, 800))
    yield
    for line in show.lines(load(page), 120, whole=True, paint=lambda text, _: text):
        if not line.isprintable():
            raise ValueError(f"a line that a terminal may take for commands: {line[:200]!r}")


def _recording(path: Path) -> Iterator[None]:
    from wirepaint.pages import import_har

    import_har(path, Path("out"))
    yield
    yield from _load(Path("out"))


def _page(path: Path) -> Iterator[None]:
    from wirepaint.evaluation import pages
    from wirepaint.pages import secure

    found = pages.resolve(str(path), Path.cwd(), "page")
    yield
    yield from _load(found.folder)
    if found.plain:
        yield
        yield from _load(secure.secured(found.folder))


def _evaluation(path: Path) -> Iterator[None]:
    from wirepaint.evaluation import network, plan

    network._opportunities.cache_clear()
    plan(path)
    yield


def _results(path: Path) -> Iterator[None]:
    from wirepaint.results import Results

    results = Results.open(path)
    results.runs()
    results.attempts()
    results.fidelity()
    results.calibrations()
    results.all("page", ("valid", "suspect", "invalid"), warmup=True)
    yield


def _trace(path: Path) -> Iterator[None]:
    from wirepaint.evaluation import network

    network._opportunities.cache_clear()
    file = Path("network.toml")
    file.write_text(f'title = "Own"\n[down]\ntrace = {json.dumps(str(path))}\n[up]\n')
    network.load(str(file.absolute())).fingerprint()
    yield


VERBS: dict[str, Callable[[Path], Iterator[None]]] = {
    "har": _recording,
    "page": _page,
    "evaluation": _evaluation,
    "archive": _recording,
    "devtools": _recording,
    "results": _results,
    "trace": _trace,
}


if __name__ == "__main__":
    sys.exit(main())
