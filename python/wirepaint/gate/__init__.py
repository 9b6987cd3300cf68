"""The gate: results against a budget, or against a base, for CI.

``budget``   the file with the rules
``checks``   each rule on each page and network: pass, breach, missing or undecided, with its numbers
``outputs``  text, JSON, JUnit, annotations of GitHub, Markdown
``command``  ``wirepaint check``

docs/guide/gate.md says how it is used.
"""
