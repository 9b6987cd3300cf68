"""Evaluations: from the file a user writes to runs that are complete in themselves.

``plan.plan(path)`` is the way in. ``model`` declares the file, ``reading`` words its errors,
``quantities`` its units; ``network``, ``congestion`` and ``pages`` resolve what it names, with
``catalogue`` for what ships with wirepaint. Nothing here runs anything or writes a result.
"""

from wirepaint.evaluation.plan import Plan, ResolvedRun, plan

__all__ = ["Plan", "ResolvedRun", "plan"]
