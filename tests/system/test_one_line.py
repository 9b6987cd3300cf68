"""One line to an answer: the real commands on the simulator, with pages that nobody prepared."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from wirepaint.results import Results

WIREPAINT = [sys.executable, "-c", "import sys; from wirepaint.cli import main; sys.exit(main())"]
QUESTION = ["--network", "LTE,cable", "--http", "h1,HTTP/2", "--backend", "sim", "--no-rehearse"]
LINE = [*QUESTION, "--visits", "4"]
SCENARIOS = ["lte-cubic-h1", "lte-cubic-h2", "wpt-cable-cubic-h1", "wpt-cable-cubic-h2"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch) -> Path:
    """A folder with the HAR of a page, which a site beside it describes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("shop.har").write_text(json.dumps(har(30)))
    Path("site").mkdir()
    Path("site/index.html").write_text('<title>A site</title><img src="a.png">')
    Path("site/a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20_000))
    return tmp_path


def har(images: int) -> dict:
    """A document with images, as a browser records it."""

    def entry(url: str, at_ms: int, mime: str, size: int) -> dict:
        return {
            "startedDateTime": f"2026-01-01T00:00:00.{at_ms:03d}Z",
            "time": 30,
            "request": {"method": "GET", "url": url, "httpVersion": "HTTP/1.1", "headers": []},
            "response": {
                "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1",
                "headers": [{"name": "content-type", "value": mime}],
                "content": {"size": size, "mimeType": mime}, "bodySize": size,
            },
            "timings": {"send": 0, "wait": 20, "receive": 10},
        }  # fmt: skip

    names = [f"https://shop.example/{number}.png" for number in range(images)]
    entries = [entry("https://shop.example/", 0, "text/html", 6_000)]
    entries += [entry(name, 40 + place, "image/png", 9_000) for place, name in enumerate(names)]
    return {"log": {"version": "1.2", "creator": {"name": "hand", "version": "1"}, "entries": entries}}


def wirepaint(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*WIREPAINT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_line_gives_an_answer_a_file_and_the_next_commands_and_resumes(place: Path):
    first = wirepaint("run", "shop.har", *QUESTION)
    answers = first.stdout.splitlines()
    assert len(answers) == 3 and all(line.startswith("simulator: Page load time, ") for line in answers)
    assert all("h2 is faster than h1" in line for line in answers)
    folder = place / "results" / "shop-http-simulator"
    for said in ("wirepaint report results/shop", "wirepaint compare results/shop", "--backend testbed -o"):
        assert said in first.stderr
    [agent] = tomllib.loads((folder / "evaluation.toml").read_text())["user_agents"]
    assert agent == {"pages": [str(place / "shop.har")]}
    runs = Results.open(folder).runs("done")
    assert sorted(runs["scenario"].unique()) == SCENARIOS
    for again in (["shop.har", *QUESTION], [f"{folder}/evaluation.toml", "--no-rehearse"], [str(folder)]):
        assert wirepaint("run", *again).stdout == first.stdout
        assert Results.open(folder).runs("done")["attempts"].to_list() == [1] * runs.height


def test_a_dry_run_says_what_would_happen_and_leaves_nothing(place: Path):
    told = wirepaint("run", "shop.har", "site", *LINE, "--dry-run")
    assert f"4 scenarios: {', '.join(SCENARIOS)}\n2 pages: shop, site\n" in told.stdout
    assert "32 runs that count, 4 to warm up" in told.stdout
    assert "simulator: about 5 s for 36 runs, 0.1 s each (a guess: none has run on" in told.stdout
    assert not (place / "results").exists()
    wirepaint("run", "site", *LINE, "--quiet")
    told = json.loads(wirepaint("run", "shop.har", *LINE, "--dry-run", "--json").stdout)
    [expected] = told["expected"]
    assert (expected["runs"], expected["because"]) == (20, "as the last ones on this machine")
    done = json.loads(wirepaint("run", "site", *LINE, "--dry-run", "--json").stdout)
    assert done["expected"][0]["runs"] == 0


@pytest.mark.parametrize("line", ["--wait 30min shop.har", "shop.har --wait=90s", "shop.har --wait"])
def test_the_wait_for_the_testbed_may_have_a_bound_or_none(place: Path, line: str):
    told = wirepaint("run", *line.split(), *LINE, "--dry-run")
    assert "4 scenarios" in told.stdout and "1 page: shop\n" in told.stdout


def test_quiet_says_nothing_but_the_answer(place: Path):
    done = wirepaint("run", "site", *LINE, "--quiet")
    assert done.stderr == ""
    assert done.stdout.count("simulator: ") == 3


def test_everything_mistyped_is_named_at_once(place: Path):
    line = ["--network", "lte,cabel", "--http", "h3", "--congestion", "cubik", "--backend", "simulater"]
    said = wirepaint("run", "shop.hra", "photoz", *line, code=2).stderr.splitlines()
    assert [text.split(": ")[1] for text in said] == [
        "--backend", "--http", "--network", "--congestion", "page", "page"
    ]  # fmt: skip
    for meant in ("simulator", "cable", "cubic", "photos"):
        assert sum(f'did you mean "{meant}"?' in text for text in said) == 1
    assert not (place / "results").exists()


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ([], "run: found no page; accepted: a page "),
        (["gone.toml"], "gone.toml: found no such file or directory; accepted: a TOML file"),
        (["broken.json"], "broken.json: log: found nothing; accepted: this key, it must be there"),
        (["shop.har", "--network", "har.toml"], "har.toml: found JSON; accepted: TOML 1.0"),
        (["shop.har", "--wait", "soon"], '--wait: found "soon"; accepted: a time such as "30min"'),
        (["--wait", "shop.har"], '--wait: found "shop.har"; accepted: a time such as "30min" or "90 s", or'),
        (["own.toml", "shop.har"], "run: found own.toml and 1 argument beside it; accepted: one evaluation"),
        (["own.toml", "--visitz", "3"], '--visitz: found no such option (did you mean "--visits"?)'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_no_page_is_refused_in_one_line(place: Path, given: list[str], refusal: str):
    Path("broken.json").write_text('{"a": 1}')
    Path("har.toml").write_text(Path("shop.har").read_text())
    wirepaint("init", "-o", "own.toml", "--backend", "simulator")
    [line] = wirepaint("run", *given, code=2).stderr.splitlines()
    assert refusal in line


def test_a_har_is_a_page_whatever_its_name(place: Path):
    Path("page.toml").write_text(Path("shop.har").read_text())
    assert "1 page: page.toml" in wirepaint("run", "page.toml", *LINE, "--dry-run").stdout


def test_init_writes_a_file_that_run_takes_and_never_overwrites(place: Path):
    assert wirepaint("init", "shop.har", "--backend", "simulator").stdout == "evaluation.toml\n"
    text = Path("evaluation.toml").read_text()
    assert 'pages = ["./shop.har"]' in text
    told = wirepaint("run", "evaluation.toml", "--dry-run", "--visits", "3").stdout
    assert "6 runs that count" in told and "Results: results/evaluation" in told
    assert "accepted: a new file" in wirepaint("init", "site", code=2).stderr
    assert Path("evaluation.toml").read_text() == text
    refused = wirepaint("init", "sitee", "--http", "h9", "-o", "new.toml", code=2).stderr
    assert "--http: " in refused and "page: found" in refused
    assert not Path("new.toml").exists()


def test_options_change_the_values_of_a_file(place: Path):
    wirepaint("init", "site", "--backend", "simulator")
    changed = ["--visits", "3", "--network", "3g", "--congestion", "cubic,fld", "--no-rehearse", "-o", "made"]
    wirepaint("run", "evaluation.toml", *changed, "--quiet")
    runs = Results.open(place / "made").runs("done")
    assert set(runs["network"]) == {"3g"}
    assert set(runs["congestion"]) == {"cubic", "fld"}
    assert runs["visit"].max() == 3
