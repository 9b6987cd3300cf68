"""Users together: what a user writes, and the users and visits of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import Plan, plan
from wirepaint.evaluation.pages import PageRef

HEAD = """
title = "Users"
backend = "simulator"
warmup = false
timeout = "20 s"
[scenarios]
network = ["lte"]
congestion = ["cubic", "fld"]
"""
TOGETHER = """
[[user_agents]]
name = "ann"
pages = ["home", "list"]
visits = 3
together = true
think = "2 s"
congestion = "cubic"
dscp = 46
[[user_agents]]
name = "bob"
pages = ["home"]
visits = 3
together = true
count = 3
start = "1 s"
spread = "4 s"
"""


def page(reference: str, base: Path, place: str) -> PageRef:
    return PageRef(name=reference, folder=base / reference, sha256="0" * 64)


def planned(folder: Path, users: str, head: str = HEAD) -> Plan:
    file = folder / "evaluation.toml"
    file.write_text(head + users)
    return plan(file, page_resolver=page)


def test_users_together_share_runs_and_each_visits_all_of_its_pages(tmp_path: Path) -> None:
    made = planned(tmp_path, TOGETHER)
    assert len(made.runs) == 2 * 3
    run = next(run for run in made.runs if run.key == "lte-fld-h2.together.v01")
    assert [(user.name, user.dscp, user.congestion and user.congestion.name) for user in run.users] == [
        ("ann", 46, "cubic"),
        ("bob.1", None, None),
        ("bob.2", None, None),
        ("bob.3", None, None),
    ]
    first, second, *others = run.visits
    assert (first.user, first.page_name, first.start_ns, first.after) == (0, "home", 0, None)
    assert (second.user, second.page_name, second.start_ns, second.after) == (0, "list", 2 * 10**9, 0)
    assert [visit.user for visit in others] == [1, 2, 3]
    assert all(1e9 <= visit.start_ns < 5e9 and visit.after is None for visit in others)
    assert len({visit.start_ns for visit in others}) == 3
    # Two visits with a timeout of 20 s, and 2 s between them.
    assert run.longest_s == 42


def test_compared_runs_have_the_same_beginnings_and_repeats_have_others(tmp_path: Path) -> None:
    made = planned(tmp_path, TOGETHER)
    starts = {
        (run.congestion.name, run.visit): tuple(visit.start_ns for visit in run.visits) for run in made.runs
    }
    assert starts["cubic", 1] == starts["fld", 1]
    assert len({starts["cubic", visit] for visit in (1, 2, 3)}) == 3


def test_groups_and_users_alone_have_runs_of_their_own(tmp_path: Path) -> None:
    users = TOGETHER.replace("together = true\nthink", 'together = "here"\nthink').replace(
        "together = true\ncount", 'together = "there"\ncount'
    )
    alone = '[[user_agents]]\nname = "eve"\npages = ["home", "list"]\nvisits = 3\n'
    keys = {run.key for run in planned(tmp_path, users + alone).runs if run.congestion.name == "fld"}
    names = ("here", "there", "eve.home", "eve.list")
    assert keys == {f"lte-fld-h2.{name}.v{visit:02d}" for name in names for visit in (1, 2, 3)}


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (("together = true\nthink", "think"), "user_agents[0].think", "no such key without together = true"),
        (("together = true\ncount", "count"), "user_agents[1].count", "no such key without together = true"),
        (
            ("visits = 3\ntogether = true\ncount", "visits = 4\ntogether = true\ncount"),
            "visits",
            "3, as of ann",
        ),
        (("count = 3", "count = 1001"), "user_agents[1].count", "at most 1000"),
        (('name = "bob"', 'name = "together"'), "together", "a name that no user agent has"),
        (('congestion = "cubic"\ndscp', 'congestion = "cubik"\ndscp'), "user_agents[0].congestion", "cubic"),
        (
            ('congestion = "cubic"\ndscp', 'congestion = "std"\ndscp'),
            "user agent ann: congestion",
            "sysctls",
        ),
        (("dscp = 46", "dscp = 64"), "user_agents[0].dscp", "63"),
    ],
)
def test_what_cannot_be_is_refused_by_key(
    tmp_path: Path, change: tuple[str, str], place: str, message: str
) -> None:
    assert change[0] in TOGETHER
    with pytest.raises(UsageError) as refused:
        planned(tmp_path, TOGETHER.replace(*change))
    assert place in refused.value.place
    assert message in refused.value.accepted


def test_a_user_beside_flows_is_not_named_like_a_host(tmp_path: Path) -> None:
    user = '[[user_agents]]\nname = "client"\npages = ["home"]\n'
    assert planned(tmp_path, user).runs
    with pytest.raises(
        UsageError, match='name: found "client"; accepted: another name: client, server, squid'
    ):
        planned(tmp_path, user + '[[flows]]\nname = "a"\nbulk = "endless"\n')


def test_each_visit_of_a_user_has_the_cache_that_is_asked_for(tmp_path: Path) -> None:
    text = TOGETHER.replace('name = "ann"', 'name = "ann"\ncache = "shared"')
    visits = planned(tmp_path, text).runs[0].visits
    assert [visit.cache for visit in visits] == ["shared", "shared", "cold", "cold", "cold"]
    alone = '[[user_agents]]\npages = ["home"]\ncache = "{cache}"\n'
    assert planned(tmp_path, alone.format(cache="warm")).runs[0].visits[0].cache == "warm"
    with pytest.raises(
        UsageError, match='cache: found "shared"; accepted: "cold" or "warm" without together'
    ):
        planned(tmp_path, alone.format(cache="shared"))
    with pytest.raises(UsageError, match='cache: found "hot"'):
        planned(tmp_path, alone.format(cache="hot"))
