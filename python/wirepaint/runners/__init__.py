"""How runs are carried out: ``pool`` takes them from a plan, ``testbed`` and ``simulator`` carry them out.

``description`` holds what both say of a run in the same words.
"""
