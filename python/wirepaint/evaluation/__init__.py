"""Evaluations: from the file a user writes to runs that are complete in themselves.

``plan(path)`` is the way in (``planning``). ``model`` declares the file, ``reading`` words its errors,
``quantities`` its units; ``network``, ``congestion`` and ``pages`` resolve what it names, with
``catalogue`` for what ships with wirepaint. Nothing here runs anything or writes a result.
"""

from wirepaint.evaluation.planning import Plan, ResolvedRun, plan

__all__ = ["Plan", "ResolvedRun", "plan"]
