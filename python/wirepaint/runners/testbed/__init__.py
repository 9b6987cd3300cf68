"""The testbed: real Linux TCP in network namespaces behind an emulated link, with a real browser.

Start at ``one_run`` (asked by ``session``) and follow it into ``page_run`` (what happens
inside the cell). ``cells`` explains where processes live and why nothing is left behind,
``namespaces`` builds the path, ``browser`` loads and measures the page, ``validity`` decides
whether a run counts.
"""
