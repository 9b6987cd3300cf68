"""wirepaint's assumptions about congestion controls and initial windows in Linux.

Each test states one assumption. If it fails on a kernel, runs there are wrong in the way of the
test's name; `wirepaint doctor` sends its users here.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wirepaint.dataplane import program
from wirepaint.dataplane.description import Congestion, Run
from wirepaint.errors import MachineLacks
from wirepaint.runners.testbed.namespaces import CLIENT_ADDRESS, Namespaces, build

pytestmark = pytest.mark.usefixtures("root")

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
ADDRESS = "10.65.0.1"
ORDINARY_USER = 65534
TCP_INFO_SND_CWND = 80  # offset of tcpi_snd_cwnd in struct tcp_info

Load = Callable[..., tuple[str, subprocess.Popen[str]]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads a congestion control; returns its name and the process that holds it."""
    try:
        executable = program()
    except MachineLacks as missing:
        pytest.skip(str(missing))
    holders: list[subprocess.Popen[str]] = []

    def start(algorithm: str, /, **more: Any) -> tuple[str, subprocess.Popen[str]]:
        name = f"{algorithm}.{random.randrange(16**6):06x}"
        entry = Congestion(**({"algorithm": algorithm, "name": name} | more))
        run = Run(id="belief", trace_dir=tmp_path, work_dir=tmp_path, congestion=[entry])
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(run.document()))
        holder = subprocess.Popen(
            [executable, "cc", "load", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        holders.append(holder)
        assert holder.stdout is not None
        line = holder.stdout.readline()
        if not line:
            holder.wait()
            return "", holder
        assert json.loads(line)["loaded"][0]["name"] == entry.name
        return entry.name, holder

    yield start
    for holder in holders:
        holder.kill()
        holder.wait()


@pytest.fixture
def paths() -> Iterator[Namespaces]:
    """A bare veth pair between two namespaces of our own."""
    made = Namespaces.create()
    try:
        build(made, [ADDRESS], initial_window=27, emulated=False)
        yield made
    finally:
        made.close()


def available() -> list[str]:
    return AVAILABLE.read_text().split()


def gone(name: str, within_s: float = 3.0) -> bool:
    deadline = time.monotonic() + within_s
    while name in available():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def choose(sock: socket.socket, name: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def chosen(sock: socket.socket) -> str:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()


@contextlib.contextmanager
def connected(paths: Namespaces, congestion: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's accepted socket, whose listener chose ``congestion``, and the client's."""
    with paths.inside(paths.server):
        listener = socket.socket()
    with paths.inside(paths.client):
        client = socket.socket()
    with listener, client:
        choose(listener, congestion)
        listener.bind((ADDRESS, 0))
        listener.listen()
        client.connect(listener.getsockname())
        server, peer = listener.accept()
        assert peer[0] == CLIENT_ADDRESS
        with server:
            yield server, client


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Drops the rights of this thread for the body."""
    os.seteuid(ORDINARY_USER)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_accepted_socket_inherits_the_listeners_congestion_control(paths: Namespaces, load: Load) -> None:
    name, _ = load("fld")
    for congestion in ("reno", name):
        with connected(paths, congestion) as (server, client):
            assert chosen(server) == congestion
            assert chosen(client) == "reno"


def test_names_of_congestion_controls_are_the_same_in_every_network_namespace(
    paths: Namespaces, load: Load
) -> None:
    name, _ = load("std")
    for namespace in (paths.home, paths.server, paths.client):
        with paths.inside(namespace), socket.socket() as sock:
            choose(sock, name)
            assert chosen(sock) == name


def test_the_routes_initial_window_is_what_tcp_info_reports(paths: Namespaces) -> None:
    with connected(paths, "reno") as (server, _):
        info = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 280)
        assert struct.unpack_from("I", info, TCP_INFO_SND_CWND)[0] == 27


def test_a_name_of_15_characters_is_taken_and_one_of_16_is_refused(load: Load) -> None:
    longest = f"fld{random.randrange(16**12):012x}"
    assert load("fld", name=longest)[0] == longest
    assert longest in available()
    _, holder = load("fld", name=longest + "x")
    assert holder.returncode == 2
    assert holder.stderr is not None
    assert "congestion[0].name" in holder.stderr.read()


def test_a_loaded_congestion_control_vanishes_with_its_loader_however_it_dies(load: Load) -> None:
    for killer in (signal.SIGTERM, signal.SIGKILL):
        name, holder = load("fld")
        assert name in available()
        holder.send_signal(killer)
        assert gone(name), f"{name} outlived {killer.name}"
        holder.wait()


def test_a_living_socket_keeps_its_congestion_control_and_new_ones_do_not_get_it(
    paths: Namespaces, load: Load
) -> None:
    name, holder = load("fld")
    with connected(paths, name) as (server, client):
        holder.kill()
        assert gone(name)
        server.sendall(bytes(100_000))
        client.settimeout(5)
        received = 0
        while received < 100_000:
            received += len(client.recv(100_000))
        assert chosen(server) == name
        with socket.socket() as late, pytest.raises(FileNotFoundError):
            choose(late, name)


def test_an_ordinary_user_may_choose_ours_and_may_not_choose_a_restricted_one(load: Load) -> None:
    name, _ = load("std")
    restricted = [other for other in available() if other not in ALLOWED.read_text().split()]
    with ordinary_user(), socket.socket() as sock:
        choose(sock, name)
        assert chosen(sock) == name
        for other in restricted:
            with pytest.raises(PermissionError):
                choose(sock, other)
        assert chosen(sock) == name


def test_a_name_that_is_taken_is_refused(load: Load) -> None:
    name, _ = load("fld")
    second, holder = load("std", name=name)
    assert second == ""
    assert holder.returncode == 2
    assert holder.stderr is not None
    assert "a name that no congestion control of this host has" in holder.stderr.read()
    assert name in available()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"algorithm": "nonsense"}, 'congestion[0].algorithm: found "nonsense", accepted: '),
        ({"algorithm": "reno"}, 'congestion[0].algorithm: "reno" is built into this kernel'),
        ({"parameters": {"fld_gate": 99}}, "congestion[0].parameters: fld_gate: found 99, accepted: 0 to 16"),
        ({"parameters": {"gate": 1}}, 'fld has no parameter "gate", accepted: fld_threshold'),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(
    load: Load, entry: dict[str, object], said: str
) -> None:
    before = available()
    _, holder = load("fld", **entry)
    assert holder.returncode == 2
    assert holder.stderr is not None
    message = holder.stderr.read()
    assert said in message and message.count("\n") == 1
    assert available() == before


def test_a_congestion_control_is_not_refused_by_a_namespaces_default(paths: Namespaces, load: Load) -> None:
    """Ours is unrestricted, so a namespace may make it the default; reading back proves it."""
    name, _ = load("std")
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    with paths.inside(paths.server):
        default.write_text(name)
        assert default.read_text().strip() == name
        with socket.socket() as sock:
            assert chosen(sock) == name
        default.write_text("reno")
