"""How runs are carried out: ``pool`` takes them from a plan one by one, ``testbed`` carries one out."""
