"""Starts, drives and measures the browser.

Start at ``load.visit``. ``chromium`` holds the flags, ``running`` the process, ``devtools`` the
pipe, ``exchanges`` the requests, ``netlog`` connections and byte timelines, ``paint`` visual
progress, ``processes`` CPU time and sandbox.
"""

from wirepaint.runners.testbed.browser.chromium import BrowserOptions
from wirepaint.runners.testbed.browser.load import PageLoad, visit
from wirepaint.runners.testbed.browser.running import Spawn

__all__ = ["BrowserOptions", "PageLoad", "Spawn", "visit"]
