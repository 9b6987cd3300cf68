"""Evaluations: turns a user's file into self-contained runs.

Start at ``plan(path)`` (``planning``). ``model`` declares the file, ``reading`` makes its error messages,
``quantities`` reads its units; ``network``, ``congestion`` and ``pages`` resolve the names in it, with
``catalogue`` for the files of wirepaint. Nothing here runs anything or writes a result.
"""

from wirepaint.evaluation.planning import Plan, plan
from wirepaint.evaluation.runs import ResolvedRun

__all__ = ["Plan", "ResolvedRun", "plan"]
