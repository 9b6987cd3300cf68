"""Comparing two results folders."""

import json

import polars as pl
import pytest
from simulated_runs import OWN_METRIC

from wirepaint import cli, metrics
from wirepaint.errors import UsageError
from wirepaint.results import Results, sealed
from wirepaint.results.outcome import Outcome
from wirepaint.statistics import folders
from wirepaint.statistics.compare import compare_folders


def stretched(by: float):
    """Load times of about 300 ms, ``by`` times longer, with visits that differ a little."""
    return lambda run: by * (1 + 0.01 * run.visit)


@pytest.fixture
def base(results_folder):
    return Results.open(results_folder(stretched(1.0), name="last-week"))


def rewritten(results: Results, change) -> Results:
    """The results with another manifest, as another machine or another file would have made it."""
    change(results.manifest)
    (results.folder / "manifest.json").write_bytes(sealed.dumps(results.manifest))
    return Results.open(results.folder)


def test_a_slower_folder_is_told_apart_at_each_network_and_control(base, results_folder):
    slower = Results.open(results_folder(stretched(1.2), name="this-week"))
    rows, pair = compare_folders(base, slower, ["page-load-time"], by_page=False)
    assert (pair.base, pair.candidate) == ("last-week", "this-week")
    assert pair.notes == []
    where = {tuple(row.conditions.values()) for row in rows}
    assert where == {("lte", "cubic"), ("lte", "fld"), ("3g", "cubic"), ("3g", "fld"), ()}
    for row in rows:
        assert row.shift_rel is not None
        assert row.shift_rel.value == pytest.approx(0.2, abs=0.02)
        assert row.baseline.level == "last-week"


def test_the_same_pages_again_are_the_same(base, results_folder):
    again = Results.open(results_folder(stretched(1.0), name="this-week"))
    rows, _ = compare_folders(base, again, ["page-load-time"])
    assert rows
    assert {row.effect for row in rows} == {0}


def test_conditions_of_one_folder_only_are_left_out_and_named(base, results_folder):
    """Every run of FLD on 3G fails in the second folder."""
    lossy = results_folder(
        stretched(1.0),
        name="this-week",
        outcome=lambda run: None if (run.network, run.congestion) == ("3g", "fld") else Outcome("valid"),
    )
    rows, pair = compare_folders(base, Results.open(lossy), ["page-load-time"], by_page=False)
    assert ("3g", "fld") not in {tuple(row.conditions.values()) for row in rows}
    (note,) = pair.notes
    assert note.startswith("Only in ") and "last-week, not compared: testbed / 3g / fld" in note
    lost = pair.visits.filter((pl.col("network") == "3g") & (pl.col("congestion") == "fld"))
    assert set(lost.filter(pl.col(folders.FOLDER) == "this-week")["end"]) == {"failed"}


def test_another_path_of_the_same_name_is_refused(base, results_folder):
    def faster(manifest):
        manifest["evaluation"]["networks"]["3g"]["down"]["capacity"]["bit_per_s"] = 1e7

    other = rewritten(Results.open(results_folder(stretched(1.0), name="this-week")), faster)
    with pytest.raises(UsageError, match=r"network 3g\.down\.capacity\.bit_per_s was .* the networks of"):
        compare_folders(base, other)


def test_another_back_end_is_refused(base, results_folder):
    simulated = Results.open(results_folder(stretched(1.0), name="this-week", backend="simulator"))
    with pytest.raises(UsageError, match=r"found simulator / .*; accepted: .*, such as testbed / "):
        compare_folders(base, simulated)


def test_other_versions_and_changed_pages_are_said(base, results_folder):
    def later(manifest):
        manifest["versions"] |= {"browser": "HeadlessChrome/157"}
        manifest["evaluation"]["user_agents"][0]["page_sha256"] = "1" * 64

    other = rewritten(Results.open(results_folder(stretched(1.0), name="this-week")), later)
    _, pair = compare_folders(base, other, ["page-load-time"])
    assert pair.notes == [
        "browser was not used and is HeadlessChrome/157: a difference may come from it.",
        "Pages that changed: small.",
    ]


@pytest.mark.parametrize("contents", ["2", "3"])
def test_a_page_that_was_rehearsed_again_is_told_from_another_and_its_rehearsals_are_doubted(
    results_folder, contents
):
    def rehearsed(page, contents, error, others):
        def change(manifest):
            for agent in manifest["evaluation"]["user_agents"]:
                if agent["page"] == "small":
                    agent |= {"page_sha256": page * 64, "contents_sha256": contents * 64}
                    agent["rehearsal"] = {"error": error, "others_cpu": others}

        return change

    was, now = (
        Results.open(results_folder(stretched(1.0), name=name, backend="simulator"))
        for name in ("last-week", "this-week")
    )
    was = rewritten(was, rehearsed("1", "2", 0.01, 0.05))
    now = rewritten(now, rehearsed("4", contents, 0.031, 0.61))
    _, pair = compare_folders(was, now, ["page-load-time"], margin=0.03)
    changed = "Pages that changed: small."
    assert pair.notes == [
        changed if contents == "3" else "Pages with the same contents, rehearsed again: small.",
        "Rehearsals of small: the simulator was 1.0 % off in the first, 3.1 % off in the second; others had "
        "5.0 % of the CPU time in the first, 61.0 % in the second: a difference may come from the rehearsal.",
    ]
    now = rewritten(now, rehearsed("4", contents, 0.029, 0.2))
    _, pair = compare_folders(was, now, ["page-load-time"], margin=0.03)
    assert len(pair.notes) == 1, "neither is larger than the margin"


def test_a_page_that_only_one_folder_rehearsed_is_not_called_rehearsed_again(results_folder):
    def rehearsed(page, rehearsal):
        def change(manifest):
            for agent in manifest["evaluation"]["user_agents"]:
                if agent["page"] == "small":
                    agent |= {"page_sha256": page * 64, "contents_sha256": "2" * 64, "rehearsal": rehearsal}

        return change

    was, now = (
        Results.open(results_folder(stretched(1.0), name=name, backend="simulator")) for name in ("a", "b")
    )
    found = {"error": 0.01, "others_cpu": 0.05}
    for of_was, of_now, notes in (
        (None, None, []),
        (found, None, ["Pages with the same contents, rehearsed in one of the two folders only: small."]),
    ):
        was, now = rewritten(was, rehearsed("1", of_was)), rewritten(now, rehearsed("4", of_now))
        assert compare_folders(was, now, ["page-load-time"], margin=0.03)[1].notes == notes


@pytest.mark.parametrize(
    ("objects", "size", "says"),
    [
        (4, 30_000, "small loads 4 objects, 30 kB, after 9 objects, 60 kB: less than before; is it whole?"),
        (9, 90_000, "small loads 9 objects, 90 kB, after 9 objects, 60 kB: more than before."),
        (9, 62_000, None),
    ],
)
def test_a_changed_page_that_loads_less_or_more_is_named(results_folder, objects, size, says):
    def loads(objects, size):
        def retouch(tables):
            for row in tables["page"]:
                row |= {"objects": objects, "encoded_bytes": size}

        return retouch

    def changed(manifest):
        for agent in manifest["evaluation"]["user_agents"]:
            if agent["page"] == "small":
                agent["page_sha256"] = "4" * 64

    was = Results.open(results_folder(stretched(1.0), name="was", retouch=loads(9, 60_000)))
    now = Results.open(results_folder(stretched(0.5), name="now", retouch=loads(objects, size)))
    _, pair = compare_folders(was, rewritten(now, changed), ["page-load-time"])
    assert pair.notes == ["Pages that changed: small.", *([says] if says else [])]


def test_an_unfinished_folder_is_named(base, results_folder):
    def until(run):
        return Outcome("valid") if run.visit <= 3 else "planned"

    cut = Results.open(results_folder(stretched(1.0), name="cut", outcome=until))
    left = cut.runs()["visit"].gt(3).sum()
    _, pair = compare_folders(base, cut, ["page-load-time"])
    of_all = f"{left} of {cut.runs().height} runs are not done"
    assert pair.notes == [f"{cut.folder} is unfinished, {of_all}: wirepaint run {cut.folder}"]


def test_the_same_folder_twice_is_refused(base):
    with pytest.raises(UsageError, match="found the first results folder again"):
        compare_folders(base, Results.open(base.folder))


def test_the_command_takes_two_folders(base, results_folder, capsys):
    slower = results_folder(stretched(1.2), name="this-week")
    command = ["compare", str(base.folder), str(slower), "--metric", "page-load-time"]
    assert cli.invoke([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["factor"] == "folder"
    assert {row["candidate"]["level"] for row in said["comparisons"]} == {"this-week"}
    assert cli.invoke([*command, "--factor", "http"]) == 2
    assert (
        "--factor: found http; accepted: no such option with two results folders" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (OWN_METRIC.replace("/ 1000", "/ 500"), "the metric largest-object of a file with SHA-256"),
        (None, "no metric"),
    ],
)
def test_a_metric_of_ones_own_must_be_the_same_in_both(base, results_folder, tmp_path, text, found):
    def with_metrics(text):
        (tmp_path / "mine.py").write_text(text)
        entries = [metrics.read(tmp_path / "mine.py")]
        metrics.trust(entries[0]["sha256"])
        return lambda manifest: manifest["evaluation"].update(metrics=entries)

    base = rewritten(base, with_metrics(OWN_METRIC))
    other = Results.open(results_folder(stretched(1.2), name="this-week"))
    if text is not None:
        other = rewritten(other, with_metrics(text))
    with pytest.raises(UsageError, match=f"this-week: found {found}.*last-week has it"):
        compare_folders(base, other, ["largest-object"])
    assert compare_folders(base, other, ["page-load-time"])[0]


def test_all_metrics_of_two_folders_are_those_of_the_base(base, results_folder, tmp_path):
    """Not those of the folder that was read before."""
    other = Results.open(results_folder(stretched(1.2), name="this-week"))
    (tmp_path / "mine.py").write_text(OWN_METRIC)
    entry = metrics.read(tmp_path / "mine.py")
    metrics.trust(entry["sha256"])
    metrics.enrol([entry], "another folder")
    rows, _ = compare_folders(base, other, ["all"])
    assert "page-load-time" in {row.metric for row in rows}
