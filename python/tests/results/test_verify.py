"""``wirepaint verify``: undamaged results, and advice for the others."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from wirepaint import cli
from wirepaint.results import Results
from wirepaint.results.store import Store
from wirepaint.results.verify import MOST_LINES

sys.path.insert(0, str(Path(__file__).parents[1]))
from runners import plans
from runners.plans import KEYS, Fake, carry_out

KEY = "fast-cubic-h2.user.one.v01"
OTHER = "fast-reno-h2.user.two.v02"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    good = {"verdict": "ok", "quantities": [], "machine": {"host": "here"}}
    fake = Fake()
    fake.calibrate = lambda network: good
    plans.pool.carry_out(plans.planned(tmp_path), tmp_path / "r", [fake.backend()], plans.Lines())
    return tmp_path / "r"


def verify(*arguments: object) -> int:
    return cli.invoke(["verify", *map(str, arguments)])


def test_whole_results_are_said_to_be_whole(folder: Path, capsys):
    capsys.readouterr()
    assert verify(folder) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (f"{folder}: {KEYS} of {KEYS} runs whole\n", "")


def test_all_that_is_damaged_missing_or_foreign_is_named_and_what_to_do(folder: Path, capsys):
    (folder / "runs" / KEY / "page.parquet").write_bytes(b"PAR1")
    (folder / "runs" / KEY / "bytes").unlink()
    (folder / "runs" / OTHER / "notes").write_text("mine")
    (folder / "runs/other").mkdir()
    (folder / "calibration/here/fast.json").unlink()
    (folder / "calibration/here/slow.json").write_text("{}")
    (folder / "calibration/there").mkdir()
    (folder / "evaluation.toml").write_text("")
    capsys.readouterr()
    assert verify(folder) == 2
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == f"{folder}: {KEYS - 2} of {KEYS} runs whole"
    assert [line.partition(": ")[0].split() for line in lines[1:9]] == [
        ["damaged", "evaluation.toml"],
        ["missing", "calibration/here/fast.json"],
        ["foreign", "calibration/here/slow.json"],
        ["foreign", "calibration/there"],
        ["missing", f"runs/{KEY}/bytes"],
        ["damaged", f"runs/{KEY}/page.parquet"],
        ["foreign", f"runs/{OTHER}/notes"],
        ["foreign", "runs/other"],
    ]
    assert f"rm -r {folder}/runs/{KEY} {folder}/runs/{OTHER}" in lines[10]
    assert lines[11].endswith(f"wirepaint run {folder}")
    assert err == (
        f"wirepaint: {folder}: found 2 damaged, 2 missing, 4 foreign; accepted: results as they were kept\n"
    )


def test_what_it_says_to_do_makes_the_results_whole_again(folder: Path, tmp_path: Path, capsys):
    (folder / "runs" / KEY / "page.parquet").write_bytes(b"PAR1")
    assert verify(folder) == 2
    shutil.rmtree(folder / "runs" / KEY)
    assert verify(folder) == 2
    assert f"missing  runs/{KEY}: no folder" in capsys.readouterr().out
    again = Fake()
    carry_out(tmp_path, folder, again)
    assert again.asked == [(KEY, 2)]
    assert verify(folder) == 0


def test_a_missing_run_has_one_line_and_nothing_is_to_be_removed(folder: Path, tmp_path: Path, capsys):
    shutil.copytree(folder, tmp_path / "copy")
    for run in (tmp_path / "copy/runs").iterdir():
        if ".two." in run.name:
            shutil.rmtree(run)
    capsys.readouterr()
    assert verify(tmp_path / "copy") == 2
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert KEYS // 2 < MOST_LINES
    assert [line.split()[0] for line in lines[1:-2]] == ["missing"] * (KEYS // 2)
    assert lines[-2] == "The missing runs are carried out again:"
    assert lines[-1].endswith(f"wirepaint run {tmp_path / 'copy'}"), "the folder that was given"
    assert f"found {KEYS // 2} missing; " in err


def test_of_many_faults_some_are_printed_and_the_others_counted(folder: Path, capsys):
    runs = sorted((folder / "runs").iterdir())
    assert 2 * len(runs) > MOST_LINES > len(runs)
    for run in runs:
        (run / "bytes").unlink()
        (run / "notes").touch()
    capsys.readouterr()
    assert verify(folder) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[MOST_LINES + 1] == f"  and {2 * len(runs) - MOST_LINES} more (--json has all)"
    assert len(lines) == MOST_LINES + 5
    shutil.rmtree(folder / "runs")
    assert verify(folder) == 2
    assert f"make {folder}/runs, an empty folder. Then:\n" in capsys.readouterr().out


def test_several_folders_are_looked_at_and_one_that_is_not_whole_decides(
    folder: Path, tmp_path: Path, capsys
):
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy/manifest.json").write_text("{}")
    capsys.readouterr()
    assert verify(tmp_path / "copy", folder, tmp_path / "nowhere") == 2
    out, err = capsys.readouterr()
    assert f"{folder}: {KEYS} of {KEYS} runs whole\n" in out
    assert "  damaged  manifest.json: a damaged file\n" in out
    assert "  missing  manifest.json: no such folder\n" in out
    assert err.startswith(f"wirepaint: {tmp_path / 'copy'}, {tmp_path / 'nowhere'}: found ")


def test_json_has_every_fault(folder: Path, capsys):
    (folder / "runs" / KEY / "bytes").unlink()
    capsys.readouterr()
    assert verify(folder, "--json") == 2
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["planned"], found["done"], found["whole"]) == (KEYS, KEYS, KEYS - 1)
    fault = {"path": f"{folder}/runs/{KEY}/bytes", "kind": "missing", "found": "no such file"}
    assert found["faults"] == [fault]


def test_a_run_under_way_is_no_fault(tmp_path: Path):
    plan = plans.planned(tmp_path)
    with Store(tmp_path / "r", plan, {"browser": "none"}) as store:
        _, partial = store.begin(plan.runs[0].key)
        (partial / "page.parquet").write_bytes(b"a part")
        assert verify(tmp_path / "r") == 0
        partial.rename(tmp_path / "r/runs" / plan.runs[0].key)  # whole, and not in the journal yet
        assert verify(tmp_path / "r") == 0
    assert Results.open(tmp_path / "r").runs("done").is_empty()


def test_a_pipe_in_place_of_a_file_does_not_hang(folder: Path, capsys):
    (folder / "runs" / KEY / "page.parquet").unlink()
    os.mkfifo(folder / "runs" / KEY / "page.parquet")
    assert verify(folder) == 2
    assert f"damaged  runs/{KEY}/page.parquet: no regular file" in capsys.readouterr().out
