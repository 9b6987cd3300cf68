"""A small evaluation for the simulator, with metrics of a file of one's own."""

OWN_METRIC = '''\
from wirepaint.metrics import Missing, Trace, metric


@metric(title="Largest object", unit="kB", needs=("object",))
def largest_object(trace: Trace) -> float:
    """Response bytes of the largest object of the page."""
    return trace("object")["encoded_bytes"].max() / 1000


@metric(title="Broken", unit="1", needs=("page",))
def broken(trace: Trace) -> float:
    """A metric with a mistake."""
    return trace("page")["no_such_column"].item()
'''
SIMULATED = """\
title = "h1 or h2?"
backend = "simulator"
metrics = ["./mine.py"]
packet_trace = true
[scenarios]
network = ["lte"]
congestion = ["cubic"]
http = ["h1", "h2"]
[[user_agents]]
pages = ["agency"]
visits = 4
"""
