"""Congestion controls: lists, describes and tests them.

Start at ``commands`` (the verbs of ``wirepaint cc``). ``catalogue`` finds them, ``testing`` runs their
acknowledgement scripts in both arms, and ``kernel`` is the arm of the running kernel. ``plot`` draws
the window on a standard path (in the simulator), ``new`` writes a starting file. The guide is
docs/guide/write-a-congestion-control.md.
"""
