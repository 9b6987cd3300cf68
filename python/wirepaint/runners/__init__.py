"""How runs are carried out: ``pool`` takes them from a plan, ``testbed`` and ``simulator`` carry them out.

``contract`` is what these agree on, ``backends`` gives them by name. ``description`` holds what both say of a
run in the same words.
"""
