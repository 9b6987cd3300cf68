"""wirepaint: which transport makes these pages load faster on these networks, and who pays for it?

The rooms, from what is used to its user: ``evaluation`` (the file a user writes, resolved into
runs), ``runners`` (how a run is carried out), ``results`` (where it is kept), ``metrics``,
``statistics``, ``figures``, ``report``. ``cli`` is the front door.
"""

__version__ = "0.1.0"
