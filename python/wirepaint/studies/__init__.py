"""Studies: repeats published experiments and gives a verdict on each claim.

A study is one file of the catalogue (``catalog/studies/NAME.toml``: set-up, parameters, sweeps, figures,
claims) and one module here, named ``code`` in the file. The module has the keys of a
sweep's point (``Asked``), the point in numbers (``scene``), its run (``describe``), and
the measures of its trace (``MEASURES``).

``model``      what a study's file holds
``running``    simulates the points of the sweeps, every seed, on all cores
``verdicts``   checks claims against the measurements
``drawing``    the figures
``page``       the page that a study becomes
``commands``   ``wirepaint study``
``cwv_2010``   Biswas et al. 2010: congestion window validation

A claim that does not reproduce is reported as such. Its rule (kind, margin, range) is in the file,
beside the paper's statement, so that readers can check it.
"""
