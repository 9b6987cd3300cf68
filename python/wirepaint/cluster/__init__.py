"""Simulated runs in batches: on the cores of this machine, or on many machines by Dask distributed.

```
run (client) ── batches of runs, what they share by content hash ──► scheduler ──► workers
             ◄── Arrow record batches: how the runs ended, metrics, traces that are kept ──
```
``batch``    a batch: how it is packed, carried out on a worker, and returned
``batches``  makes batches, and gives the ends of their runs
``client``   the session of ``run`` that sends them to a scheduler
``local``    the session that hands them to processes of this machine, without Dask
``worker``   the command ``wirepaint worker``
``address``  where a scheduler is, and how its connections are secured

Only the client writes results; a worker has nothing to lose. Dask hands the batch of a lost worker to
another one; it is installed with ``wirepaint[dask]``.
"""
