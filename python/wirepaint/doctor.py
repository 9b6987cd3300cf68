"""Checks what can run on this machine, and how to fix the rest. Changes nothing, needs no rights.

Each check tries the facility itself if that is harmless (in a child that ends at once), else it reads
the kernel's own information. A check returns a ``Finding``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from wirepaint import dataplane
from wirepaint.columns import aligned, coloured
from wirepaint.errors import MachineLacks, WirepaintError

Level = Literal["ok", "note", "missing"]
"""``missing`` prevents the testbed from running; ``note`` makes its results worse."""

Backend = Literal["testbed", "simulator"]

WITHOUT_ROOT = (
    "run --backend simulator",
    "init",
    "agree",
    "check",
    "explain",
    "figure",
    "list",
    "metric list",
    "metric show",
    "metric trust",
    "page import",
    "page record",
    "page rehearse",
    "page shape",
    "page show",
    "page list",
    "network list",
    "network show",
    "compare",
    "flows",
    "users",
    "report",
    "export",
    "verify",
    "study",
    "cc list",
    "cc show",
    "cc new",
    "cc test --arm native",
    "worker",
)
_BTF = Path("/sys/kernel/btf/vmlinux")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}
_LATE_NS = 1_000_000
"""Wake-ups later than this at p99 would make runs suspect."""


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``remedy`` says how to fix it."""

    name: str
    level: Level
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Findings:
    """All findings."""

    checks: list[Finding]

    def can(self, backend: Backend) -> bool:
        """Whether a back end can run here."""
        return not self.lacking(backend)

    def lacking(self, backend: Backend) -> list[Finding]:
        """The findings that prevent a back end from running here; the simulator only needs the program."""
        missing = [check for check in self.checks if check.level == "missing"]
        return [check for check in missing if backend == "testbed" or check.name == "data plane"]

    def as_json(self) -> dict[str, Any]:
        return {
            "testbed": self.can("testbed"),
            "simulator": self.can("simulator"),
            "without_root": list(WITHOUT_ROOT),
            "checks": [asdict(check) for check in self.checks],
        }


def examine() -> Findings:
    """Carries out all checks, in under two seconds."""
    before = _cpu_times()
    checks = [found for check in _CHECKS for found in check()]
    return Findings([*checks, _steal(before)])


def show(findings: Findings, to: TextIO) -> None:
    """Prints the findings as a table."""
    for backend in ("testbed", "simulator"):
        print(f"The {backend} {'can' if findings.can(backend) else 'cannot'} run here.", file=to)
    print(f"Without root these work: {', '.join(WITHOUT_ROOT)}.\n", file=to)
    rows = aligned([(check.level, check.name, check.found) for check in findings.checks])
    for row, check in zip(rows, findings.checks, strict=True):
        print(row.replace(check.level, coloured(check.level, to), 1), file=to)
        if check.remedy:
            print(f"{'':{row.index(check.found)}}{check.remedy}", file=to)


def _rights() -> Iterator[Finding]:
    status = Path("/proc/self/status").read_text()
    effective = int(re.search(r"CapEff:\s*([0-9a-f]+)", status)[1], 16)  # type: ignore[index]
    lacking = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
    if os.geteuid() != 0:
        found = f"ordinary user (uid {os.geteuid()})"
        yield Finding("rights", "missing", found, "The testbed needs root: use sudo.")
    elif lacking:
        remedy = "Give the container these capabilities (--privileged)."
        yield Finding("rights", "missing", f"root without {', '.join(lacking)}", remedy)
    else:
        yield Finding("rights", "ok", "root")


def _kernel_facilities() -> Iterator[Finding]:
    from wirepaint import linux

    kinds = linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC

    def packet_socket() -> None:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()

    yield _tried("namespaces", lambda: linux.unshare(kinds), "network, process, mount, IPC")
    yield _tried("packet sockets", packet_socket, "AF_PACKET")
    yield _tried("BPF", _make_bpf_map, "bpf(2)")


def _tried(name: str, attempt: Callable[[], None], what: str) -> Finding:
    cause = _in_child(attempt)
    if cause is None:
        return Finding(name, "ok", what)
    return Finding(name, "missing", f"{what}: {cause}", "Run as root, in a container with --privileged.")


def _make_bpf_map() -> None:
    """Makes a BPF array of one entry, which ends with the process."""
    number = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    if number is None:
        return
    attributes = struct.pack("5I", 2, 4, 4, 1, 0).ljust(128, b"\0")  # BPF_MAP_TYPE_ARRAY, key, value, entries
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 0, attributes, len(attributes)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _kernel_types() -> Iterator[Finding]:
    try:
        types = _BTF.read_bytes()
    except OSError as error:
        remedy = "A kernel with CONFIG_DEBUG_INFO_BTF=y."
        yield Finding("BTF", "missing", f"{_BTF}: {error.strerror}", remedy)
        return
    wanted = {
        "struct_ops": (b"bpf_struct_ops_link", "congestion controls of ours"),
        "tracepoints": (b"btf_trace_tcp_probe", "the sender's window"),
    }
    for name, (symbol, purpose) in wanted.items():
        if symbol in types:
            yield Finding(name, "ok", f"the kernel has {symbol.decode()}")
        else:
            remedy = f"Needed for {purpose}: Linux 6.4 or newer with BPF_SYSCALL, BPF_JIT, FTRACE."
            yield Finding(name, "missing", f"the kernel lacks {symbol.decode()}", remedy)


def _congestion() -> Iterator[Finding]:
    from wirepaint.evaluation import congestion

    kernel = congestion.of_kernel()
    try:
        ours = ", ".join(congestion.ours())
    except WirepaintError as error:
        yield Finding("congestion", "missing", " ".join(str(error).split()), "Run `make setup`.")
        return
    level = "ok" if "cubic" in kernel else "note"
    remedy = "" if level == "ok" else "modprobe tcp_cubic"
    yield Finding("congestion", level, f"kernel: {', '.join(kernel)}; ours: {ours}", remedy)


def _program() -> Iterator[Finding]:
    try:
        yield Finding("data plane", "ok", str(dataplane.program()))
    except WirepaintError as error:
        yield Finding("data plane", "missing", "not found", str(error))


def _browser() -> Iterator[Finding]:
    from wirepaint import linux
    from wirepaint.runners.testbed.browser.chromium import program

    try:
        yield Finding("browser", "ok", program.version())
    except WirepaintError as error:
        yield Finding("browser", "missing", "not found", str(error))

    def sandbox() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        linux.unshare(0x1000_0000 | linux.CLONE_NEWPID | linux.CLONE_NEWNET)

    cause = _in_child(sandbox)
    if cause is None:
        yield Finding("sandbox", "ok", "user namespaces for an ordinary user")
    else:
        remedy = "sysctl user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0"
        yield Finding("sandbox", "missing", cause, f"The browser's sandbox needs it: {remedy}")


def _captures() -> Iterator[Finding]:
    from wirepaint.runners.testbed import capture

    try:
        yield Finding("captures", "ok", capture.version())
    except MachineLacks as error:
        yield Finding("captures", "note", error.what, error.remedy)


def _proxy() -> Iterator[Finding]:
    from wirepaint.runners.testbed import squid

    try:
        yield Finding("proxy", "ok", f"squid {squid.version()}")
    except MachineLacks as lacking:
        yield Finding("proxy", "note", lacking.what, f"Scenarios with a proxy need it. {lacking.remedy}")


def _iperf3() -> Iterator[Finding]:
    from wirepaint.runners.testbed import iperf3

    try:
        yield Finding("iperf3", "ok", iperf3.version())
    except MachineLacks as lacking:
        remedy = f'Flows with tool = "iperf3" need it. {lacking.remedy}'
        yield Finding("iperf3", "note", lacking.what, remedy)


def _timing() -> Iterator[Finding]:
    def real_time() -> None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))

    cause = _in_child(real_time)
    if cause is None:
        yield Finding("real time", "ok", "SCHED_FIFO 50")
    else:
        yield Finding("real time", "note", cause, "Without it the emulator is late under load; use root.")
    late = _lateness()
    text = f"wake-ups {statistics.median(late) / 1e3:.0f} µs late at p50, {late[-2] / 1e3:.0f} µs at p99"
    if late[-2] <= _LATE_NS:
        yield Finding("lateness", "ok", text)
    else:
        yield Finding(
            "lateness",
            "note",
            text,
            "The processor is busy with other things: stop them, or give it real time.",
        )


def _machine() -> Iterator[Finding]:
    from wirepaint.results import provenance

    machine = provenance.machine()
    kernel = platform.release()
    yield Finding("kernel", "ok", f"{platform.system()} {kernel}, {machine['hz']} Hz")
    cores = machine["cores"]
    remedy = "" if cores >= 2 else "Emulator and browser share one core: give the machine two."
    yield Finding("cores", "ok" if cores >= 2 else "note", str(cores), remedy)
    clock = machine["clock_source"]
    fast = clock in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")
    remedy = "" if fast else "A slow clock costs the emulator time; boot with clocksource=tsc."
    yield Finding("clock", "ok" if fast else "note", str(clock), remedy)


def _space() -> Iterator[Finding]:
    for name, path, least in (("memory", Path("/dev/shm"), 2**28), ("disk", Path.cwd(), 2**30)):
        try:
            free = shutil.disk_usage(path).free
        except OSError as error:
            yield Finding(name, "note", f"{path}: {error.strerror}")
            continue
        level = "ok" if free >= least else "note"
        remedy = "" if level == "ok" else f"Free at least {least / 2**20:.0f} MiB."
        yield Finding(name, level, f"{free / 2**30:.1f} GiB free in {path}", remedy)


def _leftovers() -> Iterator[Finding]:
    """Finds processes and BPF objects of dead commands."""
    from wirepaint.evaluation import congestion
    from wirepaint.runners import bpf, ownership

    orphans, commands = ownership.orphans(), ownership.living()
    found = [f"process {pid} ({name}) of a dead command" for pid, name in orphans]
    if not commands:
        with suppress(WirepaintError):
            found += [f"congestion control {name}" for name in congestion.registered_by_runs()]
            ours = tuple(f"{name}_" for name in congestion.ours())
            held = [name for name in bpf.struct_ops().values() if name.startswith(ours)]
            found += [f"BPF program {name}" for name in held]
    if found:
        remedy = "That is a fault of wirepaint; please report it. kill these processes."
        yield Finding("leftovers", "note", "; ".join(found), remedy)
    else:
        running = f"none; commands at work: {', '.join(map(str, commands))}" if commands else "none"
        yield Finding("leftovers", "ok", running)


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _rights,
    _kernel_facilities,
    _kernel_types,
    _congestion,
    _program,
    _browser,
    _captures,
    _proxy,
    _iperf3,
    _timing,
    _machine,
    _space,
    _leftovers,
)


def _in_child(attempt: Callable[[], None]) -> str | None:
    """Tries ``attempt`` in a child that ends at once; returns the cause if it is refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError as error:
            os.write(writer, str(error.strerror).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        cause = pipe.read().decode()
    os.waitpid(child, 0)
    return cause or None


def _lateness(count: int = 100) -> list[int]:
    """Lateness of wake-ups from 1 ms of sleep, in ns, ascending; at real-time priority if allowed."""
    late = []
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    try:
        for _ in range(count):
            due = time.monotonic_ns() + 1_000_000
            time.sleep(0.001)
            late.append(time.monotonic_ns() - due)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return sorted(late)


def _cpu_times() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def _steal(before: list[int]) -> Finding:
    from wirepaint.runners.testbed.validity import STOLEN_SHARE

    spent = [now - then for now, then in zip(_cpu_times(), before, strict=True)]
    share = spent[7] / max(sum(spent[:8]), 1)
    is_calm = share * (os.cpu_count() or 1) <= STOLEN_SHARE
    remedy = "" if is_calm else "Other guests take the processor; pages that compute much will be suspect."
    return Finding("steal", "ok" if is_calm else "note", f"{100 * share:.1f} % of the CPU time", remedy)
