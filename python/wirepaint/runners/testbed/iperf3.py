"""Flows that iperf3 carries out: a server and a client for each, and what they report in the end.

iperf3 connects twice for a flow: a control connection, then the flow's own. It tells what it did only when it
has ended, and no time of day. So the kernel is asked when the flow's connection is there; times of a flow are
exact to the period of these looks, and its intervals count from then on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirepaint.errors import MachineLacks, RunFailed
from wirepaint.runners.testbed import iperf3_reports, namespaces, process, sockets
from wirepaint.runners.testbed.browser import processes
from wirepaint.runners.testbed.iperf3_reports import Told
from wirepaint.runners.testbed.reason import Reason
from wirepaint.runners.testbed.wiring import ETHERNET_BYTES

PROGRAM = "iperf3"
FIRST_PORT = 20_001
"""Of the first flow's server; each has its own, so that a connection is known by its port."""
INTERVAL_S = "0.1"
"""As of the data plane's flows; the shortest that iperf3 takes."""
START_S = 10.0
"""Longest wait for the servers to listen."""
END_S = 5.0
"""Longest wait for an end: the message that the test is over crosses full queues."""
ENDLESS_S = 0
"""iperf3's word for no end."""
_NS = 1_000_000_000
_IP_AND_TCP_BYTES, _TIMESTAMP_BYTES, _SACK_BYTES = 40, 12, 28
"""Of a packet; the last is the most that SACK blocks add to an acknowledgement beside timestamps."""
_CONTROL_BYTES = 20_000
"""Allowance for the control connection of a flow."""
_COUNT_ERROR = 0.01


def version() -> str:
    """Version of iperf3, such as ``iperf 3.12``; raises ``MachineLacks`` without it."""
    if shutil.which(PROGRAM) is None:
        raise MachineLacks("iperf3 is not installed", "Debian: apt-get install iperf3.")
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=False, timeout=10)
    if not (found := re.match(r"iperf \S+", said.stdout)):
        raise MachineLacks(f"{PROGRAM} --version tells no version", "Debian: apt-get install iperf3.")
    return found[0]


def arguments(flow: Mapping[str, Any], server: str, port: int, congestion: str) -> list[str]:
    """The command line of a flow's client; ``flow`` is of the run description."""
    kind, stop = flow["kind"], flow.get("stop_ns")
    words = [PROGRAM, "--client", server, "--port", str(port), "--json", "--interval", INTERVAL_S]
    # Both ends get it, and the sender is the one that counts.
    words += ["--congestion", congestion, "--dscp", str(flow.get("dscp", 0))]
    if flow["sender"] == "server":
        words.append("--reverse")
    if flow.get("nodelay"):
        words.append("--no-delay")
    if kind["kind"] == "cbr":
        [rate] = kind["rates"]
        words += ["--bitrate", str(rate["bit_per_s"]), "--length", str(kind["write_bytes"])]
    if kind.get("bytes") is not None:
        return [*words, "--bytes", str(kind["bytes"])]
    return [*words, "--time", str(ENDLESS_S if stop is None else (stop - flow["start_ns"]) // _NS)]


def of_run(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The flows of a run description that iperf3 carries out."""
    return [flow for flow in run["flows"] if flow.get("tool") == PROGRAM]


class _Program:
    """A running iperf3 whose output goes to a file."""

    def __init__(self, argv: Sequence[str], namespace: int, output: Path) -> None:
        with output.open("wb") as file:
            env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(output.parent)}
            self._process = process.spawn(argv, namespace=namespace, env=env, stdout=file, stderr=file)

    def exit_code(self) -> int | None:
        """None while it runs. It is not waited for: its CPU time is read until the end of the run."""
        if self._process.returncode is not None:
            return self._process.returncode
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def spent_s(self) -> float:
        """CPU time so far."""
        return processes.cpu(self._process.pid)

    def terminate(self) -> None:
        """Asks it to tell what it did and to end."""
        if self.exit_code() is None:
            self._process.terminate()

    def has_ended_by(self, deadline: float) -> bool:
        """Waits for its end; ``deadline`` is of time.monotonic()."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(deadline - time.monotonic(), 0.0))
        return self._process.returncode is not None

    def kill(self) -> None:
        """Ends it at once if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@dataclass
class _Flow:
    """A flow and its programs."""

    asked: Mapping[str, Any]
    port: int
    congestion: str
    folder: Path
    server: _Program
    due: int | None = None
    """When its client starts, CLOCK_MONOTONIC in ns; None while it waits for another flow."""
    client: _Program | None = None
    over: int | None = None
    """When its client was found to have ended."""
    seen: dict[int, int] = field(default_factory=dict)
    """When the kernel was first found to have each of its connections, by the client's port."""

    @property
    def name(self) -> str:
        return self.asked["name"]

    @property
    def programs(self) -> list[_Program]:
        return [self.server] if self.client is None else [self.server, self.client]

    @property
    def is_connecting(self) -> bool:
        """Whether one of its two connections was not seen yet."""
        return self.client is not None and self.over is None and len(self.seen) < 2

    def why(self) -> str:
        """The last words of its programs."""
        for side in ("client", "server"):
            text = (self.folder / f"{side}.json").read_text("utf-8", "replace")
            if error := iperf3_reports.read(text).error:
                return error
            if text.strip() and not text.lstrip().startswith("{"):
                return text.strip().splitlines()[-1]
        return "it told nothing"


class Traffic:
    """The flows of a run that iperf3 carries out."""

    def __init__(
        self,
        run: Mapping[str, Any],
        paths: namespaces.Namespaces,
        inside: Mapping[str, int],
        work: Path,
    ) -> None:
        """Starts the servers at the far end of the path; ``inside`` maps clients to their namespaces.

        Raises ``RunFailed`` if a server does not listen in time.
        """
        self._run, self._inside = run, inside
        self._hosts = {host["name"]: host for host in run["hosts"]}
        self._origin = 0
        self._stopped = False
        self._flows: list[_Flow] = []
        for number, asked in enumerate(of_run(run)):
            folder = work / f"iperf3-{number}"
            folder.mkdir()
            port = FIRST_PORT + number
            listens = ["--server", "--one-off", "--bind", self._address(asked), "--port", str(port)]
            argv = [PROGRAM, *listens, "--json", "--interval", INTERVAL_S]
            server = _Program(argv, paths.far, folder / "server.json")
            congestion = asked.get("congestion") or self._hosts[asked[asked["sender"]]]["congestion"]
            self._flows.append(_Flow(asked, port, congestion, folder, server))
        # The kernel tells of a namespace whatever namespace asks later.
        self._kernel: dict[str, sockets.Sockets] = {}
        for client in {flow.asked["client"] for flow in self._flows}:
            with paths.inside(inside[client]):
                self._kernel[client] = sockets.Sockets()
        with paths.inside(paths.far):
            of_servers = sockets.Sockets()
        self._wait_listening(of_servers)

    def _address(self, asked: Mapping[str, Any]) -> str:
        return self._hosts[asked["server"]]["address"]

    def _wait_listening(self, of_servers: sockets.Sockets) -> None:
        ports = {flow.port for flow in self._flows}
        deadline = time.monotonic() + START_S
        while not ports <= {report.ends.local_port for report in of_servers.reports(sockets.LISTEN)}:
            self.check()
            if time.monotonic() > deadline:
                raise RunFailed(f"iperf3's servers do not listen after {START_S:g} s")
            time.sleep(0.02)
        of_servers.close()

    @property
    def is_awaited(self) -> bool:
        """Whether a run waits for one of the flows."""
        return any(not flow.asked["background"] for flow in self._flows)

    def begin(self, origin: int) -> None:
        """The times of the flows count from ``origin``, CLOCK_MONOTONIC in ns."""
        self._origin = origin
        for flow in self._flows:
            if flow.asked.get("after") is None:
                flow.due = origin + flow.asked["start_ns"]

    def look(self) -> None:
        """Starts the clients whose time has come, and looks at the others; ``RunFailed`` if one failed."""
        now = time.monotonic_ns()
        for flow in self._flows:
            if flow.client is None and flow.due is not None and flow.due <= now:
                argv = arguments(flow.asked, self._address(flow.asked), flow.port, flow.congestion)
                namespace = self._inside[flow.asked["client"]]
                flow.client = _Program(argv, namespace, flow.folder / "client.json")
            elif flow.client is None or flow.over is not None:
                continue
            elif (code := flow.client.exit_code()) is not None:
                self._ended(flow, code, now)
        self._see(now)

    def _see(self, now: int) -> None:
        """Asks the kernel for new connections, while some flow has not both of its own."""
        connecting = {flow.port: flow for flow in self._flows if flow.is_connecting}
        for client in {flow.asked["client"] for flow in connecting.values()}:
            for report in self._kernel[client].reports(sockets.ESTABLISHED):
                if (flow := connecting.get(report.ends.remote_port)) is not None:
                    flow.seen.setdefault(report.ends.local_port, now)

    def _ended(self, flow: _Flow, code: int, now: int) -> None:
        if code:
            raise RunFailed(f"iperf3 of flow {flow.name} ended under way with {code}: {flow.why()}")
        flow.over = now
        for other in self._flows:
            if other.asked.get("after") == flow.name:
                other.due = now + other.asked["start_ns"]

    def check(self) -> None:
        """Raises ``RunFailed`` if a server has ended before its client."""
        for flow in self._flows:
            if flow.over is None and (code := flow.server.exit_code()):
                raise RunFailed(f"iperf3's server of flow {flow.name} ended with {code}: {flow.why()}")

    def has_ended(self) -> bool:
        """True once all flows have ended that a run waits for, or all where it waits for none.

        Also when the time of the run is up.
        """
        if time.monotonic_ns() >= self._origin + self._run["until_ns"]:
            return True
        awaited = [flow for flow in self._flows if not flow.asked["background"]]
        return all(flow.over is not None for flow in awaited or self._flows)

    def spent_s(self) -> float:
        """CPU time so far of all clients and servers."""
        return sum(program.spent_s() for flow in self._flows for program in flow.programs)

    def stop(self) -> Told:
        """Ends what still runs; returns what the flows told. ``RunFailed`` if one does not end."""
        end = time.monotonic_ns()
        for flow in self._flows:
            if flow.client is not None:
                flow.client.terminate()
        deadline = time.monotonic() + END_S
        for flow in self._flows:
            # A server ends by the word of its client; one without a client has to be told.
            if flow.client is None or not all(one.has_ended_by(deadline) for one in flow.programs):
                flow.server.terminate()
        deadline = time.monotonic() + END_S
        if late := [f.name for f in self._flows if not all(one.has_ended_by(deadline) for one in f.programs)]:
            raise RunFailed(f"iperf3 of flow {late[0]} did not end within {2 * END_S:g} s")
        return self._told(end)

    def kill(self) -> None:
        """Ends all processes at once."""
        for flow in self._flows:
            for program in flow.programs:
                program.kill()

    def _told(self, end: int) -> Told:
        epoch = self._run["epoch_ns"]
        told = Told(self._origin - epoch, end - epoch)
        for flow in self._flows:
            if flow.client is None:
                continue
            client, server = (
                iperf3_reports.read((flow.folder / f"{side}.json").read_text("utf-8", "replace"))
                for side in ("client", "server")
            )
            if client.port is None:
                told.unconnected += 1
                continue
            opened = flow.seen.get(client.port, flow.over or end) - epoch
            told.add(
                iperf3_reports.Exchange(
                    flow.asked, self._hosts, flow.port, opened, client, server, is_over=flow.over is not None
                )
            )
        return told


def check(told: Told | None, run: Mapping[str, Any], emulator: Mapping[str, Any] | None) -> Iterator[Reason]:
    """iperf3 counted what the emulator carried: at least what the receivers read.

    Where all flows are its own, at most what the senders wrote and sent again. Others' payload cannot be told
    from its own.
    """
    if told is None or not emulator:
        return
    alone = not run["visits"] and len(of_run(run)) == len(run["flows"])
    timestamps = str(run["transport"]["sysctls"].get("net.ipv4.tcp_timestamps", "1")) != "0"
    headers = _IP_AND_TCP_BYTES + _TIMESTAMP_BYTES * timestamps
    for side in ("down", "up"):
        counted, received = emulator[side], told.received[side]
        packets = counted["delivered_packets"]
        overhead = run["segments"][0][side].get("overhead_bytes", ETHERNET_BYTES)
        carried = counted["delivered_bytes"] - (overhead + headers) * packets
        # The smallest packets have no timestamps.
        allowed = _CONTROL_BYTES * len(told.exchanges)
        most = told.sent[side] * (1 + _COUNT_ERROR) + allowed + _SACK_BYTES * packets
        if received > carried + allowed:
            found = f"{received} bytes received {side}, where the emulator carried {carried} of payload"
            yield Reason("iperf3", "invalid", found, "at most what the emulator carried")
        elif alone and carried > most:
            found = f"{told.sent[side]} bytes sent {side}, where the emulator carried {carried} of payload"
            yield Reason("iperf3", "invalid", found, "what the emulator carried")
