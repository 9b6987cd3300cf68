"""Records a live page: loads it in Chromium and makes it a page archive.

Start at ``command.record``. ``wish`` reads what the user asks for, ``visit`` loads the page,
``wire`` reads headers and bodies from the browser's NetLog, ``log`` joins both to what a HAR would
hold, ``queueing`` tells waiting behind other answers from the server's time, ``secrets`` takes the
user's own cookies and headers out.
"""

from wirepaint.recording.command import record
from wirepaint.recording.wish import Wish, read

__all__ = ["Wish", "read", "record"]
