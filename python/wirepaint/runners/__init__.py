"""How runs are carried out: ``pool`` takes them from a plan, ``testbed`` and ``simulator`` carry them out.

``contract`` holds their common interface, ``backends`` gives them by name, and ``description`` has the parts
of a run description that both back ends use.
"""
