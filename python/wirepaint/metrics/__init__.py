"""Metrics: one file each, one function each over the trace of a run.

The folder is the registry: a file ``page_load_time.py`` defines the metric ``page-load-time`` with
the decorator :func:`metric`. If it reads a column that no other reads, ``_computing.READ`` names it.
Files that begin with ``_`` are machinery:

``_metric``     what a metric declares, and the decorator
``_registry``   finds the files; computes all of them for one run
``_computing``  the metrics of many runs as rows
``_kept``       computed once for each run, and kept in the results folder
``_facts``      what is kept of each run beside metrics
``_own``        metrics of a user's own, in a file that an evaluation names
``_explain``    the rows of a trace behind one number
``_table``      one row per run of a whole evaluation; distributions over all of its runs
``_page``, ``_visits``, ``_receiving``, ``_bottleneck``   readings that several metrics share

A file of one's own imports what it needs from here.

Start with :func:`table`. If a trace does not determine a metric, it is null with a reason, never a guess.
"""

from wirepaint.metrics._explain import Explanation, Used, explain
from wirepaint.metrics._facts import facts
from wirepaint.metrics._flow import group
from wirepaint.metrics._kept import Keeper, read_by_all, thin, thin_of
from wirepaint.metrics._metric import (
    OF_VISITS,
    Frame,
    Metric,
    Missing,
    Reading,
    Trace,
    group_of,
    metric,
    of_visit,
)
from wirepaint.metrics._own import read, trust
from wirepaint.metrics._page import known, since_navigation, used_connections, visit
from wirepaint.metrics._registry import compute, enrol, full, get, measure, registry
from wirepaint.metrics._table import AXES, all_flows, apart, distribution, levels, mistakes, own, table
from wirepaint.metrics._visits import hosts

__all__ = [
    "AXES",
    "OF_VISITS",
    "Explanation",
    "Frame",
    "Keeper",
    "Metric",
    "Missing",
    "Reading",
    "Trace",
    "Used",
    "all_flows",
    "apart",
    "compute",
    "distribution",
    "enrol",
    "explain",
    "facts",
    "full",
    "get",
    "group",
    "group_of",
    "hosts",
    "known",
    "levels",
    "measure",
    "metric",
    "mistakes",
    "of_visit",
    "own",
    "read",
    "read_by_all",
    "registry",
    "since_navigation",
    "table",
    "thin",
    "thin_of",
    "trust",
    "used_connections",
    "visit",
]
