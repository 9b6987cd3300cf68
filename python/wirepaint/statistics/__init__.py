"""Statistics: intervals, comparisons of one factor's levels, when to stop.

``intervals``   median and mean with 95 % BCa bootstrap intervals; :func:`narrow_enough`
``ranks``       the rank tests, the shift that they estimate, and its interval
``compare``     two levels of a factor, all else equal: one word and the numbers behind it
``losses``      how many visits of each level count, and what the others were lost to
``agreement``   the simulator against the testbed
``terminal``    the comparison as a table on the terminal

docs/guide/statistics.md says which method is used when and why. Everything is deterministic: the
same values give the same numbers.
"""

from wirepaint.statistics.compare import compare
from wirepaint.statistics.comparison import Comparison, Level
from wirepaint.statistics.intervals import Interval, mean, median, narrow_enough

__all__ = ["Comparison", "Interval", "Level", "compare", "mean", "median", "narrow_enough"]
