"""Damaged results end every command that reads them in one line that names the file, never in a number."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from report.fixture import write_results

from wirepaint import cli, metrics
from wirepaint.errors import UsageError
from wirepaint.results import Results, contents, journal, sealed, trace
from wirepaint.results.manifest import FORMAT

sys.path.insert(0, str(Path(__file__).parents[1]))
from runners.plans import Fake, carry_out

COMMANDS = {
    "compare": ["compare"],
    "compare --json": ["compare", "--json"],
    "agree": ["agree"],
    "report": ["report"],
    "export csv": ["export", "--to", "csv"],
    "export parquet": ["export", "--to", "parquet"],
    "export har": ["export", "--to", "har"],
    "verify": ["verify"],
}
KEY = "lte-cubic-h2.user.museum.v01"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("whole") / "results", visits=1, flaws=False)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "results")
    return tmp_path / "results"


def manifest(change: Callable[[dict], object], *, seal: bool = True) -> Callable[[Path], None]:
    """A manifest that was changed; sealed again, as by somebody who knows how, unless ``seal`` is false."""

    def damage(folder: Path) -> None:
        path = folder / "manifest.json"
        value = json.loads(path.read_bytes())
        change(value)
        path.write_bytes(sealed.dumps(value) if seal else json.dumps(value).encode())

    return damage


def sql(statement: str, *, seal: bool = False) -> Callable[[Path], None]:
    """A journal that was changed by SQL; its rows sealed again if ``seal``."""

    def damage(folder: Path) -> None:
        db = sqlite3.connect(folder / "journal.sqlite")
        db.executescript(statement)
        if seal:
            for (key,) in db.execute("SELECT key FROM run").fetchall():
                journal._change(db, key)
        db.commit()
        db.close()

    return damage


def write(name: str, content: bytes | str) -> Callable[[Path], object]:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << (at % 8)
    path.write_bytes(content)


def gone(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()

    return damage


def linked(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).rename(folder.parent / "elsewhere")
        (folder / name).symlink_to(folder.parent / "elsewhere")

    return damage


def table(
    change: Callable[[pl.DataFrame], pl.DataFrame] | bytes, name: str = "page"
) -> Callable[[Path], None]:
    """A table that is wrong by itself: the journal knows its digest."""

    def damage(folder: Path) -> None:
        path = folder / "runs" / KEY / f"{name}.parquet"
        path.write_bytes(change) if isinstance(change, bytes) else change(
            pl.read_parquet(path)
        ).write_parquet(path)
        files = json.dumps(contents.record(path.parent))
        sql(f"UPDATE run SET files = '{files}' WHERE key = '{KEY}'", seal=True)(folder)

    return damage


def nested(value: dict) -> None:
    deep: list = []
    for _ in range(900):
        deep = [deep]
    value["evaluation"]["deep"] = deep


RUN = f"WHERE key = '{KEY}'"
PAGE = f"runs/{KEY}/page.parquet"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest: no JSON": (write("manifest.json", "{"), "manifest.json: found a damaged file"),
    "manifest: a list": (write("manifest.json", "[1, 2]"), "manifest.json: found a damaged file"),
    "manifest: empty": (write("manifest.json", ""), "manifest.json: found a damaged file"),
    "manifest: bytes": (write("manifest.json", bytes(range(256))), "manifest.json: found a damaged file"),
    "manifest: nested": (
        write("manifest.json", '{"format": 2, "x": ' + "[" * 200_000 + "]" * 200_000 + "}"),
        "manifest.json: found a damaged file",
    ),
    "manifest: a digit": (
        manifest(lambda m: m.update(seed=43), seal=False),
        "manifest.json: found a damaged file: its content does not fit its sha256",
    ),
    "manifest: an older one": (
        write("manifest.json", '{"format": 1}'),
        f"manifest.json: found format 1; accepted: format {FORMAT}",
    ),
    "manifest: no evaluation": (
        manifest(lambda m: m.pop("evaluation")),
        "manifest.json: evaluation: found nothing; accepted: this key",
    ),
    "manifest: a text for a table": (
        manifest(lambda m: m["evaluation"].update(scenarios="lte")),
        'manifest.json: evaluation.scenarios: found "lte"; accepted: a table',
    ),
    "manifest: a number for a name": (
        manifest(lambda m: m["evaluation"]["user_agents"][1].update(page=7)),
        "manifest.json: evaluation.user_agents[1].page: found 7; accepted: a text",
    ),
    "manifest: another back end": (
        manifest(lambda m: m.update(backend="guess")),
        'manifest.json: backend: found "guess"; accepted:',
    ),
    "manifest: half a character": (
        manifest(lambda m: m.update(title="\ud800")),
        "manifest.json: found a damaged file",
    ),
    "manifest: of another journal": (
        manifest(lambda m: m.update(journal="0" * 32)),
        "journal.sqlite: found other runs than",
    ),
    "manifest: a link": (linked("manifest.json"), "manifest.json: found a symbolic link"),
    "manifest: missing": (gone("manifest.json"), "manifest.json: found no such file"),
    "journal: missing": (gone("journal.sqlite"), "journal.sqlite: found no such file"),
    "journal: no database": (
        write("journal.sqlite", b"x" * 9000),
        "journal.sqlite: found a journal that cannot",
    ),
    "journal: empty": (write("journal.sqlite", b""), "journal.sqlite: found format 0"),
    "journal: a link": (linked("journal.sqlite"), "journal.sqlite: found a symbolic link"),
    "journal: no table": (
        sql("DROP TABLE attempt"),
        "journal.sqlite: found other tables than those of format",
    ),
    "journal: no column": (
        sql("ALTER TABLE run DROP COLUMN duration_ns"),
        "journal.sqlite: found other tables than those of format",
    ),
    "journal: a run less in the plan": (
        sql("UPDATE plan SET number = number - 1"),
        "journal.sqlite: found other runs than",
    ),
    "journal: no plan": (sql("DELETE FROM plan"), "journal.sqlite: plan: found a damaged table"),
    "journal: a view": (
        sql("DROP TABLE attempt; CREATE VIEW attempt AS SELECT 1"),
        "journal.sqlite: found other tables than",
    ),
    "journal: an axis": (
        sql(f"UPDATE run SET congestion = 'fld' {RUN}"),
        f"journal.sqlite: run {KEY}: found a damaged row",
    ),
    "journal: a verdict": (
        sql(f"UPDATE run SET verdict = 'invalid' {RUN}"),
        f"journal.sqlite: run {KEY}: found a damaged row",
    ),
    "journal: a state": (
        sql(f"UPDATE run SET state = 'planned', verdict = NULL, files = NULL {RUN}"),
        f"journal.sqlite: run {KEY}: found a damaged row",
    ),
    "journal: no text": (
        sql(f"UPDATE run SET cause = CAST(x'ff' AS TEXT) {RUN}"),
        "journal.sqlite: found a journal that cannot",
    ),
    "journal: no list": (
        sql(f"UPDATE run SET reasons = '7' {RUN}", seal=True),
        f"journal.sqlite: run {KEY}: found a damaged row",
    ),
    "journal: no files": (
        sql(f"UPDATE run SET files = '[]' {RUN}", seal=True),
        f"journal.sqlite: run {KEY}: found a damaged row",
    ),
    "journal: a foreign file": (
        sql(f'UPDATE run SET files = \'{{"../../x": "0"}}\' {RUN}', seal=True),
        f'{KEY}: found the file "../../x"',
    ),
    "journal: a foreign key": (
        sql(f"UPDATE run SET key = '../../x' {RUN}", seal=True),
        'journal.sqlite: found the run key "../../x"',
    ),
    "journal: a run too few": (sql(f"DELETE FROM run {RUN}"), "journal.sqlite: found other runs than"),
    "table: a bit": (lambda folder: flip(folder / PAGE, 300), f"{PAGE}: found a damaged file (SHA-256"),
    "table: cut off": (
        lambda folder: write(PAGE, (folder / PAGE).read_bytes()[:-9])(folder),
        f"{PAGE}: found a damaged",
    ),
    "table: missing": (gone(PAGE), f"{PAGE}: found no such file"),
    "table: one too many": (
        write(f"runs/{KEY}/packet.parquet", b""),
        "packet.parquet: found a file that the run did not",
    ),
    "table: a link": (linked(PAGE), f"{PAGE}: found a symbolic link"),
    "run: missing": (gone(f"runs/{KEY}"), f"runs/{KEY}: found no folder"),
    "run: a link": (linked(f"runs/{KEY}"), f"runs/{KEY}: found a symbolic link"),
    "runs: a link": (linked("runs"), "a symbolic link"),
}
OF_TABLES = {
    "no table": (table(b"PAR1 but not really"), f"{PAGE}: found a file that cannot be read"),
    "a column too few": (
        table(lambda frame: frame.drop("load_event")),
        f"{PAGE}: column load_event: found nothing; accepted: the type Int64",
    ),
    "another type": (
        table(lambda frame: frame.cast({"load_event": pl.String})),
        f"{PAGE}: column load_event: found the type String; accepted: the type Int64",
    ),
    "a column too many": (
        table(lambda frame: frame.with_columns(more=1)),
        f"{PAGE}: column more: found the type Int32; accepted: a column of",
    ),
}
"""Damage that hashing cannot find."""


def refused(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The line with which a command refuses the folder; other output comes before it."""
    command, *options = arguments

    def there() -> list[Path]:
        """All files but those of the metrics, which any reader keeps."""
        names = folder.rglob("*")
        return sorted(path for path in names if ".sqlite-" not in path.name and "metrics" not in path.parts)

    before = there()
    code = cli.invoke([command, str(folder), *options])
    out, err = capsys.readouterr()
    err = re.sub(r".* is missing; .* tells which\.\n", "", err)
    assert (code, err.count("\n"), err[:11]) == (2, 1, "wirepaint: "), err
    assert "a fault of wirepaint" not in err
    if command != "verify":
        assert out == ""
        assert there() == before
    return out + err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_command_that_reads_damaged_results_names_the_file(folder: Path, damage: str, name: str, capsys):
    harm, said = DAMAGES[damage]
    harm(folder)
    found = refused(COMMANDS[name], folder, capsys)
    if name == "verify":  # the path stands without the folder, and all faults are named
        assert said.partition(": found")[0].split(": ")[-1] in found
    else:
        assert said in found


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "verify"])
@pytest.mark.parametrize("damage", OF_TABLES)
def test_a_table_that_is_none_is_named_though_its_digest_fits(folder: Path, damage: str, name: str, capsys):
    harm, said = OF_TABLES[damage]
    harm(folder)
    assert said in refused(COMMANDS[name], folder, capsys)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: flip(folder / "evaluation.toml", 12), "evaluation.toml: found a damaged file"),
        (gone("evaluation.toml"), "evaluation.toml: found no such file"),
        (
            lambda folder: flip(folder / "calibration/here/lte.json", 99),
            "calibration/here/lte.json: found a damaged file",
        ),
        (gone("calibration/here/3g.json"), "calibration/here/3g.json: found no such file"),
        (sql("UPDATE calibration SET measured = '{}'"), "journal.sqlite: network 3g: found a damaged row"),
        (
            sql("UPDATE calibration SET network = '../../x' WHERE network = 'lte'"),
            'journal.sqlite: found the network "../../x"',
        ),
        (linked("calibration"), "calibration: found a symbolic link"),
    ],
    ids=["evaluation", "no evaluation", "calibration", "no calibration", "row", "foreign", "link"],
)
@pytest.mark.parametrize("name", [pytest.param("report", marks=pytest.mark.slow), "verify"])
def test_what_only_the_report_reads_is_checked_too(folder: Path, harm, said: str, name: str, capsys):
    harm(folder)
    found = refused(COMMANDS[name], folder, capsys)
    assert said in found or said.partition(": found")[0] in found


def test_a_report_does_not_follow_a_link_out_of_the_results(folder: Path, tmp_path: Path, capsys):
    (tmp_path / "mine").write_text("mine")
    (folder / "report.html").symlink_to(tmp_path / "mine")
    assert "report.html: found a symbolic link" in refused(["report"], folder, capsys)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manifest.json", "journal.sqlite", "page.parquet"])
def test_a_flipped_bit_anywhere_is_an_error_or_changes_nothing(tmp_path: Path, name: str):
    carry_out(tmp_path, tmp_path / "r", Fake())
    path = next((tmp_path / "r").rglob(name))
    whole = path.read_bytes()
    runs, table = Results.open(tmp_path / "r").runs(), metrics.table(Results.open(tmp_path / "r"), None)
    rng = random.Random(name)
    refusals = 0
    for _ in range(120):
        flip(path, rng.randrange(len(whole) * 8))
        shutil.rmtree(tmp_path / "r/metrics", ignore_errors=True)  # kept metrics need no trace
        try:
            found = Results.open(tmp_path / "r")
            assert found.runs().equals(runs)
            assert found.attempts().height >= 0
            assert metrics.table(found, None).equals(table)
        except UsageError:
            refusals += 1
        path.write_bytes(whole)
    assert refusals > 15


def test_a_folder_whose_name_is_a_pattern_is_read_as_any_other(whole: Path, tmp_path: Path):
    shutil.copytree(whole, tmp_path / "res[1]*")
    assert cli.invoke(["export", str(tmp_path / "res[1]*"), "--to", "csv", "-o", str(tmp_path / "out")]) == 0
    assert (
        Results.open(tmp_path / "res[1]*")
        .trace(KEY, "page")
        .equals(trace.read_table(whole / "runs" / KEY, "page"))
    )
