"""Studies: repeats published experiments and gives a verdict on each claim.

A study is one file of the catalogue (``catalog/studies/NAME.toml``: set-up, parameters, sweeps, figures,
claims) and one module here, named ``code`` in the file. The module has the keys of a sweep's point
(``Asked``), the measures of a run's trace (``MEASURES``), and one of two ways to a run:

- ``conditions``: a point in the words of an evaluation file. The runs are those of evaluations, in the
  simulator or on the testbed.
- ``scene`` and ``describe``: a point in numbers, and its run description, for the simulator.

``model``         what a study's file holds
``evaluations``   carries sweeps out as evaluations
``running``       simulates run descriptions, every seed, on all cores
``verdicts``      checks claims against the measurements
``drawing``       the figures
``page``          the page that a study becomes
``commands``      ``wirepaint study``
``cwv_2010``      Biswas et al. 2010: congestion window validation
``http_ae_2011``  Davern et al. 2011: web pages over a satellite path; ``photo_pages`` makes its pages

A claim that does not reproduce is reported as such. Its rule (kind, margin, range) is in the file,
beside the paper's statement, so that readers can check it.
"""
