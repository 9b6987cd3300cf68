"""Chromium's headless shell: starts, drives and measures it.

Start at ``load.visit``. ``program`` finds the program and holds its flags, ``running`` the process,
``devtools`` the pipe, ``exchanges`` the requests, ``netlog`` connections and byte timelines, ``observed``
joins the two, ``paint`` is visual progress.
"""
