"""Statistics: intervals, comparisons of one factor's levels, when to stop.

``intervals``   median and mean with 95 % BCa bootstrap intervals; :func:`narrow_enough`
``ranks``       the rank tests, the shift that they estimate, and its interval
``compare``     two levels of a factor, all else equal: a verdict and its numbers
``losses``      how many visits of each level count, and why the others do not
``agreement``   the simulator against the testbed
``terminal``    the comparison as a table on the terminal

docs/guide/statistics.md explains the choice of methods. Everything is deterministic: the
same values give the same numbers.
"""

from wirepaint.statistics.compare import compare
from wirepaint.statistics.comparison import Comparison, Level
from wirepaint.statistics.intervals import Interval, mean, median, narrow_enough

__all__ = ["Comparison", "Interval", "Level", "compare", "mean", "median", "narrow_enough"]
