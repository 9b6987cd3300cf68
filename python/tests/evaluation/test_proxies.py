"""Proxies as levels of an axis, and the tables that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirepaint.errors import UsageError
from wirepaint.evaluation import Plan, plan
from wirepaint.evaluation.pages import PageRef

EVALUATION = """
title = "Proxies"
backend = "{backend}"
warmup = false
[scenarios]
network = ["lte"]
http = ["h1"]
{scenarios}
{tables}
"""
USER = """
[[user_agents]]
pages = ["one"]
visits = 1
"""


def page(name: str, base: Path, _: str) -> PageRef:
    """A page that nobody loads."""
    return PageRef(name=name, folder=base, sha256="0" * 64)


def planned(
    folder: Path, scenarios: str = "", tables: str = "", backend: str = "testbed", user: str = USER
) -> Plan:
    file = folder / "evaluation.toml"
    file.write_text(EVALUATION.format(backend=backend, scenarios=scenarios, tables=tables + user))
    return plan(file, page_resolver=page)


def test_squid_needs_no_table_and_has_a_cold_memory_cache(tmp_path: Path) -> None:
    [run] = planned(tmp_path, 'proxy = ["squid"]').runs
    asked, [part] = run.proxy.squid, run.proxy.parts
    assert asked is not None and (asked.cache, asked.warm, asked.tls) == ("memory", False, "tunnel")
    assert (part.congestion.name, asked.initial_window, part.network) == ("cubic", 10, None)


def test_a_table_says_what_a_proxy_is(tmp_path: Path) -> None:
    table = """
[[proxies]]
name = "edge"
cache = "disk"
size = "64 MiB"
warm = true
tls = "terminate"
congestion = "reno"
initial_window = 4
"""
    [none, edge] = sorted(planned(tmp_path, 'proxy = ["none", "edge"]', table).runs, key=lambda r: r.key)[
        ::-1
    ]
    assert (none.key, edge.key) == ("lte-cubic-h1-none.user.one.v01", "lte-cubic-h1-edge.user.one.v01")
    asked, [part] = edge.proxy.squid, edge.proxy.parts
    assert asked is not None and (asked.size, asked.warm, asked.initial_window) == (64 * 2**20, True, 4)
    assert part.congestion.name == "reno"


def test_a_list_is_a_chain_of_proxies_with_networks_between_them(tmp_path: Path) -> None:
    pep = '[[proxies]]\nname = "satellite"\nkind = "pep"\nconnections = 8\nnetwork = "3g"\n'
    [run] = planned(tmp_path, 'proxy = [["squid", "satellite"]]', pep).runs
    assert (run.proxy.name, run.proxy.has_pep) == ("squid+satellite", True)
    [squid, of_pep] = run.proxy.parts
    assert squid.network is None and of_pep.network is not None and of_pep.network.name == "3g"


def test_random_elements_do_not_depend_on_the_proxy(tmp_path: Path) -> None:
    [plain] = planned(tmp_path).runs
    assert {run.seed for run in planned(tmp_path, 'proxy = ["none", "squid"]').runs} == {plain.seed}
    assert plain.key == "lte-cubic-h1.user.one.v01"


@pytest.mark.parametrize(
    ("scenarios", "table", "error"),
    [
        (
            'proxy = ["squit"]',
            "",
            r'proxy\[0\]: found "squit"; .*one of none, squid, split, pep \(did you mean "squid"',
        ),
        (
            'proxy = ["a"]',
            'name = "a"\nwarm = true\ncache = "none"',
            r"proxies\[0\].warm: found true with cache",
        ),
        (
            'proxy = ["a"]',
            'name = "a"\ncongestion = "own.c"',
            r"proxies\[0\].congestion: .*scenarios.congestion",
        ),
        ('proxy = ["a"]', 'name = "a"\nsize = "1 kB"', r"proxies\[0\].size: .*1 MiB to 4096 MiB"),
        ('proxy = ["a"]', 'name = "a"\ncold = true', r"proxies\[0\].cold"),
        ("", 'name = "none"', r'proxies\[0\].name: found "none"'),
        ('proxy = ["a"]', 'name = "a"\nkind = "pep"\nwarm = true', r"proxies\[0\].warm"),
        ('proxy = ["a"]', 'name = "a"\nnetwork = "lt"', r'proxies\[0\].network: found "lt"'),
        (
            'proxy = [["a", "pep"]]',
            'name = "a"\nwarm = true',
            r"with a warm squid; accepted: warm = false",
        ),
        ('proxy = ["a"]', 'name = "a"\nwarm = true\nnetwork = "3g"', r"with a warm squid"),
        ('proxy = [["split", "squid"]]', "", r"squid after split; accepted: squid first"),
        ('proxy = [["split", "split"]]', "", r"with split twice; accepted: each kind once"),
    ],
)
def test_what_no_proxy_can_be_is_refused(tmp_path: Path, scenarios: str, table: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        planned(tmp_path, scenarios, f"[[proxies]]\n{table}" if table else "")


def test_a_proxy_that_ends_tls_needs_http_1(tmp_path: Path) -> None:
    ends = '[[proxies]]\nname = "ends"\ntls = "terminate"\n'
    assert planned(tmp_path, 'proxy = ["ends"]', ends).runs[0].proxy.squid is not None
    (tmp_path / "evaluation.toml").write_text(
        (tmp_path / "evaluation.toml").read_text().replace('http = ["h1"]', 'http = ["h1", "h2"]')
    )
    with pytest.raises(UsageError, match=r"scenarios.http: .*speaks HTTP/1.1 to browsers"):
        plan(tmp_path / "evaluation.toml", page_resolver=page)


def test_flows_alone_refuse_proxies(tmp_path: Path) -> None:
    flows = '[[flows]]\nname = "bulk"\nbulk = "1 MB"\n'
    file = tmp_path / "evaluation.toml"
    text = EVALUATION.format(backend="testbed", scenarios='proxy = ["squid"]', tables=flows)
    file.write_text(text.replace('http = ["h1"]\n', ""))
    with pytest.raises(UsageError, match="flows do not pass a proxy"):
        plan(file)


TOGETHER = """
[[user_agents]]
name = "ann"
pages = ["one", "two"]
visits = 1
together = true
[[user_agents]]
name = "bob"
pages = ["one"]
visits = 1
together = true
viewport = [{width}, 800]
"""


@pytest.mark.parametrize(
    ("shared", "width", "error"),
    [
        (
            "cdn.test",
            1280,
            "ann: pages: found one and two, which share the host cdn.test, in the group together",
        ),
        ("two.test", 1000, "bob: pages: found one in two view ports, in the group together with proxy squid"),
        ("two.test", 1280, None),
    ],
)
def test_pages_of_a_run_that_share_a_host_are_refused_with_squid(
    tmp_path: Path, shared: str, width: int, error: str | None
) -> None:
    hosts = {"one": ("cdn.test", "one.test"), "two": (shared, "two.test")}

    def page(name: str, base: Path, _: str) -> PageRef:
        return PageRef(name=name, folder=base / name, sha256="0" * 64, hosts=hosts[name])

    file = tmp_path / "evaluation.toml"
    text = EVALUATION.format(
        backend="testbed", scenarios='proxy = ["none", "squid"]', tables=TOGETHER.format(width=width)
    )
    file.write_text(text)
    if error is None:
        assert len(plan(file, page_resolver=page).runs) == 2
    else:
        with pytest.raises(UsageError, match=error):
            plan(file, page_resolver=page)
    # Each page has servers of its own, so without a proxy they may share names.
    file.write_text(text.replace('"none", "squid"', '"none"'))
    assert len(plan(file, page_resolver=page).runs) == 1


def test_a_page_names_its_hosts() -> None:
    from wirepaint.evaluation.pages import of_folder
    from wirepaint.pages import shipped

    assert of_folder(Path(shipped()["kit"])).hosts == ("material-kit.test", "maxcdn.bootstrapcdn.com")
