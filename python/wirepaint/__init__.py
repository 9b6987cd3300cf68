"""wirepaint: which transport makes these pages load faster on these networks, and who pays for it?

The packages, each used by later ones: ``evaluation`` (resolves a user's file into
runs), ``runners`` (carry out runs), ``results`` (stores them), ``metrics``,
``statistics``, ``figures``, ``report``. Start at ``cli``.
"""

__version__ = "0.1.0"
