"""One results folder and its report, made once for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.fixture import write_results
from report.opened import SHELL
from wirepaint import report
from wirepaint.results import Results

HOSTILE = "'\"></script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>&<!--"


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results.open(write_results(tmp_path_factory.mktemp("report") / "results"))


@pytest.fixture(scope="session")
def page(results: Results) -> Path:
    return report.build(results.folder, results.folder / "report.html")


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of results whose title and URLs try to become markup and script."""
    folder = tmp_path_factory.mktemp("hostile") / "results"
    write_results(folder, visits=1, hostile=HOSTILE, title=HOSTILE, flaws=False)
    return report.build(folder, folder / "report.html")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=SHELL, args=["--no-sandbox"])
        yield browser
        browser.close()
