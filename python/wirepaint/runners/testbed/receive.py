"""Moves the receive processing of a device (the hosts' TCP input) away from the emulator.

By default it runs on the CPU and in the task that sent the packet: the emulator's.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from wirepaint import linux
from wirepaint.runners.testbed import cells


def on_other_cpus(name: str) -> None:
    """Moves receive processing to all CPUs but the last one, the emulator's (receive packet steering).

    It then runs as a software interrupt on top of whatever task runs there.
    """
    _set_queue(name, "queues/rx-0/rps_cpus", f"{(1 << other_cpus()) - 1:x}")


def on_a_thread(name: str) -> bool:
    """Moves receive processing to a kernel thread of real-time priority (threaded NAPI), if the kernel can.

    The device must be up and have generic receive offload, which turns on NAPI. Needs Linux 6.8, to ask
    for the thread, and the first PID namespace or a launcher there. False if the kernel
    cannot; then nothing was changed.
    """
    try:
        _set_queue(name, "threaded", "1")
    except OSError:
        return False
    with suppress(OSError, NetlinkError, LookupError):
        if cells.make_realtime(thread_of(name), other_cpus()):
            return True
    _set_queue(name, "threaded", "0")
    return False


def other_cpus() -> int:
    """Number of CPUs without the emulator's."""
    return max((os.cpu_count() or 1) - 1, 1)


def _set_queue(name: str, file: str, value: str) -> None:
    # sysfs shows the devices of the namespace in which it was mounted.
    with tempfile.TemporaryDirectory() as folder:
        linux.mount("sysfs", folder, "sysfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        try:
            (Path(folder) / f"class/net/{name}" / file).write_text(value)
        finally:
            linux.unmount(folder)


class _Napi(genlmsg):
    """A NAPI instance in the kernel's netlink family ``netdev`` (linux/netdev.h)."""

    nla_map = (
        ("NETDEV_A_NAPI_UNSPEC", "none"),
        ("NETDEV_A_NAPI_IFINDEX", "uint32"),
        ("NETDEV_A_NAPI_ID", "uint32"),
    )


_NAPI_GET = 11


def thread_of(name: str) -> str:
    """Unique name of a device's NAPI thread; raises ``LookupError`` if the device has no NAPI."""
    with IPRoute() as ip, GenericNetlinkSocket() as netlink:
        [index] = ip.link_lookup(ifname=name)
        netlink.bind("netdev", _Napi)
        ask = _Napi()
        ask["cmd"], ask["version"], ask["attrs"] = _NAPI_GET, 1, [("NETDEV_A_NAPI_IFINDEX", index)]
        for napi in netlink.nlm_request(ask, msg_type=netlink.prid, msg_flags=NLM_F_REQUEST | NLM_F_DUMP):
            return f"napi/{name}-{napi.get_attr('NETDEV_A_NAPI_ID')}"
    raise LookupError(f"{name} has no NAPI")
