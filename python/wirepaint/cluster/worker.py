"""The command ``wirepaint worker``: processes that carry out runs for a Dask scheduler."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

from wirepaint.cluster.address import Tls, needs_dask, resolve, security
from wirepaint.cluster.client import offer
from wirepaint.errors import Incomplete, UsageError
from wirepaint.printing import counted, say
from wirepaint.scratch import scratch

_CONNECT_S = 30.0
_ENVIRONMENT = {
    "POLARS_MAX_THREADS": "1",  # a process has one core
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",  # it stops the task a hundred times a second
}


def work(on: str, tls: Tls, processes: int | None) -> None:
    """Serves a scheduler until a signal comes or the scheduler ends.

    A process carries out one batch at a time, on one core; if it dies, a new one takes its place. Raises
    UsageError for an address that is none, ``Incomplete`` if the scheduler is lost.
    """
    if processes is not None and processes < 1:
        raise UsageError("--processes", str(processes), "1 or more")
    needs_dask()
    address = resolve(on, "worker")
    secured = security(address, tls, "worker")
    number = processes or len(os.sched_getaffinity(0))
    os.environ.update(_ENVIRONMENT)  # its processes have it from their first import on
    with scratch() as place:
        asyncio.run(_serve(address, secured, number, place))


async def _serve(address: str, secured: Any, number: int, place: Path) -> None:
    from distributed import Nanny

    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    whose = f"{socket.gethostname()}-{os.getpid()}"
    nannies = [
        Nanny(
            address,
            nthreads=1,
            resources={offer("simulator"): 1},
            name=f"{whose}-{index}",
            security=secured,
            memory_limit="auto",
            local_directory=str(place),
            death_timeout=_CONNECT_S,
        )
        for index in range(number)
    ]
    try:
        try:
            await asyncio.wait_for(asyncio.gather(*nannies), _CONNECT_S)
        except (OSError, TimeoutError) as error:
            found = str(error.__cause__ or error).splitlines() or ["no answer"]
            raise UsageError(
                "worker", f"no scheduler at {address} ({found[0]})", "a scheduler that runs"
            ) from None
        say(f"{counted(number, 'core')} for simulated runs at {address}. Ctrl-C ends them.")
        gone = [asyncio.ensure_future(nanny.finished()) for nanny in nannies]
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait([stopped, asyncio.gather(*gone)], return_when=asyncio.FIRST_COMPLETED)
        if not stop.is_set():
            raise Incomplete(f"{address}: the scheduler has ended")
    finally:
        await asyncio.gather(*(nanny.close(timeout=5) for nanny in nannies), return_exceptions=True)
