"""Keys of an evaluation as options of a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError, UsageErrors
from wirepaint.evaluation import options


def data(*line: str) -> dict:
    _, texts = options.tokens(line, [])
    return options.applied({}, options.read(texts))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["--network", "lte,wpt-cable"], {"scenarios": {"network": ["lte", "wpt-cable"]}}),
        (["--http", "h1", "--http", "h2"], {"scenarios": {"http": ["h1", "h2"]}}),
        (["--initial-window=10, 30"], {"scenarios": {"initial_window": [10, 30]}}),
        (["--scenarios.http", "h1"], {"scenarios": {"http": ["h1"]}}),
        (["--background", "busy"], {"scenarios": {"background": ["busy"]}}),
        (["--visits", "8"], {"user_agents": [{"visits": 8}]}),
        (["--viewport", "412,823"], {"user_agents": [{"viewport": [412, 823]}]}),
        (["--browser.engine", "light"], {"user_agents": [{"browser": {"engine": "light"}}]}),
        (["--browser", "light"], {"user_agents": [{"browser": "light"}]}),
        (["--together", "true"], {"user_agents": [{"together": True}]}),
        (["--together", "family"], {"user_agents": [{"together": "family"}]}),
        (["--stop.interval", "1 %"], {"stop": {"interval": "1 %"}}),
        (["--stop.interval", "0.01"], {"stop": {"interval": 0.01}}),
        (["--sysctls.net.ipv4.tcp_sack", "0"], {"sysctls": {"net.ipv4.tcp_sack": 0}}),
        (["--capture.snap-length", "full"], {"capture": {"snap_length": "full"}}),
        (["--sysctls.net.a-b", "1"], {"sysctls": {"net.a-b": 1}}),
        (["--iw", "10,32"], {"scenarios": {"initial_window": [10, 32]}}),
        (["--cc", "cubic", "--congestion", "bbr"], {"scenarios": {"congestion": ["cubic", "bbr"]}}),
        (["--title", "Fast, or not?"], {"title": "Fast, or not?"}),
        (["--packet-trace", "true"], {"packet_trace": True}),
        (
            ["--network", '{title = "x", down = {}, up = {}}', "--network", "lte"],
            {"scenarios": {"network": [{"title": "x", "down": {}, "up": {}}, "lte"]}},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_sets_its_key_in_the_type_that_the_key_takes(line, expected):
    assert data(*line) == expected


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        (
            ["--netwrk", "lte"],
            r'^--netwrk: found no such option \(did you mean "--network"\?\); accepted: the ',
        ),
        (
            ["--loss", "0.01"],
            r"^--loss: found no such option; accepted: a table in --network with down.loss or up.loss$",
        ),
        (["--latency", "9 ms"], "accepted: a table in --network with down.delay or up.delay$"),
        (["--engine", "light"], "^--engine: found no such option; accepted: --browser.engine$"),
        (
            ["--interval", "1 %"],
            "accepted: --stop.interval, or a table in --network with down.queue.interval",
        ),
        (["--runs", "8"], "^--runs: found no such option; accepted: the options of `wirepaint run --help`"),
        (["--stop.intervall", "1"], 'accepted: one of --stop.visits, .*did you mean "--stop.interval"'),
        (["--scenarios.htp", "h1"], 'did you mean "--scenarios.http"'),
        (["--visits", "eight"], '--visits: found "eight"; accepted: a whole number'),
        (["--packet-trace", "maybe"], '--packet-trace: found "maybe"; accepted: true or false'),
        (["--seed", "1", "--seed", "2"], "--seed: found it 2 times; accepted: one value"),
        (["--visits"], "--visits: found nothing; accepted: a value after it"),
        (["--scenarios", "x"], "--scenarios: found a table; accepted: a key of it after a dot"),
        (["--network", "{title = }"], "--network: found .*; accepted: a value of TOML"),
        (
            ["-v", "8"],
            "^-v: found no such option; accepted: the options of `wirepaint run --help` and keys of an ",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_option_that_is_wrong_is_refused_by_its_name(line, refusal):
    with pytest.raises(UsageError, match=refusal):
        data(*line)


def test_all_wrong_options_are_named_at_once():
    with pytest.raises(UsageErrors) as refused:
        data("--visits", "eight", "--seed", "x", "--warmup", "no")
    assert [error.place for error in refused.value.errors] == ["--visits", "--seed", "--warmup"]


def test_a_setting_of_users_holds_for_each_of_them_and_leaves_the_rest():
    before = {"title": "x", "user_agents": [{"pages": ["a"], "visits": 3}, {"pages": ["b"]}]}
    changed = options.applied(before, options.read([("--visits", "8")]))
    assert changed["user_agents"] == [{"pages": ["a"], "visits": 8}, {"pages": ["b"], "visits": 8}]
    assert before["user_agents"][0]["visits"] == 3


def test_a_path_is_one_of_the_working_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = data("--congestion", "cubic,./mine.c,~/other.c", "--network", "own.toml,lte")
    assert made["scenarios"] == {
        "congestion": ["cubic", str(tmp_path / "mine.c"), "~/other.c"],
        "network": [str(tmp_path / "own.toml"), "lte"],
    }


def test_an_error_of_a_key_names_the_option_that_set_it():
    settings = options.read(
        [("--http", "h3"), ("--visits", "0"), ("--congestion", "{name = 'own', own_step = 0}")]
    )
    errors = UsageErrors(
        [
            UsageError("e.toml: scenarios.http[0]", '"h3"', "h1 or h2"),
            UsageError("e.toml: user_agents[1].visits", "0", "at least 1"),
            UsageError("e.toml: scenarios.congestion[0].own_step", "0", "1 to 9"),
            UsageError("e.toml: seed", "x", "a number"),
            UsageError("own.toml: down.rate", "x", "a rate"),
        ]
    )
    said = options.said(errors, settings, "e.toml")
    assert isinstance(said, UsageErrors)
    assert [each.place for each in said.errors] == [
        "--http", "--visits", "--congestion: own_step", "e.toml: seed", "own.toml: down.rate"
    ]  # fmt: skip


def test_a_text_in_place_of_a_table_is_answered_with_the_options_of_its_keys():
    settings = options.read([("--stop", "early"), ("--flows", "x")])
    errors = UsageErrors(
        [
            UsageError("e.toml: stop", '"early"', "a table"),
            UsageError("e.toml: flows[0]", '"x"', "a table"),
            UsageError("e.toml: stop.visits", "0", "at least 1"),
        ]
    )
    said = options.said(errors, settings, "e.toml")
    assert isinstance(said, UsageErrors)
    assert [each.accepted for each in said.errors] == [
        "its keys: --stop.visits, --stop.interval", "a table", "at least 1"
    ]  # fmt: skip
