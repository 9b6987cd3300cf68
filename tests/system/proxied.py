"""Visits of a small page of two hosts through proxies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from wirepaint.evaluation import ResolvedRun, plan
from wirepaint.results.outcome import Outcome
from wirepaint.results.trace import read_table
from wirepaint.runners import calibrating
from wirepaint.runners.testbed import one_run
from wirepaint.runners.testbed.calibrate import calibrate
from wirepaint.runners.testbed.cells import Cells

OBJECTS = 8


def recorded(folder: Path, scheme: str) -> Path:
    """A page of two hosts: all but the document and one style sheet may be kept by a cache."""

    def entry(url: str, mime: str, text: str, control: str) -> dict[str, Any]:
        # The recorded header is of another cache.
        headers = {"content-type": mime, "cache-control": control, "x-cache": "HIT from elsewhere"}
        return {
            "startedDateTime": "2026-01-02T03:04:05Z",
            "time": 10,
            "request": {"method": "GET", "url": url, "headers": []},
            "response": {
                "status": 200,
                "httpVersion": "HTTP/1.1",
                "headers": [{"name": name, "value": value} for name, value in headers.items()],
                "content": {"size": len(text), "mimeType": mime, "text": text},
                "redirectURL": "",
                "headersSize": -1,
                "bodySize": -1,
            },
            "timings": {"wait": 5, "receive": 1},
        }

    sheets = [f"{scheme}://{'ab'[n % 2]}.test/{n}.css" for n in range(OBJECTS - 1)]
    links = "".join(f'<link rel="stylesheet" href="{url}">' for url in sheets)
    entries = [entry(f"{scheme}://a.test/", "text/html", f"<!doctype html>{links}<p>text", "no-store")]
    for n, url in enumerate(sheets):
        text = f"p {{ margin: {n}px }} /* {'x' * 20_000} */"
        entries.append(entry(url, "text/css", text, "no-store" if n == 0 else "max-age=3600"))
    file = folder / f"{scheme}.har"
    log = {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": entries}
    file.write_text(json.dumps({"log": log}))
    return file


@dataclass
class Visit:
    outcome: Outcome
    folder: Path

    def table(self, name: str) -> pl.DataFrame:
        return read_table(self.folder, name)

    def served(self) -> dict[str, int]:
        counted = self.table("object").group_by("served_by").len()
        return dict(counted.sort("served_by").iter_rows())

    def severe(self) -> set[str]:
        return {reason["check"] for reason in self.outcome.reasons if reason["severity"] != "note"}


class Lab:
    def __init__(self, cells: Cells, folder: Path, evaluation: str) -> None:
        """``evaluation`` is a text with the places ``http``, ``proxy`` and ``page``."""
        self._cells, self._folder, self._evaluation, self._count = cells, folder, evaluation, 0
        self._calibration: dict[str, Any] | None = None

    def visit(
        self, proxy: str, scheme: str = "http", http: str = "h1", evaluation: str = "", **more: Any
    ) -> Visit:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        file = folder / "evaluation.toml"
        page = recorded(self._folder, scheme)
        file.write_text((evaluation or self._evaluation).format(http=http, proxy=proxy, page=page))
        run: ResolvedRun
        [run] = plan(file).runs
        self._calibration = self._calibration or calibrating.measured(
            run.network, lambda network: calibrate(network, short=True, cells=self._cells), print
        )
        outcome = one_run.run_once(run, folder, session=self._cells, calibration=self._calibration, **more)
        return Visit(outcome, folder)
