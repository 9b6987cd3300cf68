"""The HTTP-AE study through the real simulator: conditions, measures and page, with few points and visits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from wirepaint import catalogue
from wirepaint.cli import invoke
from wirepaint.pages.model import Rehearsal, save_index
from wirepaint.results import Results
from wirepaint.studies import http_ae_2011, model, photo_pages

NAME, STUDY = model.load("http-ae-2011")
DEFAULTS = STUDY.chosen({})

SWEEPS = """
[sweeps.variants]
measure = "load"
series = "congestion"
against = "reno"
fixed = { rate_kbit_s = 256, images = 5 }
over = { queue = [50], congestion = ["reno", "hybla"] }
[sweeps.users]
measure = "users"
fixed = { rate_kbit_s = 256, images = 5 }
over = { users = [3] }

[[figures]]
id = "10"
title = "Users"
sweep = "users"
x = "users"
x_title = "Users"
y = "load_s"
y_title = "Page load time, s"
caption = "Three of them."

[[claims]]
id = "fig10"
item = "Fig. 10"
says = "Users take long"
published = "in words"
kind = "about"
sweep = "users"
y = "load_s"
first = "later"
value = 7
margin = 0.1

[[today]]
id = "today"
item = "Fig. 11"
says = "Hybla is faster than Reno"
published = "Hybla is best"
kind = "more"
sweep = "variants"
y = "load_s"
first = "reno"
second = "hybla"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A study of its own file: the set-up and parameters of the shipped one, two sweeps, two claims."""
    shipped = catalogue.find("study", NAME, Path()).read_text()
    path = tmp_path / "small.toml"
    path.write_text(shipped.partition("\n# What is carried out")[0] + SWEEPS)
    return path


def test_the_path_and_the_browser_are_those_of_the_paper() -> None:
    point = {"rate_kbit_s": 512, "images": 7, "connections": 8, "pipelined": True}
    found = http_ae_2011.conditions(STUDY, DEFAULTS, point)
    down, up = found.network["down"], found.network["up"]
    assert (down["rate"], down["delay"], down["queue"]["packets"]) == ("512 kbit/s", "300 ms", 1000)
    assert up == down
    [agent] = found.agents
    assert agent["pages"] == ["../pages/5kB/photos-07-http"]
    assert agent["browser"] == {
        "engine": "light", "model": "firefox-3", "connections": 8, "pipelining": 4
    }  # fmt: skip
    assert (found.initial_window, found.proxy) == (3, None)
    other = http_ae_2011.conditions(STUDY, DEFAULTS | {"httpae_up": "1 Mbit/s"}, point)
    assert other.network["up"]["rate"] == "1 Mbit/s"


def test_the_first_user_is_the_one_who_began_first() -> None:
    page = pl.DataFrame(
        {
            "navigation_start": [30, 10, 20],
            "load_event": [5_000_000_030, 2_000_000_010, 3_000_000_020],
            "visit": [0, 1, 2],
            "user_agent": ["u.1", "u.2", "u.3"],
        }
    )
    chunk = pl.DataFrame({"visit": [0, 1, 2], "time": [40, 40, 40], "bytes": [100, 100, 100]})
    found = http_ae_2011.users({"page": page, "chunk": chunk}.__getitem__)
    assert found.select("series", "load_s").rows() == [("first", 2.0), ("later", 4.0), ("all", None)]
    assert found["later_percent"].to_list() == [None, 100.0, None]
    rates = [1 / 2, 1 / 3, 1 / 5]
    assert found["jain"].to_list()[:2] == [None, None]
    assert found["jain"][2] == pytest.approx(sum(rates) ** 2 / 3 / sum(rate**2 for rate in rates))


def test_classes_have_their_shares_of_the_link_and_their_users_a_code_point() -> None:
    point = {"rate_kbit_s": 256, "images": 5, "users": 2, "classes": True, "proxy": "pep-classes"}
    found = http_ae_2011.conditions(STUDY, DEFAULTS, point)
    shares = {
        tuple(each.get("dscp", ())): each["weight"] for each in found.network["down"]["queue"]["classes"]
    }
    assert shares == {(10,): 50, (18,): 30, (): 20}
    assert [(agent["name"].rpartition("-")[2], agent.get("dscp")) for agent in found.agents] == [
        ("gold", 10),
        ("silver", 18),
        ("bronze", None),
    ]
    assert found.proxy is not None and found.proxy["connections"] == 1


def test_a_class_is_the_mean_of_its_users_and_bronze_has_a_first_one() -> None:
    page = pl.DataFrame(
        {
            "user_agent": ["x-gold.1", "x-gold.2", "x-bronze.1", "x-bronze.2", "x-bronze.3"],
            "navigation_start": [0, 0, 20, 10, 30],
            "load_event": [2 * 10**9, 4 * 10**9, 20 + 9 * 10**9, 10 + 6 * 10**9, 30 + 7 * 10**9],
        }
    )
    found = http_ae_2011.classes({"page": page}.__getitem__)
    assert dict(found.iter_rows()) == {"gold": 3.0, "bronze": 22 / 3, "first": 6.0, "later": 8.0}


def test_the_quick_form_leaves_a_page_and_results_that_the_same_command_takes_up(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["study", "run", str(small), "-o", str(out), "--quick"]
    assert invoke(command) == 0
    said = capsys.readouterr()
    assert re.search(r"^reproduced +Fig\. 10 +Users take long$", said.out, re.MULTILINE)
    assert re.search(r"^reproduced +Fig\. 11 +Hybla is faster than Reno$", said.out, re.MULTILINE)
    assert said.err.splitlines()[-1].startswith("Of 1 claim 1 reproduced. 9 runs")
    assert "visits of each page" not in said.err
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 1 and "<b>9</b> runs" in page and "back end: simulator" in page
    assert "Hybla is faster than Reno" in page.partition('id="today"')[2]
    found = json.loads((out / "verdicts.json").read_text())
    assert (found["backend"], found["uncounted"]) == ("simulator", 0)
    users = pl.read_csv(out / "data/users.csv")
    assert set(users["series"]) == {"first", "later", "all"} and users.height == 9
    assert invoke(["users", str(out / "runs/users")]) == 0, "the results are those of an evaluation"
    before, attempts = (out / "data/variants.csv").read_bytes(), carried_out(out)
    assert len(attempts) == 9
    assert invoke(command) == 0
    assert (out / "data/variants.csv").read_bytes() == before
    assert carried_out(out) == attempts, "no run was carried out again"


def test_a_part_of_a_study_is_foretold_carried_out_and_added_to(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["study", "run", str(small), "-o", str(out), "--quick"]
    part = [*command, "--sweep", "variants", "--seeds", "2"]
    assert invoke([*part, "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"variants +2 points +2 seeds +\d+ \w+", said[0])
    assert re.match(r"simulator: about .* for 4 runs", said[1])
    assert invoke([*part, "--dry-run", "--json"]) == 0
    foretold = json.loads(capsys.readouterr().out)
    assert foretold["sweeps"] == {"variants": {"points": 2, "seeds": 2}}
    assert foretold["expected"]["runs"] == 4
    assert not out.exists()
    assert invoke(part) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("No claim of the paper is about these sweeps. 4 runs")
    assert {path.name for path in (out / "runs").iterdir()} == {"variants"}
    assert "a part: <b>variants</b>" in (out / "index.html").read_text()
    found = json.loads((out / "verdicts.json").read_text())
    assert found["sweeps"] == ["variants"]
    assert found["runs"] == 4
    assert found["verdicts"] == []  # the claim is the other sweep's
    assert invoke(command) == 0
    assert len(Results.open(out / "runs/variants").attempts()) == 6, "those of the part count"
    assert "a part:" not in (out / "index.html").read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--sweep", "variant"],
            'found "variant"; accepted: one of variants, users (did you mean "variants"?)',
        ),
        (["--seeds", "0"], "found 0; accepted: a whole number from 1"),
    ],
)
def test_a_part_that_a_study_lacks_is_refused(
    small: Path, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["study", "run", str(small), "--quick", *options]) == 2
    assert told in capsys.readouterr().err


def carried_out(out: Path) -> list[tuple[object, ...]]:
    """All attempts of all sweeps."""
    return [
        row for sweep in ("users", "variants") for row in Results.open(out / "runs" / sweep).attempts().rows()
    ]


def test_a_folder_with_pages_of_other_text_is_refused(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", "run", str(small), "-o", str(tmp_path / "out"), "--quick"]
    assert invoke(command) == 0
    capsys.readouterr()
    assert invoke([*command, "--set", "httpae_text=20 kB"]) == 2
    assert "is another one than that of these runs; accepted: " in capsys.readouterr().err


def test_a_page_that_its_rehearsals_found_unfit_is_named_with_the_reason(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unfit = photo_pages.make(1, 100, tmp_path / "unfit")
    unfit.rehearsal = Rehearsal(
        browser="b", maker="m", loads=1, seconds=1, verdict="does not", reason="it varies"
    )
    save_index(unfit, tmp_path / "unfit")
    asked = f'page = "{tmp_path}/unfit" }}'
    small.write_text(small.read_text().replace("images = 5 }\nover = { queue", f"{asked}\nover = {{ queue"))
    assert invoke(["study", "run", str(small), "-o", str(tmp_path / "out"), "--quick"]) == 0
    assert "unfit cannot count: it varies" in capsys.readouterr().err.splitlines()


def test_points_whose_runs_time_out_are_named_and_the_other_sweeps_are_carried_out(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = small.read_text().replace('value = "20 min"', 'value = "9 s"')
    small.write_text(text.replace("images = 5 }\nover = { queue", "images = 30 }\nover = { queue"))
    out = tmp_path / "out"
    assert invoke(["study", "run", str(small), "-o", str(out), "--quick"]) == 0
    found = json.loads((out / "verdicts.json").read_text())
    assert [name for name, _ in found["empty"]] == ["variants", "variants"]
    [today] = found["today"]
    assert (today["word"], today["ours"]) == ("not comparable", "no visit counts at all of its points")
    assert (
        "variants: rate_kbit_s 256, images 30, queue 50, congestion reno" in (out / "index.html").read_text()
    )
    assert not (out / "data/variants.csv").exists() and (out / "data/users.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http-ae-2011", "--quick", "--backend", "testbed"], '--backend: found "testbed" with --quick'),
        (["cwv-2010", "--backend", "testbed"], '--backend: found "testbed"; accepted: simulator: this study'),
    ],
)
def test_a_back_end_that_a_form_does_not_have_is_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["study", "run", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'series = "congestion"',
            'series = "images"',
            'variants.series: found "images"; accepted: one of queue',
        ),
        ('against = "reno"', 'against = "cubic"', 'against: found "cubic"; accepted: one of reno, hybla'),
        ("value = 7\n", "", "claims[0].value: found nothing; accepted: a number where the kind is about"),
        ("users = [3]", "users = [0]", "sweeps.users.users: found 0; accepted: a number of at least 1"),
    ],
)
def test_a_wrong_study_file_is_refused_in_one_line(
    small: Path, old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_text(small.read_text().replace(old, new))
    assert invoke(["study", "run", str(small), "--quick"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
