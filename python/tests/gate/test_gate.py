"""The gate: rules, outcomes with their evidence, exit codes, and what CI systems read."""

import itertools
import json
from xml.etree import ElementTree
from zlib import crc32

import numpy as np
import pytest

from wirepaint.cli import invoke
from wirepaint.errors import UsageError
from wirepaint.gate import budget, outputs
from wirepaint.gate.checks import Check, check
from wirepaint.gate.command import read
from wirepaint.results import Results
from wirepaint.results.outcome import Outcome

PAGES = 2 * 2 * 2
"""Networks, congestion controls, pages of ``results_folder``; each visit takes 300 ms."""


@pytest.fixture
def made(results_folder):
    """Makes a results folder whose load times are ``factor`` times 300 ms, with some spread."""

    def make(
        name, factor=lambda run: 1.0, visits=8, spread=0.002, outcome=lambda run: Outcome("valid"), **others
    ):
        def stretch(run):
            random = np.random.default_rng(crc32(f"{name}{run}".encode()))
            return factor(run) * random.lognormal(0, spread)

        return results_folder(stretch, visits, outcome, name, **others)

    return make


def checked(base, candidate=None, **rule):
    rules = budget.Budget.model_validate({"rules": [rule]})
    *visits, _ = read(Results.open(base), candidate, [rule["metric"]], ("valid",))
    return check(*visits, rules)


def outcomes(checks):
    return {(one.page, one.conditions): one.outcome for one in checks}


def test_what_is_no_slower_passes(made):
    found = checked(made("base"), made("again"), metric="page-load-time", worse_by="3 %")
    assert len(found) == PAGES and set(outcomes(found).values()) == {"pass"}
    assert outputs.summary(found) == "pass on the testbed: 8 pass of 8 checks"
    assert list(outputs.of_github(found)) == []


def test_a_slow_down_of_one_page_on_one_network_is_found_there(made):
    slow = made("slow", lambda run: 1.05 if (run.page, run.network) == ("small", "3g") else 1.0)
    found = outcomes(checked(made("base"), slow, metric="page-load-time", worse_by="3 %"))
    breached = {key for key, outcome in found.items() if outcome == "breach"}
    assert breached == {("small", "3g / cubic"), ("small", "3g / fld")}


def test_a_difference_that_may_lie_on_either_side_is_undecided_and_says_how_many_visits_decide(made):
    base, slow = made("base", spread=0.05), made("slow", lambda run: 1.05, spread=0.05)
    few = checked(base, slow, metric="page-load-time", worse_by="3 %", page="small", network="lte")
    assert {one.outcome for one in few} == {"undecided"}
    needed = outputs.visits_needed(few)
    assert needed == max(one.visits_needed for one in few) and needed > 8
    assert f"about {needed} visits of each page decide" in outputs.summary(few)


def test_a_share_of_nothing_is_nothing(made):
    """Where some visit has 0, the difference is in the metric's unit, and so is the limit."""

    def lost(segments):
        def retouch(tables):
            for row in tables["connection"]:
                row["retransmitted_segments"] = segments

        return retouch

    whole, lossy = made("whole", retouch=lost(0)), made("lossy", retouch=lost(3))
    asked = {"metric": "retransmission-share", "worse_by": "10 %"}
    assert set(outcomes(checked(whole, made("again", retouch=lost(0)), **asked)).values()) == {"pass"}
    some = itertools.cycle([0, 10, 10, 10])

    def now_and_then(tables):
        lost(next(some))(tables)

    mixed = made("mixed", retouch=now_and_then)
    limits = [checked(mixed, lossy, **(asked | {"worse_by": share}))[0].limit for share in ("10 %", "20 %")]
    assert limits[1] == pytest.approx(2 * limits[0]) and limits[0] > 0
    worse = checked(whole, lossy, **asked)
    assert {one.outcome for one in worse} == {"breach"}
    assert worse[0].rule == "at most 0 % worse" and "limit +0 %, 8 visits: breach" in worse[0].sentence


def test_a_limit_is_for_the_median_of_a_page(made):
    base = made("base", lambda run: 2.0 if run.page == "large" else 1.0)
    found = outcomes(checked(base, metric="page-load-time", at_most=450))
    assert {outcome for (page, _), outcome in found.items() if page == "large"} == {"breach"}
    assert {outcome for (page, _), outcome in found.items() if page == "small"} == {"pass"}


def test_a_limit_of_a_candidate_is_not_for_its_base(made):
    base, fast = made("base", lambda run: 2.0), made("fast")
    assert set(outcomes(checked(base, fast, metric="page-load-time", at_most=450)).values()) == {"pass"}


def test_two_visits_decide_nothing(made):
    found = checked(made("base", visits=2), metric="page-load-time", at_most=450)
    assert {(one.outcome, one.visits_needed) for one in found} == {("undecided", 3)}


def test_the_checks_share_the_error(made):
    found = checked(made("base"), metric="page-load-time", at_most=450)
    assert {one.confidence for one in found} == {1 - 0.05 / PAGES}


def test_a_rule_that_applies_to_nothing_is_refused(made):
    with pytest.raises(
        UsageError, match=r'rules\[0\]\.page: found "smal"; accepted: one of small, large \(did'
    ):
        checked(made("base"), metric="page-load-time", at_most=450, page="smal")


def test_a_rule_names_networks_as_people_call_them(made):
    found = checked(made("base"), metric="page-load-time", at_most=450, network="3G")
    assert {one.conditions for one in found} == {"3g / cubic", "3g / fld"}


def test_a_budget_with_several_wrong_metrics_names_each_with_its_rule(made, tmp_path, capsys):
    file = tmp_path / "budget.toml"
    file.write_text(
        "".join(f'[[rules]]\nmetric = "{name}"\nat_most = 1\n' for name in ("bnpt", "objects", "lcq"))
    )
    assert invoke(["check", str(made("base")), "--budget", str(file)]) == 2
    said = capsys.readouterr().err
    assert 'rules[0].metric: found "bnpt"' in said and 'rules[2].metric: found "lcq"' in said


def test_metrics_beside_a_budget_are_refused_and_those_of_a_margin_are_a_list(made, tmp_path, capsys):
    file = tmp_path / "budget.toml"
    file.write_text('[[rules]]\nmetric = "page-load-time"\nat_most = 450\n')
    base, again = str(made("base")), str(made("again"))
    assert invoke(["check", base, "--budget", str(file), "--metric", "first-paint"]) == 2
    assert "--metric: found first-paint; accepted: --margin beside it" in capsys.readouterr().err
    two = ["--margin", "3%", "--metric", "page-load-time, page_load_time, PLT"]
    assert invoke(["check", base, again, *two]) == 0
    assert f"of {PAGES} checks" in capsys.readouterr().out, "one metric, however it is written"
    assert invoke(["check", base, again, "--margin", "3%", "--metric", "page-load-time,lcq"]) == 2
    assert 'found "lcq"' in capsys.readouterr().err


def test_a_relative_rule_needs_a_base(made):
    with pytest.raises(UsageError, match="worse_by: found one results folder; accepted: a base and"):
        checked(made("base"), metric="page-load-time", worse_by=0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[rules]]\nmetric = "page-load-time"\n',
            "found none; accepted: exactly one of at_most, at_least, worse_by",
        ),
        ('[[rules]]\nmetric = "page-type"\nat_most = 1\n', "accepted: a metric that is a number"),
        ('[[rules]]\nmetric = "bnpt"\nat_most = 1\n', 'metric: found "bnpt"'),
        ("rules = []\n", "rules: "),
        ("", 'rules: found nothing; accepted: at least one, such as [[rules]] metric = "page-load-time"'),
        ('[[rules]]\nmetrc = "objects"\nat_most = "3 s"\n', 'rules[0].metrc: found "objects"'),
        (
            '[[rules]]\nmetrc = "objects"\nat_most = "3 s"\n',
            'rules[0].at_most: found "3 s"; accepted: a number',
        ),
    ],
)
def test_a_wrong_budget_is_refused(text, message, made, tmp_path, capsys):
    file = tmp_path / "budget.toml"
    file.write_text(text)
    assert invoke(["check", str(made("base")), "--budget", str(file)]) == 2
    assert message in capsys.readouterr().err


def test_the_exit_code_is_99_on_a_breach_and_on_nothing_else(made, capsys):
    base, slow, vague = made("base"), made("slow", lambda run: 1.1), made("vague", spread=0.2)
    arguments = ["check", str(base)]
    assert invoke([*arguments, str(slow), "--margin", "3%"]) == 99
    printed = capsys.readouterr()
    assert printed.err == "wirepaint: the gate is not passed (exit code 99)\n"
    *lines, summary = printed.out.splitlines()
    assert summary == "breach on the testbed: 8 breach of 8 checks"
    assert len(lines) == 8 and all(line.startswith("testbed: Page load time, ") for line in lines)
    assert invoke([*arguments, str(made("again")), "--margin", "0.03", "--github"]) == 0
    assert capsys.readouterr().out.endswith("pass on the testbed: 8 pass of 8 checks\n")
    codes = [
        invoke([*arguments, str(vague), "--margin", "3%", "--on-undecided", word])
        for word in ("pass", "fail", "more")
    ]
    assert codes == [0, 99, 3]
    assert invoke(arguments) == 2 and invoke([*arguments, "--margin", "3%"]) == 2
    assert "wirepaint: check: found no rule; accepted: --budget FILE" in capsys.readouterr().err


def test_what_ci_systems_read(made, tmp_path, capsys):
    slow = made("slow", lambda run: 1.1 if run.page == "small" else 1.0)
    arguments = ["check", str(made("base")), str(slow), "--margin", "3%"]
    junit, markdown = tmp_path / "junit.xml", tmp_path / "summary.md"
    assert invoke([*arguments, "--junit", str(junit), "--markdown", str(markdown), "--github"]) == 99
    out = capsys.readouterr().out
    assert out.count("::error title=Page load time::testbed: Page load time, small, ") == 4
    suite = ElementTree.fromstring(junit.read_text())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("8", "4", "0")
    assert len(suite.findall("testcase/failure")) == 4
    assert markdown.read_text().count("| breach | testbed: Page load time, small") == 4
    assert invoke([*arguments, "--json"]) == 99
    printed = capsys.readouterr()
    assert printed.err == "wirepaint: breach on the testbed: 4 breach, 4 pass of 8 checks\n"
    document = json.loads(printed.out)
    assert next(iter(document)) == "verdict" and document["verdict"] == "breach"
    assert document["backends"] == ["testbed"] and {one["backend"] for one in document["checks"]} == {
        "testbed"
    }
    assert [one["outcome"] for one in document["checks"]] == ["breach"] * 4 + ["pass"] * 4
    assert invoke([*arguments, "--json", "--github"]) == 99
    both = capsys.readouterr()
    assert both.out == printed.out and both.err.count("::error title=Page load time::") == 4


def lost(page, last=8, as_=None):
    """Outcomes of runs: those of ``page`` up to this visit are lost on LTE."""
    return lambda run: (
        as_ if (run.page, run.network) == (page, "lte") and run.visit <= last else Outcome("valid")
    )


@pytest.mark.parametrize("end", [None, Outcome("invalid"), "not reached"])
def test_a_page_that_no_longer_loads_fails_the_gate(end, made, tmp_path, capsys):
    base, broken = made("base"), made("broken", outcome=lost("small", as_=end))
    arguments = ["check", str(base), str(broken), "--margin", "3%"]
    junit, markdown = tmp_path / "junit.xml", tmp_path / "summary.md"
    assert invoke([*arguments, "--json", "--markdown", str(markdown)]) == 99
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(note.startswith(f"Only in {base}, not compared: testbed / lte") for note in notes)
    assert [line[2:] for line in markdown.read_text().splitlines() if line.startswith("- ")] == notes
    assert invoke([*arguments, "--junit", str(junit), "--github"]) == 99
    said = capsys.readouterr()
    assert said.out.count("missing on the testbed: 2 missing, 6 pass of 8 checks\n") == 1
    why = "no visit that ended" if end == "not reached" else "0 of "
    assert f"testbed: Page load time, small, lte / cubic: the candidate: {why}" in said.out
    assert said.out.count("::error title=Page load time::testbed: Page load time, small, lte") == 2
    assert ElementTree.fromstring(junit.read_text()).get("errors") == "2"
    assert invoke([*arguments, "--on-missing", "pass"]) == 0


def test_a_page_that_the_candidate_leaves_out_is_missing_and_a_new_one_is_not(made):
    wide, narrow = made("wide"), made("narrow", pages=["large"])
    found = outcomes(checked(wide, narrow, metric="page-load-time", worse_by="3 %"))
    assert {key for key, outcome in found.items() if outcome == "missing"} == {
        ("small", f"{network} / {congestion}") for network in ("lte", "3g") for congestion in ("cubic", "fld")
    }
    missing = [one for one in checked(wide, narrow, metric="page-load-time", worse_by="3 %") if one.lost]
    assert {one.lost for one in missing} == {"the candidate: it does not have this page and network"}
    assert [one.conditions for one in missing] == ["3g / cubic", "3g / fld", "lte / cubic", "lte / fld"]
    for rule in ({}, {"page": "small"}, {"network": "lte"}):
        found = outcomes(checked(wide, narrow, metric="page-load-time", at_most=450, **rule))
        assert {page for (page, _), outcome in found.items() if outcome == "missing"} == {"small"}, rule
    found = checked(narrow, wide, metric="page-load-time", worse_by="3 %")
    assert {(one.page, one.outcome) for one in found} == {("large", "pass")}
    found = checked(narrow, wide, metric="page-load-time", at_most=450)
    assert {(one.page, one.outcome) for one in found} == {("large", "pass"), ("small", "pass")}


def test_a_page_of_which_most_visits_are_lost_is_missing(made):
    limit = {"metric": "page-load-time", "at_most": 450, "network": "lte"}
    most = checked(made("most", outcome=lost("small", last=5)), **limit)
    assert {one.sentence.split(": ", 2)[2] for one in most if one.outcome == "missing"} == {
        "3 of 8 visits with a value (5 failed): missing"
    }
    assert set(outcomes(checked(made("half", outcome=lost("small", last=4)), **limit)).values()) == {"pass"}


def test_a_missing_page_hides_no_breach(made):
    base, worse = made("base"), made("worse", lambda run: 1.1, outcome=lost("small"))
    found = outcomes(checked(base, worse, metric="page-load-time", worse_by="3 %"))
    assert sorted(found.values()) == ["breach"] * 6 + ["missing"] * 2


def test_only_valid_runs_count_unless_asked(made, tmp_path, capsys):
    folder = made("base", outcome=lambda run: Outcome("suspect"))
    file = tmp_path / "budget.toml"
    file.write_text('[[rules]]\nmetric = "page-load-time"\nat_most = 450\n')
    assert invoke(["check", str(folder), "--budget", str(file)]) == 99
    assert capsys.readouterr().out.count("0 of 8 visits with a value (8 suspect): missing") == PAGES
    assert invoke(["check", str(folder), "--budget", str(file), "--suspect"]) == 0


def test_of_both_back_ends_each_check_names_its_own(made):
    def slow(run):
        return 1.1 if run.backend == "simulator" else 1.0

    found = checked(made("base", backend="both"), made("slow", slow, backend="both"),
                    metric="page-load-time", worse_by="3 %", page="small", network="lte")  # fmt: skip
    assert sorted((one.backend, one.outcome) for one in found) == (
        [("simulator", "breach")] * 2 + [("testbed", "pass")] * 2
    )
    assert {one.conditions for one in found} == {"lte / cubic", "lte / fld"}
    assert outputs.summary(found) == "breach on the testbed and the simulator: 2 breach, 2 pass of 4 checks"


def test_a_back_end_without_a_visit_that_counts_is_missing_and_named(made):
    def outcome(run):
        return None if run.backend == "testbed" else Outcome("valid")

    found = checked(made("base", backend="both", outcome=outcome), metric="page-load-time", at_most=450)
    assert {(one.backend, one.outcome) for one in found} == {("testbed", "missing"), ("simulator", "pass")}


def test_an_annotation_of_a_title_with_colon_and_percent_is_one_command():
    title, lost = "100 %: all, none", "0 of 8 visits"
    one = Check("x", title, "ms", "testbed", "a", "lte", "at_most", 1, None, 0.95, 0, "missing", None, lost)
    assert list(outputs.of_github([one])) == [
        "::error title=100 %25%3A all%2C none::testbed: 100 %25: all, none, a, lte: 0 of 8 visits: missing"
    ]


def test_each_rule_on_a_page_has_a_case_of_its_own(made):
    rules = [{"at_most": 450}, {"at_most": 450}, {"at_least": 450}, {"worse_by": "1.5 %"}]
    rules = [rule | {"metric": "page-load-time", "page": "small", "network": "lte"} for rule in rules]
    *visits, _ = read(Results.open(made("base")), made("again"), ["page-load-time"], ("valid",))
    found = check(*visits, budget.Budget.model_validate({"rules": rules}))
    names = [case.get("name") or "" for case in ElementTree.fromstring(outputs.junit(found))]
    assert len(set(names)) == len(names) == 6, "equal rules are one"
    ends = {name.removeprefix("testbed: Page load time, small, lte / cubic: ") for name in names[::2]}
    assert ends == {"at most 450 ms", "at least 450 ms", "at most 1.5 % worse"}


def test_a_margin_beside_the_same_rule_of_a_budget_is_checked_once(made, tmp_path, capsys):
    file = tmp_path / "budget.toml"
    file.write_text('[[rules]]\nmetric = "page_load_time"\nworse_by = "3 %"\n')
    arguments = ["check", str(made("base")), str(made("again")), "--margin", "3%"]
    assert invoke(arguments) == 0
    alone = capsys.readouterr().out
    assert invoke([*arguments, "--budget", str(file)]) == 0
    assert capsys.readouterr().out == alone


def test_the_summary_of_a_job_keeps_what_is_there_and_another_file_does_not(made, tmp_path, monkeypatch):
    job, other = tmp_path / "job.md", tmp_path / "other.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    arguments = ["check", str(made("base")), str(made("again")), "--margin", "3%", "--markdown"]
    for file, times in ((job, 2), (other, 1)):
        file.write_text("# Before\n")
        assert [invoke([*arguments, str(file)]) for _ in range(2)] == [0, 0]
        assert file.read_text().count("**wirepaint check**") == times
        assert file.read_text().startswith("# Before") is (file == job)


def test_a_metric_that_no_visit_has_is_refused_though_all_of_them_count(made):
    with pytest.raises(UsageError, match="found speed-index, of which no visit has a value; accepted: "):
        checked(made("base"), metric="speed-index", at_most=1)
