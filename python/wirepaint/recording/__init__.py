"""Records a live page: loads it in Chromium and makes a page archive of it.

Start at ``command.record``. ``wish`` reads the user's options, ``visit`` loads the page,
``wire`` reads headers and bodies from the browser's NetLog, ``log`` joins both to the content of a
HAR, ``queueing`` separates waiting behind other answers from the server's time, ``secrets`` removes the
user's own cookies and headers.
"""

from wirepaint.recording.command import record
from wirepaint.recording.wish import Wish, read

__all__ = ["Wish", "read", "record"]
