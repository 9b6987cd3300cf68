"""Browsers of the testbed: one folder an engine, and what they have in common.

``contract`` holds what a visit asks for and what it has seen; ``processes`` reads CPU time and sandbox
from /proc. ``visit`` loads a page once in Chromium, the one engine so far.
"""

from wirepaint.runners.testbed.browser.chromium.load import visit
from wirepaint.runners.testbed.browser.contract import BrowserOptions, PageLoad, Spawn

__all__ = ["BrowserOptions", "PageLoad", "Spawn", "visit"]
