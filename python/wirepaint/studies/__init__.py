"""Studies: published experiments, repeated, with a verdict for each claim.

A study is one file of the catalogue (``catalog/studies/NAME.toml``: set-up, parameters, sweeps, figures,
claims) and one module here, which the file names as ``code``, for what needs code: what a point of a
sweep may ask (``Asked``), what that is in numbers (``scene``), the run it becomes (``describe``), and
what is measured in its trace (``MEASURES``).

``model``      what a study's file holds
``running``    the points of the sweeps through the simulator, every seed, on all cores
``verdicts``   claims against what was measured
``drawing``    the figures
``page``       the page that a study becomes
``commands``   ``wirepaint study``
``cwv_2010``   Biswas et al. 2010: congestion window validation

A claim that does not reproduce is reported as such. Its rule (kind, margin, range) stands in the file,
beside what the paper says, so that nobody has to trust this text.
"""
