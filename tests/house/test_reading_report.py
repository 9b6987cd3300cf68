"""The guide on reading the report shows what the program prints."""

from __future__ import annotations

from pathlib import Path

import reading_report


def test_the_guide_shows_the_answers_and_the_overview_of_its_evaluation(tmp_path: Path) -> None:
    guide = reading_report.GUIDE.read_text("utf-8")
    for shown in reading_report.shown(tmp_path):
        assert shown in guide, "put the output of `python tests/house/reading_report.py` into it"
