"""The tables of docs/guide/reading-the-report.md, from a report of the evaluation in it.

``python tests/house/reading_report.py`` carries the evaluation out on the simulator and prints them. The
page is as it was rehearsed for the catalogue: a rehearsal on a busy machine would change the verdicts.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs/guide/reading-the-report.md"
WIREPAINT = Path(sys.executable).with_name("wirepaint")


class Report(HTMLParser):
    """Each section's tables, as rows of the texts of their cells, and the sentences at the head."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.answers: list[str] = []
        self._section, self._open = "", ""
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section":
            self._section = given["id"] or ""
        elif tag == "table":
            self.tables.setdefault(self._section, []).append([])
        elif tag == "tr":
            self.tables[self._section][-1].append([])
        elif tag in ("th", "td"):
            self.tables[self._section][-1][-1].append("")
            self._open = "cell"
        elif (given.get("class") or "").startswith("answer"):
            self.answers.append("")
            self._open = "answer"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td", "p"):
            self._open = ""

    def handle_data(self, data: str) -> None:
        kept = {"cell": lambda: self.tables[self._section][-1][-1], "answer": lambda: self.answers}.get(
            self._open
        )
        if kept:
            kept()[-1] = " ".join(f"{kept()[-1]} {data}".split())


def shown(folder: Path) -> list[str]:
    """The answers as a quotation and the overview as a table, from the evaluation in the guide."""
    evaluation = re.findall(r"```toml\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[0]
    (folder / "evaluation.toml").write_text(evaluation, encoding="utf-8")
    for arguments in (
        ["run", "evaluation.toml", "-o", "results", "--no-rehearse"],
        ["report", "results", "-o", "report.html"],
    ):
        subprocess.run([WIREPAINT, *arguments], cwd=folder, check=True, capture_output=True)
    report = Report(folder / "report.html")
    head, *rows = report.tables["overview"][0]
    lines = [["change", *head[1:]], ["---"] * len(head), *(row for row in rows if len(row) > 1)]
    said = "\n>\n".join(f"> {answer}" for answer in report.answers)
    return [re.sub(r" ([.,)])", r"\1", said), "\n".join(f"| {' | '.join(line)} |" for line in lines)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n\n".join(shown(Path(folder))))
