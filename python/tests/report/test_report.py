"""The report as a file: it agrees with the statistics, loads nothing, and admits no foreign code."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from report.conftest import HOSTILE
from report.fixture import write_results
from wirepaint import report
from wirepaint.errors import UsageError
from wirepaint.figures import Evidence
from wirepaint.report.factors import measures
from wirepaint.report.gather import replayed
from wirepaint.results import Results
from wirepaint.results.journal import CANNOT_COUNT
from wirepaint.results.outcome import Outcome
from wirepaint.statistics.compare import compare_results


class Elements(HTMLParser):
    """Every element with its attributes, and the text of each style and script."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.code: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and self.cdata_elem:
            self.code.append((self.found[-1][1].get("type", self.found[-1][0]), data))
        else:
            self.text += data


def of_section(page: Path, name: str) -> str:
    return page.read_text("utf-8").partition(f'<section id="{name}">')[2].partition("</section>")[0]


def plain(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", markup).split())


def test_every_verdict_of_the_statistics_stands_in_the_section_of_the_factor(
    results: Results, page: Path
) -> None:
    rows = compare_results(results, metrics=measures(Evidence(results)))
    shown = [row for row in rows if row.page is None or row.metric == "page-load-time"]
    words = re.findall(r'class="verdict verdict-[\w-]+">([\w ]+)<', of_section(page, "factor-congestion"))
    assert sorted(words) == sorted(row.verdict for row in shown)
    assert {"faster", "same", "too few visits"} <= set(words), "the fixture should show different verdicts"


def test_the_first_sentence_says_what_the_verdicts_say(page: Path) -> None:
    text = plain(page.read_text("utf-8").partition('<p class="answer">')[2].partition("</p>")[0])
    assert re.match(r"FLD_TCP loads these pages \d+(\.\d)? % faster than CUBIC on 3g \(.\d+", text), text


def test_nothing_is_loaded_from_anywhere(page: Path) -> None:
    elements = Elements(page)
    loading = {"src", "href", "srcset", "data", "action", "poster", "formaction", "xlink:href", "background"}
    for tag, attributes in elements.found:
        for name in loading & attributes.keys():
            assert attributes[name].startswith("#"), f"<{tag} {name}={attributes[name]!r}>"
        assert tag not in ("link", "iframe", "object", "embed", "base", "image", "use")
    for kind, code in elements.code:
        if kind == "style":
            assert not re.search(r"url\(|@import", code)
        elif kind == "script":
            assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|import\(|\.src\s*=", code)


def test_the_page_forbids_the_browser_to_load_anything(page: Path) -> None:
    policies = [
        a["content"] for tag, a in Elements(page).found if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies and policies[0].startswith("default-src 'none'")


def test_text_from_recordings_stays_text(page: Path, hostile_page: Path) -> None:
    elements = Elements(hostile_page)
    assert HOSTILE in elements.text, "the title is shown as it is"
    assert not [tag for tag, _ in elements.found if tag == "img"]
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]
    assert not [code for kind, code in elements.code if kind == "script" and "hacked" in code]


def test_a_report_of_sixty_runs_is_smaller_than_three_megabytes(page: Path) -> None:
    assert page.stat().st_size < 3_000_000


def test_a_run_that_does_not_count_says_why_in_words(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "another congestion control for a server socket than the one asked for. Found bbr" in text
    assert "the browser ended before the page was loaded (signal 11)" in text
    assert "Found p99 1.84 ms; expected at most 1 ms" in text


def test_every_run_of_the_evaluation_is_listed_with_its_seed(results: Results, page: Path) -> None:
    text = page.read_text("utf-8")
    for run in results.runs().iter_rows(named=True):
        assert f'<td class="number">{run["seed"]}</td>' in text
        assert text.count(f'<th scope="row">{run["run_key"]}') == 1


def test_provenance_and_calibration_are_complete(results: Results, page: Path) -> None:
    text = Elements(page).text.replace("\u202f", " ")
    evaluation = (results.folder / "evaluation.toml").read_text()
    assert evaluation.strip() in text
    for value in (*results.manifest["versions"].values(), results.manifest["sessions"][0]["command"]):
        assert value in text
    assert "net.ipv4.tcp_no_metrics_save" in text
    assert "+0.004 %" in text and "+0.021 ms" in text, "errors of the calibration"


def test_the_index_names_the_median_visit_of_each_scenario_and_page(results: Results, page: Path) -> None:
    index = next(
        json.loads(code)
        for kind, code in Elements(page).code
        if kind == "application/json" and "role" in code
    )
    medians = {(entry["scenario"], entry["page"]) for entry in index if entry["role"] == "median"}
    asked = {(row["scenario"], row["page"]) for row in results.runs().iter_rows(named=True)}
    assert medians == asked
    assert all(entry["verdict"] == "valid" for entry in index)


def test_visits_that_were_skipped_for_their_page_are_told_from_those_that_were_not_needed(
    results_folder, tmp_path: Path
) -> None:
    def outcome(run) -> Outcome | str:
        if run.page == "small" and run.visit > 1:
            return f"{CANNOT_COUNT}objects: <b>/x</b>" if run.network == "lte" else "not needed: narrow"
        return Outcome("valid")

    folder = results_folder(lambda run: 1.0, 3, outcome)
    text = report.build(folder, tmp_path / "report.html").read_text("utf-8")
    assert "<b>small cannot count.</b> Visits of it were skipped: objects: &lt;b&gt;/x&lt;/b&gt;." in text
    assert '<li><a href="#runs">4 cannot count</a></li>' in text
    assert '<li><a href="#runs">4 skipped</a></li>' in text
    assert text.count('<span class="verdict verdict-cannot-count">cannot count</span>') == 4
    assert "the page cannot count: objects: &lt;b&gt;/x&lt;/b&gt;." in text


def test_a_page_of_which_a_part_replays_says_so_beside_the_verdict(results: Results, tmp_path: Path) -> None:
    evidence = Evidence(results)
    made = evidence.table.group_by("page").agg(pl.col("objects").median())
    (first, asked), (second, few) = made.sort("page").rows()[:2]
    left_out = {first: round(asked * 2), second: max(round(few / 20), 1)}
    manifest = copy.deepcopy(results.manifest)
    for agent in manifest["evaluation"]["user_agents"]:
        agent["rehearsal"] = {"left_out": left_out.get(agent["page"], 0)}
    evidence.results.manifest, kept = manifest, results.manifest
    try:
        assert replayed(evidence) == {first: f"{asked:.0f} of {asked * 3:.0f} requests replay"}
    finally:
        evidence.results.manifest = kept


def test_results_without_a_finished_run_are_reported_as_such(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "results", visits=1, done=0)
    text = report.build(folder, tmp_path / "report.html").read_text("utf-8")
    assert "No visit is done yet, so there is nothing to compare." in text


def test_suspect_runs_count_only_when_asked_for_and_the_report_says_so(
    results: Results, page: Path, tmp_path: Path
) -> None:
    suspect = report.build(results.folder, tmp_path / "report.html", suspect=True).read_text("utf-8")
    assert "Suspect runs are counted here." in suspect
    assert "Suspect runs are counted here." not in page.read_text("utf-8")
    assert "<b>58</b> visits counted" in suspect
    assert "<b>57</b> visits counted" in page.read_text("utf-8")


def test_a_factor_with_one_level_is_refused_with_those_that_have_several(
    results: Results, tmp_path: Path
) -> None:
    refusal = 'factor http: found the one level "h2"; accepted: results with two levels or more, or --factor '
    with pytest.raises(UsageError) as refused:
        report.build(results.folder, tmp_path / "report.html", factor="http")
    assert str(refused.value) == f"{refusal}congestion or network"
    assert not (tmp_path / "report.html").exists()


def test_a_folder_without_results_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="accepted: a results folder, as `wirepaint run` makes it"):
        report.build(tmp_path, tmp_path / "report.html")
