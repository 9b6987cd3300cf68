"""The proxies split and pep beside squid, on loopback: throughput on one core, idle latency, a crowd.

    sudo .venv/bin/python benches/proxy.py [--program PATH] [--json] [--mib N]

Each proxy has the first CPU to itself, the two sides of the pep share it; origin and client have the others.
Throughput is one answer of many bytes over one connection. Latency is the median time of a small exchange on
a persistent connection, less the median without a proxy. To reach on a quiet machine: 2 Gbit/s, 0.2 ms.
Compare ratios: absolute figures belong to this machine at this moment. `relay` stands for the machine: a
process that waits, receives and sends, and nothing else. What it adds is the time to wake it twice.

The crowd is 500 flows at once (crowd.py): every byte that an end-to-end path would deliver is compared with
what the origin sent, and the most memory of each side is told.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import crowd

from wirepaint.dataplane.description import Host, Origin, Pep, Run, Sending, Site, Split
from wirepaint.runners.testbed import process, squid

ORIGIN = "127.0.77.1"
EXCHANGES = 2000
MIB = 2**20
BUFFER = memoryview(bytearray(MIB))
STARTS = {
    "split": [("split", "--host", "near")],
    "pep": [("pep", "--side", "ground"), ("pep", "--side", "remote")],
}
"""Verbs of each proxy, in the order of their start."""
Row = dict[str, Any]
Request = Callable[[str], bytes]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


def serve(listener: socket.socket, body: Path) -> None:
    """Answers ``/big`` with a file and everything else with some bytes."""

    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as lines, body.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            with suppress(ConnectionResetError):  # a proxy that ends has answers under way
                while request := lines.readline():
                    while lines.readline().strip():
                        pass
                    if b"/big" in request:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                        connection.sendfile(file, 0)
                    else:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + bytes(100))

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def relay(listener: socket.socket, target: tuple[str, int]) -> None:
    """What comes from one client goes on to the target, and back; on the first CPU, as the proxies."""
    os.sched_setaffinity(0, {0})
    client, _ = listener.accept()
    with client, socket.create_connection(target) as server, select.epoll() as poll:
        ways = {client.fileno(): (client, server), server.fileno(): (server, client)}
        for number, (source, _) in ways.items():
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(number, select.EPOLLIN)
        while True:
            for number, _ in poll.poll():
                source, sink = ways[number]
                if not (taken := source.recv_into(BUFFER)):
                    return
                sink.sendall(BUFFER[:taken])


def exchange(connection: socket.socket, request: bytes) -> int:
    """Sends a request and takes its answer; returns the bytes of its body."""
    connection.sendall(request)
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        if not part:
            raise RuntimeError("the connection ended before the answer")
        head += part
    head, _, rest = head.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = left = int(fields[b"content-length"])
    left -= len(rest)
    while left:
        # The kernel drops the bytes: the client should not be the bottleneck.
        taken = connection.recv_into(BUFFER, min(left, MIB), socket.MSG_TRUNC)
        if not taken:
            raise RuntimeError(f"{left} of {length} bytes are missing")
        left -= taken
    return length


def measured(name: str, address: tuple[str, int], request: Request) -> Row:
    """Throughput in Gbit/s and the median time of an exchange in ms."""
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(EXCHANGES):
            began = time.perf_counter()
            exchange(connection, request("/small"))
            times.append(time.perf_counter() - began)
        exchange(connection, request("/big"))
        began = time.perf_counter()
        size = exchange(connection, request("/big"))
        took = time.perf_counter() - began
    return {"name": name, "gbit_per_s": size * 8 / took / 1e9, "median_ms": statistics.median(times) * 1e3}


def plain(path: str) -> bytes:
    """A request to an origin, or to a proxy that stands in its place."""
    return f"GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode()


def description(folder: Path, port: int, listen_port: int, kind: str) -> Run:
    """A run with a proxy on loopback: clients connect to ``port``, the origin listens on ``listen_port``."""
    here = "127.0.0.1"
    sending = Sending(congestion="reno")
    return Run(
        id="bench",
        trace_dir=folder,
        work_dir=folder,
        hosts=[
            Host(name="client", role="client", congestion="reno", address=here),
            Host(name="near", role="proxy", congestion="reno", upstream=sending),
            Host(name="far", role="proxy", congestion="reno", address=here, upstream=sending),
            Host(name="server", role="server", congestion="reno"),
        ],
        proxies=[
            Split(host="near", buffer_bytes=256 * 1024)
            if kind == "split"
            else Pep(
                remote="near",
                ground="far",
                port=free_port(),
                connections=1,
                multiplexed=True,
                compression="none",
                schedule="fair",
                ahead="none",
                buffer_bytes=16 * MIB,
            )
        ],
        sites={
            "a": Site(
                origins=[
                    Origin(address=ORIGIN, port=port, encrypted=False, host="a.test", listen_port=listen_port)
                ],
                responses=[],
            )
        },
    )


@contextmanager
def running(program: Path, run: Run, *argument: str) -> Iterator[int]:
    """A verb of the data plane on the first CPU, ready; its process."""
    file = run.write()
    command = ["taskset", "-c", "0", program, argument[0], file, *argument[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            if '"ready"' not in child.stdout.readline():
                raise RuntimeError(f"{argument[0]} did not start")
            yield child.pid
        finally:
            child.terminate()
            child.communicate()


@contextmanager
def running_squid(folder: Path, port: int) -> Iterator[None]:
    """Squid without a cache on the first CPU, as an ordinary user."""
    options = squid.Options("127.0.0.1", port, {"a.test": ORIGIN}, "none", 0)
    (folder / "hosts").write_text(f"{ORIGIN} a.test\n")
    (folder / "squid.conf").write_text(squid.configuration(options, folder))
    os.chown(folder, process.ORDINARY_USER, process.ORDINARY_USER)
    command = ["taskset", "-c", "0", squid.PROGRAM, "-N", "-f", folder / "squid.conf"]
    user = process.ORDINARY_USER
    with subprocess.Popen(command, user=user, group=user, cwd=folder, stderr=subprocess.DEVNULL) as child:
        try:
            deadline = time.monotonic() + squid.START_S
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if time.monotonic() > deadline or child.poll() is not None:
                    raise RuntimeError("squid did not start")
                time.sleep(0.05)
            yield
        finally:
            child.kill()


def rows(program: Path, folder: Path, mib: int) -> Iterator[Row]:
    """One row without a proxy, then one for each."""
    body = folder / "body"
    with body.open("wb") as file:
        file.truncate(mib * MIB)
    listener = socket.create_server((ORIGIN, 0))
    direct = listener.getsockname()
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {0} or {0})
    multiprocessing.Process(target=serve, args=(listener, body), daemon=True).start()
    yield measured("direct", direct, plain)
    for kind, starts in STARTS.items():
        port = free_port()
        run = description(folder, port, direct[1], kind)
        with ExitStack() as parts:
            for start in starts:
                parts.enter_context(running(program, run, *start))
            yield measured(kind, (ORIGIN, port), plain)
    between = socket.create_server((ORIGIN, 0))
    multiprocessing.Process(target=relay, args=(between, direct), daemon=True).start()
    yield measured("relay", between.getsockname(), plain)
    if shutil.which(squid.PROGRAM):
        port = free_port()
        absolute = f"http://a.test:{direct[1]}"
        with tempfile.TemporaryDirectory() as own, running_squid(Path(own), port):
            yield measured(
                "squid",
                ("127.0.0.1", port),
                lambda path: f"GET {absolute}{path} HTTP/1.1\r\nHost: a.test:{direct[1]}\r\n\r\n".encode(),
            )


def crowds(program: Path, folder: Path) -> Iterator[Row]:
    """One row of a crowd for each proxy."""
    listener = socket.create_server((ORIGIN, 0), backlog=crowd.FLOWS)
    multiprocessing.Process(target=crowd.serve, args=(listener,), daemon=True).start()
    for kind, starts in STARTS.items():
        port = free_port()
        description_of = description(folder, port, listener.getsockname()[1], kind)
        with ExitStack() as parts:
            sides = [parts.enter_context(running(program, description_of, *start)) for start in starts]
            compared, took = crowd.run((ORIGIN, port))
            peaks = [crowd.peak_mb(side) for side in sides]
        yield {"name": kind, "compared_mb": compared / 1e6, "seconds": took, "peak_mb": peaks}


def main() -> None:
    """Prints tables, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    usual = Path(__file__).parents[1] / ".venv/bin/wirepaint-dataplane"
    parser.add_argument("--program", type=Path, default=usual)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mib", type=int, default=1024, help="size of the large answer")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        found = list(rows(arguments.program, Path(folder), arguments.mib))
        crowded = list(crowds(arguments.program, Path(folder)))
    direct = found[0]["median_ms"]
    for row in found[1:]:
        row["added_ms"] = row["median_ms"] - direct
    bare = next(row for row in found if row["name"] == "relay")
    peer = next((row for row in found if row["name"] == "squid"), None)
    if arguments.json:
        return print(json.dumps({"alone": found, "crowd": crowded}, indent=2))
    print("proxy   Gbit/s  added ms  added/relay  rate/squid  added/squid")
    for row in found[1:]:
        beside = (
            f"{row['gbit_per_s'] / peer['gbit_per_s']:10.2f}  {row['added_ms'] / peer['added_ms']:11.2f}"
            if peer
            else ""
        )
        ratio = row["added_ms"] / bare["added_ms"]
        print(f"{row['name']:6}  {row['gbit_per_s']:6.2f}  {row['added_ms']:8.3f}  {ratio:11.2f}  {beside}")
    print(f"without a proxy: {found[0]['gbit_per_s']:.2f} Gbit/s, {direct:.3f} ms")
    for row in crowded:
        peaks = " and ".join(f"{peak:.1f} MB" for peak in row["peak_mb"])
        print(
            f"{crowd.FLOWS} flows through {row['name']}: {row['compared_mb']:.0f} MB as sent, "
            f"in {row['seconds']:.1f} s; at most {peaks} of memory"
        )
    return None


if __name__ == "__main__":
    main()
