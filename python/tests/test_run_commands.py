"""How `run` begins and ends; tests/system/test_one_line.py has whole commands."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from wirepaint import cli, pages, run_commands
from wirepaint.errors import RunFailed
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome
from wirepaint.runners.contract import Tally


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("site").mkdir()
    Path("site/index.html").write_text('<title>A page</title><img src="a.png">')
    Path("site/a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9_000))
    return tmp_path


def test_without_root_a_page_alone_is_simulated_and_the_command_of_the_testbed_is_told(capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    assert cli.invoke(["run", "site", "--no-rehearse", "--visits", "3"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("simulator: Page load time, lte, 1 page: h2 ")
    assert "No --network was given: lte." in err
    assert "Nothing was given to compare: HTTP/1.1 and HTTP/2 are." in err
    assert err.count("3 visits of each page cannot decide") == 1
    again = "sudo -E wirepaint run results/site-http-simulator/evaluation.toml --backend testbed"
    assert f"{again} -o results/site-http-testbed\n" in err


def test_options_after_a_results_folder_are_kept_in_its_evaluation(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    first = ["run", "site", "--no-rehearse", "--visits", "3", "--backend", "simulator", "-o", "half"]
    assert cli.invoke(first) == 0
    capsys.readouterr()
    assert cli.invoke(["run", "half", "--no-rehearse", "--network", "lte,3g"]) == 0
    text = Path("half/evaluation.toml").read_text()
    assert 'title = "site: h1 or h2, on lte, 3g"' in text
    assert 'network = ["lte", "3g"]' in text
    assert "wirepaint run half/evaluation.toml --backend testbed -o half-testbed\n" in capsys.readouterr().err
    assert cli.invoke(["run", "half", "--no-rehearse"]) == 0
    assert "no longer asked for" not in capsys.readouterr().err


def test_results_grow_from_any_folder_though_a_page_is_named_beside_the_evaluation(monkeypatch):
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    Path("questions").mkdir()
    shutil.move("site", "questions/site")
    Path("questions/ours.toml").write_text(
        'title = "Ours"\nbackend = "simulator"\nscenarios = { network = ["lte"], http = ["h1", "h2"] }\n'
        '[[user_agents]]\npages = ["./site"]\nvisits = 2\n'
    )
    assert cli.invoke(["run", "questions/ours.toml", "-o", "ours", "--no-rehearse"]) == 0
    Path("elsewhere").mkdir()
    shutil.move("ours", "elsewhere/ours")
    monkeypatch.chdir("elsewhere")
    assert cli.invoke(["run", "ours", "--visits", "3", "--no-rehearse"]) == 0
    assert cli.invoke(["run", "ours", "--no-rehearse"]) == 0
    runs = Results.open(Path("ours")).runs()
    assert Counter(runs["visit"]) == {0: 2, 1: 2, 2: 2, 3: 2}


def test_the_command_of_the_testbed_has_the_options_beside_a_file(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    assert cli.invoke(["init", "site", "--http", "h2", "--backend", "simulator"]) == 0
    arguments = ["run", "evaluation.toml", "--no-rehearse", "--visits", "3", "--network", "lte,3g"]
    assert cli.invoke(arguments) == 0
    again = "wirepaint run evaluation.toml --network lte,3g --visits 3 --backend testbed -o results/"
    assert again in capsys.readouterr().err


def test_the_end_of_a_simulated_run_says_once_that_a_page_was_rehearsed_on_a_busy_machine(capsys):
    for name, others in (("busy", 0.612), ("calm", 0.25)):
        shutil.copytree(pages.shipped()["kit"], name)
        index = Path(name, "page.json")
        found = json.loads(index.read_text())
        found["name"], found["rehearsal"]["others_cpu"] = name, others
        index.write_text(json.dumps(found))
    arguments = ["run", "busy", "calm", "--http", "h1,h2", "--visits", "3", "--backend", "simulator"]
    assert cli.invoke([*arguments, "--no-rehearse"]) == 0
    said = "Rehearsed while others had much of the CPU time: busy 61 %; rehearse again on a calm machine: "
    assert capsys.readouterr().err.count(said) == 1


def test_the_rehearsals_of_a_page_by_http_and_by_https_are_told_the_larger_error_first():
    def found(error: float | None) -> dict[str, object]:
        return {"error": error, "left_out": 175, "requests": 253, "others_cpu": 0.1}

    agent = {"page": "news", "rehearsal": found(0.021), "rehearsal_by_https": found(0.052)}
    other = {"page": "kit", "rehearsal": found(0.03) | {"left_out": 25}}
    described = {"backend": "simulator", "evaluation": {"user_agents": [agent, other]}}
    results = Results(Path(), described)
    assert ": news by https 5.2 %, kit 3.0 %, news 2.1 %." in str(results.fidelity())
    assert results.replay_in_part() == [
        "78 of 253 requests of news replay",
        "78 of 253 requests of news by https replay",
    ], "of kit less than a tenth is left out"


def test_the_end_of_a_run_says_how_many_requests_of_a_page_replay(capsys):
    shutil.copytree(pages.shipped()["kit"], "part")
    index = Path("part/page.json")
    found = json.loads(index.read_text())
    found["name"], found["rehearsal"]["left_out"] = "part", (number := len(found["resources"])) // 2
    index.write_text(json.dumps(found))
    arguments = ["run", "part", "--http", "h2", "--visits", "3", "--backend", "simulator", "--no-rehearse"]
    assert cli.invoke(arguments) == 0
    said = f"{number - number // 2} of {number} requests of part replay; no rehearsal asked for the others."
    assert said in capsys.readouterr().err


def test_a_page_of_plain_http_is_named_where_its_http_versions_are_compared(capsys):
    entry = {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 5,
        "request": {"method": "GET", "url": "http://site.test/", "headers": []},
        "response": {
            "status": 200,
            "headers": [],
            "content": {"size": 20, "mimeType": "text/html", "text": "<title>Plain</title>"},
        },
    }
    Path("plain.har").write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    said = "Recorded over plain http, at least in part: plain. Browsers speak HTTP/2 over TLS only"
    more = ["--backend", "simulator", "--visits", "3", "--no-rehearse", "--network", "lte"]
    assert cli.invoke(["run", "plain.har", "--http", "h1,h2", *more, "-o", "both"]) == 0
    assert said in capsys.readouterr().err
    assert cli.invoke(["compare", "both", "--factor", "http"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert cli.invoke(["report", "both"]) == 0
    assert said in re.sub(r"</?span[^>]*>", "", Path("both/report.html").read_text())
    for one in ("h1", "h2"):
        assert cli.invoke(["run", "plain.har", "--http", one, *more, "-o", one]) == 0
        assert "plain http" not in capsys.readouterr().err, "nothing is compared"


OWN_METRIC = """
from wirepaint.metrics import Trace, metric


@metric(title="Responses", unit="1", needs=("object",))
def responses(trace: Trace) -> float:
    \"\"\"Number of responses.\"\"\"
    return float(trace["object"].height)
"""


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("page-load-tim", 'a name of `wirepaint metric list` (did you mean "page-load-time"?)'),
        ("page-type", "a metric that is a number"),
    ],
)
def test_a_primary_metric_that_is_none_is_refused_before_a_page_is_rehearsed(name, accepted, more, capsys):
    assert cli.invoke(["run", "site", "--backend", "simulator", "--primary", name, *more]) == 2
    assert capsys.readouterr().err == f'wirepaint: --primary: found "{name}"; accepted: {accepted}\n'


def test_each_wrong_primary_metric_of_a_file_is_named_and_those_of_its_own_files_are_known(capsys):
    Path("mine.py").write_text(OWN_METRIC)
    Path("e.toml").write_text(
        'title = "Own"\nbackend = "simulator"\nmetrics = ["./mine.py"]\n'
        'primary = ["responses", "pltm", "si", "zz9"]\n'
        '[scenarios]\nnetwork = ["lte"]\n[[user_agents]]\npages = ["site"]\n'
    )
    arguments = ["run", "e.toml", "--dry-run", "--trust"]
    assert cli.invoke(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("; ")[0] for line in lines] == [
        'wirepaint: e.toml: primary[1]: found "pltm"', 'wirepaint: e.toml: primary[3]: found "zz9"'
    ]  # fmt: skip
    assert cli.invoke([*arguments, "--primary", "responses,si"]) == 0


def test_a_level_without_a_valid_run_is_no_success(results_folder, capsys):
    folder = results_folder(
        lambda run: 1 + run.visit / 1000,
        outcome=lambda run: Outcome("suspect" if run.network == "3g" else "valid"),
    )
    order = run_commands._Order(folder / "evaluation.toml", folder)
    tally = Tally(counts=Counter(valid=22, suspect=22))
    with pytest.raises(
        RunFailed, match=r"^network 3g on the testbed: none of 20 runs is valid, 20 suspect\.$"
    ):
        run_commands._end(order, tally, False, print)
    out = capsys.readouterr().out
    assert out.startswith("testbed: Page load time, lte, 2 pages: ")
    assert "22 suspect, 22 valid. Results: " in out


def test_where_no_run_is_valid_next_is_to_explain_and_nothing_to_compare(results_folder, monkeypatch):
    monkeypatch.setattr("sys.argv", ["wirepaint"])
    folder = results_folder(lambda run: 1.0, outcome=lambda _: Outcome("invalid"), backend="simulator")
    order = run_commands._Order(folder / "evaluation.toml", folder)
    (head, command) = run_commands._next(order, Results.open(folder))
    assert head == "Next:" and command.endswith(f"wirepaint explain {folder} verdict")


@pytest.mark.parametrize(
    ("name", "text", "is_evaluation"),
    [
        ("e.toml", "title = 'x'", True),
        ("E.TOML", "", True),
        ("gone.toml", None, True),
        ("e.txt", "title = 'x'\n[scenarios]\n", True),
        ("e", " [[user_agents]]\n", True),
        ("har.toml", '\n {"log": {}}', False),
        ("warc.toml", "WARC/1.0\r\n", False),
        ("notes.txt", "scenarios and flows", False),
        ("gone.har", None, False),
    ],
)
def test_an_evaluation_is_told_from_a_recording_by_its_content(
    name: str, text: str | None, is_evaluation: bool
):
    if text is not None:
        Path(name).write_text(text)
    assert run_commands._is_evaluation(Path(name)) == is_evaluation
