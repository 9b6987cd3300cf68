"""The report: one HTML file that works offline.

``render``    start here: ``build(results_dir, out)`` and ``save_figures(results_dir, folder)``
``gather``    the content of the report, from results, metrics, statistics and figures
``factors``   what each factor changes, by back end: the overview and a section for each factor
``values``    the values that the page draws itself
``answer``    the verdicts as one sentence
``words``     numbers, verdicts and reasons in words
``visits``    traces of the visits that the waterfall shows, packed
``svg``       figures made safe for inclusion in the page
``templates`` Jinja2, autoescaped: page names and URLs come from recordings that nobody has vetted
``static``    style sheet and scripts, plain files that are included in the page unchanged
"""

from wirepaint.report.render import build, save_figures

__all__ = ["build", "save_figures"]
