"""Evaluations: turns a user's file into self-contained runs.

Start at ``plan(path)`` (``planning``). ``model`` declares the file, ``reading`` makes its error messages,
``quantities`` reads its units; ``network``, ``congestion`` and ``pages`` resolve the names in it, with
``catalogue`` for the files of wirepaint. Nothing here runs anything or writes a result.
"""

from wirepaint.evaluation.planning import Plan, ResolvedRun, plan

__all__ = ["Plan", "ResolvedRun", "plan"]
