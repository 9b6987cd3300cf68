"""The command line: data on stdout, the rest on stderr, exit codes, no traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from wirepaint import cli, dataplane
from wirepaint.errors import Incomplete, MachineLacks, RunFailed, UsageError

NETWORK = """
title = "Two up, one down"
[down]
rate = "1 Mbit/s"
delay = "10 ms"
[up]
rate = "2 Mbit/s"
"""


def test_the_program_starts_without_loading_what_only_some_commands_need():
    code = (
        "import sys; from wirepaint.cli import invoke; invoke(['--help'])\n"
        "heavy = {'polars', 'pydantic', 'scipy', 'altair', 'pyroute2', 'sqlite3'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("run", "compare", "report", "export", "doctor", "page", "network", "schema", "version"):
        assert f" {command} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], 'Unknown command "rnu". Did you mean "run"?'),
        (
            ["run"],
            "run: found no page; accepted: a page (a HAR, a site's folder, a name) or an evaluation file",
        ),
        (["run", "nowhere.toml"], "nowhere.toml: found no such file or directory; accepted: a TOML file"),
        (["run", "nowhere.toml", "--colour"], "--colour"),
        (
            ["compare", "nowhere"],
            "nowhere: found no such folder; accepted: a results folder, as `wirepaint run` makes it",
        ),
        (["report", "nowhere"], "nowhere: found no such folder"),
        (["export", "nowhere", "--to", "csv"], "nowhere: found no such folder"),
        (["export", "nowhere", "--to", "pdf"], '"csv", "parquet", "har"'),
        (["network", "show", "nowhere"], 'network: found "nowhere"; accepted: '),
        (["network", "calibrate", "nowhere"], 'network: found "nowhere"; accepted: '),
        (
            ["page", "import", "nowhere.har"],
            "nowhere.har: found no such file or folder; accepted: a recording",
        ),
        (["schema", "nowhere"], '"evaluation", "run", "trace"'),
        (["doctor", "--require", "luck"], "testbed"),
    ],
)
def test_bad_usage_ends_with_2_and_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("wirepaint: ")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunFailed("the browser\ncrashed"), 1),
        (MachineLacks("no browser", "Install it."), 2),
        (Incomplete("stopped"), 3),
        (KeyboardInterrupt(), 3),
        (ZeroDivisionError("division by zero"), 1),
        (BrokenPipeError(32, "Broken pipe"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_exit_code_and_one_line(error, code, capsys, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", broken)
    assert cli.invoke([]) == code
    err = capsys.readouterr().err
    assert err.startswith("wirepaint: ")
    assert err.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error():
    argv = [sys.executable, "-c", "from wirepaint.cli import main; main()", "schema", "run"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, stderr=pipe) as command:
        command.stdout.close()
        assert (command.wait(60), command.stderr.read()) == (0, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "run", "cwv-2010", "-o", "file"],
        ["cc", "new", "mine", "-o", "file"],
        ["cc", "show", "fld", "--plot", "file/x.svg"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_place_that_cannot_be_written_is_no_fault_of_ours(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    assert cli.invoke(arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("wirepaint: file"), err


def test_a_data_plane_that_is_not_where_it_was_said_to_be_is_named(monkeypatch):
    monkeypatch.setenv("WIREPAINT_DATAPLANE", "/nowhere")
    with pytest.raises(UsageError, match="WIREPAINT_DATAPLANE: found '/nowhere'; accepted: the path"):
        dataplane.program()


def test_a_fault_of_ours_shows_its_traceback_when_asked(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setenv("WIREPAINT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.invoke([])


def test_without_root_run_names_what_is_missing_and_leaves_nothing(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "mine.toml").write_text(NETWORK)
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("<title>A page</title>")
    file = tmp_path / "evaluation.toml"
    file.write_text(
        'title = "x"\nbackend = "testbed"\n[scenarios]\nnetwork = ["./mine.toml"]\n'
        '[[user_agents]]\npages = ["page"]\n'
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cli.invoke(["run", str(file), "-o", str(tmp_path / "results")]) == 2
    assert "needs root" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_static_site_is_imported_and_its_facts_are_kept(tmp_path: Path, capsys):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text('<title>A page</title><img src="a.png">')
    (tmp_path / "site" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 100)
    made = tmp_path / "made"
    arguments = ["--licence", "CC0-1.0", "--name", "mine", "-o", str(made), "--no-rehearse"]
    assert cli.invoke(["page", "import", str(tmp_path / "site"), *arguments]) == 0
    assert capsys.readouterr().out == f"{made}\n"
    index = json.loads((made / "page.json").read_text())
    assert (index["name"], index["licence"], len(index["resources"])) == ("mine", "CC0-1.0", 2)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["-o", "made/My Shop"], "my-shop"),
        (["-o", "made", "--name", "mine"], "mine"),
        ([], "site"),
    ],
)
def test_a_page_has_the_name_of_the_folder_of_its_output_unless_it_is_named(
    options: list[str], name: str, tmp_path: Path, capsys, monkeypatch
):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>A page</title>")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert cli.invoke(["page", "import", "../site", *options, "--no-rehearse"]) == 0
    assert cli.invoke(["page", "show", capsys.readouterr().out.strip(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == name


def test_without_a_place_the_page_of_a_site_lies_beside_the_site(tmp_path: Path, capsys, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<title>A page</title>")
    (site / "page.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["page", "import", "site/", "--no-rehearse"]) == 0
    assert capsys.readouterr().out == "site-page\n"
    assert (tmp_path / "site-page" / "page.json").is_file()
    assert sorted(file.name for file in site.iterdir()) == ["index.html", "page.json"]
    monkeypatch.chdir(site)
    assert cli.invoke(["page", "import", "."]) == 2
    assert "site-page: found a place within the source" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--sizes-only"], ["--page", "1"]])
def test_what_only_a_har_has_is_refused_with_a_folder(option: list[str], tmp_path: Path, capsys):
    (tmp_path / "index.html").write_text("<title>A page</title>")
    assert cli.invoke(["page", "import", str(tmp_path), *option]) == 2
    assert f"{option[0]}: found it with the folder" in capsys.readouterr().err


def test_what_only_a_folder_has_is_refused_with_a_har(tmp_path: Path, capsys):
    (tmp_path / "x.har").write_text("{}")
    assert cli.invoke(["page", "import", str(tmp_path / "x.har"), "--start", "a.html"]) == 2
    assert "--start: found it with the file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["index.html", "some.html"])
def test_a_document_alone_is_refused_with_the_import_of_its_site(
    name: str, tmp_path: Path, capsys, monkeypatch
):
    (tmp_path / name).write_text("<title>A page</title>")
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["page", "import", name]) == 2
    start = "" if name == "index.html" else f" --start {name}"
    said = f"wirepaint: {name}: found an HTML document; accepted: the folder that it lies in: "
    assert capsys.readouterr().err.startswith(f"{said}`wirepaint page import .{start} -o PAGE`, or")
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_page_show_shows_a_site_before_any_rehearsal(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text('<title>A page</title><img src="a.png">')
    (tmp_path / "site" / "a.png").write_bytes(b"0" * 100)
    (tmp_path / "site" / "b.png").write_bytes(b"0" * 100)
    assert cli.invoke(["page", "show", str(tmp_path / "site")]) == 0
    out = capsys.readouterr().out
    assert "2 requests, 1 host" in out
    assert "never rehearsed: the recorded causes serve" in out
    assert "\x1b" not in out
    assert cli.invoke(["page", "show", str(tmp_path / "site"), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["left_out"] == ["https://site.example/b.png"]


def test_page_show_refuses_what_is_no_page(capsys):
    assert cli.invoke(["page", "show", "nowhere"]) == 2
    assert 'page: found "nowhere"; accepted: one of agency, ' in capsys.readouterr().err


def test_network_show_says_of_a_capacity_trace_its_name_length_and_mean_rate(capsys):
    assert cli.invoke(["network", "show", "lte-varying"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") < 100
    capacity = json.loads(out)["down"]["capacity"]
    assert cli.invoke(["network", "show", "lte-varying", "--full"]) == 0
    times = json.loads(capsys.readouterr().out)["down"]["capacity"]["opportunities_ms"]
    assert capacity["trace"] == "lte-varying.down"
    assert (capacity["opportunities"], capacity["duration_ms"]) == (len(times), times[-1])
    assert capacity["mean_bit_per_s"] == round(len(times) * 1504 * 8000 / times[-1])


def test_network_show_shortens_the_trace_of_a_change_too(tmp_path: Path, capsys):
    (tmp_path / "short.trace").write_text("1\n2\n3\n6\n")
    change = '[[down.changes]]\nat = "1 s"\ntrace = "short.trace"\n'
    (tmp_path / "mine.toml").write_text(NETWORK.replace("[up]", f"{change}[up]"))
    assert cli.invoke(["network", "show", str(tmp_path / "mine.toml")]) == 0
    (change,) = json.loads(capsys.readouterr().out)["down"]["changes"]
    assert change["capacity"] == {
        "kind": "trace", "trace": "short.trace", "opportunities": 4, "duration_ms": 6,
        "mean_bit_per_s": round(4 * 1504 * 8000 / 6),
    }  # fmt: skip


def test_network_show_prints_the_resolved_network(tmp_path: Path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(NETWORK)
    assert cli.invoke(["network", "show", str(file)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == "mine"
    assert shown["down"]["capacity"] == {"kind": "rate", "bit_per_s": 1_000_000}


def test_network_list_has_a_row_for_each_network_of_the_catalogue(capsys):
    from wirepaint import catalogue

    assert cli.invoke(["network", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == catalogue.names("network")
    assert {"lte", "3g"} <= {row["name"] for row in rows}


def test_page_list_has_a_row_for_each_page_of_the_catalogue(capsys):
    assert cli.invoke(["page", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 6
    assert all(row["requests"] > 0 and row["bytes"] > 0 for row in rows)
    assert all("verdict" in row and "simulator_error" in row for row in rows)
    assert cli.invoke(["page", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == [
        "name", "requests", "bytes", "verdict", "simulator", "title"
    ]  # fmt: skip


def test_the_printed_schema_is_the_shipped_one(capsys):
    from wirepaint import schemas

    assert cli.invoke(["schema"]) == 0
    assert capsys.readouterr().out == (schemas.FOLDER / "evaluation.schema.json").read_text()


def test_the_examples_are_good_evaluations():
    from wirepaint.evaluation import plan

    examples = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
    assert examples
    for example in examples:
        assert plan(example).runs


OWN_CODE = """
title = "Own code"
[scenarios]
network = [{title = "fast", down = {}, up = {}}]
congestion = ["./mine.c"]
[[user_agents]]
pages = ["photos"]
"""


@pytest.fixture
def own_code(tmp_path, monkeypatch):
    """An evaluation that names a C file; says whether it would have been run."""
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(OWN_CODE)
    Path("mine.c").write_text("int x;")
    compiled = []

    def control(file, place):
        compiled.append(file.name)
        raise UsageError(place, "it is compiled", "nothing")

    monkeypatch.setattr(dataplane, "control", control)
    return compiled


def test_an_evaluation_with_code_of_its_own_is_refused_with_the_command_that_accepts_it(
    own_code, capsys, monkeypatch
):
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert cli.invoke(["run", "e.toml", "-o", "my results"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        'wirepaint: e.toml: scenarios.congestion[0]: found "./mine.c"; accepted: C files that you'
    )
    assert line.endswith(". Then: wirepaint run e.toml -o 'my results' --trust")
    assert own_code == []


def test_trust_accepts_the_code_of_an_evaluation(own_code, capsys):
    assert cli.invoke(["run", "e.toml", "--trust"]) == 2
    assert "it is compiled" in capsys.readouterr().err
    assert own_code == ["mine.c"]


@pytest.mark.parametrize(("answer", "compiled"), [("y", 1), ("YES", 1), ("n", 0), ("", 0)])
def test_at_a_terminal_it_is_asked_about(own_code, capsys, monkeypatch, answer, compiled):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    monkeypatch.setattr(sys, "stderr", shown)
    assert cli.invoke(["run", "e.toml"]) == 2
    assert "e.toml names code" in shown.getvalue() and "mine.c" in shown.getvalue()
    assert len(own_code) == compiled
