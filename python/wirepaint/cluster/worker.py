"""The command ``wirepaint worker``: processes that carry out runs for a Dask scheduler.

Those for simulated runs have one core each; one more is for the testbed, where this machine can be one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wirepaint.cluster import hosts, semaphores, testbed
from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.connection import offer
from wirepaint.errors import Incomplete, MachineLacks, UsageError
from wirepaint.printing import counted, say
from wirepaint.results import names, provenance
from wirepaint.scratch import scratch

_CONNECT_S = 30.0
_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",  # a process has one core
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
SETTINGS = {
    # It stops the task a hundred times a second.
    "distributed.worker.profile.enabled": False,
    # Each wakes a process up to fifty times a second, to watch what a process of one task does not have.
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
}
"""Of Dask; a nanny hands its own on to its process."""


def work(on: str, tls: Tls, processes: int | None, backend: str | None, name: str | None) -> None:
    """Serves a scheduler until a signal comes or the scheduler ends.

    A process carries out one batch or testbed run at a time; if it dies, a new one takes its place.
    ``backend`` is None for all that this machine can do. ``name`` is the one of its testbed, by default the
    machine's. The process for simulated runs has it, too; several have numbers behind it.

    Raises UsageError for an address that is none, ``MachineLacks`` for a testbed that this machine cannot be,
    ``Incomplete`` if the scheduler is lost.
    """
    if processes is not None and processes < 1:
        raise UsageError("--processes", str(processes), "1 or more")
    needs_dask()
    address = resolve(on, "worker")
    secured = security(address, tls, "worker")
    host = names.host(name or provenance.host(), "--name")
    offered: list[_Offered] = []
    said: list[str] = []
    if backend != "testbed":
        cores = processes or len(os.sched_getaffinity(0))
        whose = name or f"{socket.gethostname()}-{os.getpid()}"
        called = [whose] if cores == 1 and name else [f"{whose}-{index}" for index in range(cores)]
        offered += [_Offered(one, offer("simulator")) for one in called]
        said.append(f"{counted(cores, 'core')} for simulated runs")
    if backend != "simulator":
        try:
            found = testbed.tools()
        except MachineLacks as error:
            if backend == "testbed":
                raise
            say(f"No testbed here: {error}")
        else:
            offered.append(_Offered(f"testbed@{host}", hosts.resource(host, testbed.digest(found))))
            said.append(f"the testbed of {host}")
    semaphores.sweep()
    semaphores.name_after_owner()
    os.environ.update(_ENVIRONMENT)  # its processes have it from their first import on
    with scratch() as place:
        asyncio.run(_serve(address, secured, offered, place, " and ".join(said)))


class _Offered(NamedTuple):
    """A process: its name at the scheduler, and the resource that it offers."""

    name: str
    resource: str


async def _serve(address: str, secured: Any, offered: Sequence[_Offered], place: Path, said: str) -> None:
    import dask.config
    from distributed import Nanny

    dask.config.set(SETTINGS)
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    nannies = [
        Nanny(
            address,
            nthreads=1,
            resources={one.resource: 1},
            name=one.name,
            security=secured,
            memory_limit="auto",
            local_directory=str(place),
            death_timeout=_CONNECT_S,
        )
        for one in offered
    ]
    try:
        try:
            await _refuse_taken({one.name for one in offered}, address, secured)
            await asyncio.wait_for(asyncio.gather(*nannies), _CONNECT_S)
        except (OSError, TimeoutError) as error:
            found = str(error.__cause__ or error).splitlines() or ["no answer"]
            raise UsageError(
                "worker", f"no scheduler at {address} ({found[0]})", "a scheduler that runs"
            ) from None
        except RuntimeError as error:  # Dask's
            # A worker of that name may have come in the same moment.
            failed = {str(nanny.name) for nanny in nannies if nanny.status.name == "failed"}
            await _refuse_taken(failed, address, secured)
            cause = error.__cause__ or error
            raise Incomplete(f"{address}: a process of this worker did not start ({cause})") from None
        say(f"{said} at {address}. Ctrl-C ends them.")
        gone = [asyncio.ensure_future(nanny.finished()) for nanny in nannies]
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait([stopped, asyncio.gather(*gone)], return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            raise Incomplete(f"{address}: the scheduler has ended")
    finally:
        await asyncio.gather(*(nanny.close(timeout=5) for nanny in nannies), return_exceptions=True)


async def _refuse_taken(own: set[str], address: str, secured: Any) -> None:
    """Raises UsageError if workers of the scheduler have one of these names."""
    if taken := own & await _known(address, secured):
        found = f"{taken.pop().removeprefix('testbed@')}, which another worker has"
        raise UsageError("--name", found, "a name of its own for each worker")


async def _known(address: str, secured: Any) -> set[str]:
    """The names of a scheduler's workers."""
    from distributed import Client

    client = Client(address, security=secured, asynchronous=True, timeout=_CONNECT_S, set_as_default=False)
    async with client:
        assert client.scheduler is not None
        found: Any = await client.scheduler.identity(n_workers=-1)
    return {worker["name"] for worker in found["workers"].values()}
