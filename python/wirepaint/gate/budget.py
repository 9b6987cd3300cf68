"""The budget: a TOML file with rules for metrics, pages and networks."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from wirepaint import metrics
from wirepaint.errors import Faults, UsageError, show
from wirepaint.evaluation.quantities import Share
from wirepaint.reading import Table, Text, read_toml, refused, validate

_EXAMPLE = '[[rules]] metric = "page-load-time", at_most = 3000, each key on a line of its own'
LIMITS = ("at_most", "at_least", "worse_by")


class Rule(Table):
    """What one metric may be. The rule holds on each page and in all other conditions, each by itself.

    ``at_most`` and ``at_least`` limit the median of a page's visits, in the metric's unit (times in ms).
    ``worse_by`` is the share by which the candidate may be worse than the base: larger, unless the metric is
    better when higher.
    """

    metric: Text
    at_most: float | None = Field(None, allow_inf_nan=False)
    at_least: float | None = Field(None, allow_inf_nan=False)
    worse_by: Share | None = None
    page: Text | None = None
    """The only page that it is for; None for each."""
    network: Text | None = None
    """The only network that it is for; None for each."""

    @model_validator(mode="after")
    def _one_limit(self) -> Rule:
        limits = [key for key in LIMITS if getattr(self, key) is not None]
        if len(limits) != 1:
            raise refused(f"exactly one of {', '.join(LIMITS)}", ", ".join(limits) or "none")
        return self

    @property
    def key(self) -> str:
        """The key of its limit."""
        return next(key for key in LIMITS if getattr(self, key) is not None)

    @property
    def is_relative(self) -> bool:
        return self.worse_by is not None


class Budget(Table):
    """All rules of a gate."""

    rules: list[Rule] = Field(min_length=1, max_length=1_000)


def load(path: Path) -> Budget:
    """Reads a budget; raises UsageError for every fault."""
    data = read_toml(path)
    if not data or data.get("rules") == []:
        raise UsageError(f"{path}: rules", "nothing", f"at least one, such as {_EXAMPLE}")
    budget = validate(Budget, data, str(path), every=True)
    faults = Faults()
    for place, rule in enumerate(budget.rules):
        key = f"{path}: rules[{place}].metric"
        with faults.kept():
            if metrics.get(rule.metric, key).label:
                raise UsageError(key, show(rule.metric), "a metric that is a number")
    faults.end()
    return budget


def within(margin: float, names: tuple[str, ...]) -> Budget:
    """The budget of ``--margin``: these metrics may be worse by the margin."""
    return Budget.model_validate({"rules": [{"metric": name, "worse_by": margin} for name in names]})
