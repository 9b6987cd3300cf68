"""Davern et al. 2011 (HTTP-AE): web pages over a satellite path of 600 ms.

The users' browsers and the server are at the ends of an emulated link, 300 ms each way. The
browser is a light user with the numbers of Firefox 3.6, which has as many connections to a host and as many
pipelined requests as asked. The pages are those of :mod:`wirepaint.studies.photo_pages`, over plain HTTP/1.1.
The paper's proxy has a side at each end of the link. The same questions are asked of today's browser
(Chromium's model), HTTP/2 and shipped pages. One user of today has Chromium on the testbed; several are light
users with Chromium's numbers, as one machine bears few browsers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import Field

from wirepaint import metrics
from wirepaint.metrics import Trace, group_of
from wirepaint.reading import Table, validate
from wirepaint.studies import photo_pages
from wirepaint.studies.evaluations import Conditions
from wirepaint.studies.model import Point, Study

PAPERS = {"kind": "pep", "connections": 8, "schedule": "arrival", "ahead": "markup"}
FAIR = {"schedule": "fair", "rate": "256 kbit/s"}
"""Of the link: what waits does so in the proxy, where users take turns."""
PROXIES: dict[str, dict[str, Any]] = {
    "pep": PAPERS,
    "pep-gzip": PAPERS | {"compression": "gzip"},
    "pep-fair": PAPERS | FAIR,
    "pep-classes": PAPERS | {"connections": 1},
    "pep-classes-fair": PAPERS | {"connections": 1} | FAIR,
    "pep-today": {
        "kind": "pep", "connections": 1, "multiplexed": True, "compression": "br", "ahead": "rehearsed"
    },
    "split": {"kind": "split"},
}  # fmt: skip
"""Proxies that sweeps name. Those of the paper have its scheduler and eight connections between the sides, or
one for each class; ``fair`` differs from them in the scheduler, which sends at the link's rate."""
TODAYS_WINDOW = 10
"""Segments (RFC 6928)."""
CLASSES = {"gold": (10, 50), "silver": (18, 30), "bronze": (None, 20)}
"""Code point of a class, and its share of the link in per cent (the paper's Figure 4). Bronze is the rest."""


class Asked(Table):
    """A point of a sweep, as the study's file gives it."""

    rate_kbit_s: int = Field(ge=1)
    """Of the link, towards the users."""
    images: int = Field(10, ge=1, le=photo_pages.MOST_PHOTOS)
    page: str | None = None
    """A shipped page instead of images."""
    queue: int | None = Field(None, ge=1)
    """Packets; None for the parameter's."""
    browser: Literal["firefox", "chromium"] = "firefox"
    connections: int = Field(6, ge=1, le=8)
    """Firefox: most to a host."""
    pipelined: bool = False
    """Firefox: requests are pipelined."""
    congestion: str | None = None
    """At the server; None for the parameter's."""
    http: Literal["h1", "h2"] = "h1"
    users: int = Field(1, ge=1, le=100)
    """Of each class, where there are classes."""
    classes: bool = False
    """Gold, silver and bronze users."""
    proxy: Literal["none", *PROXIES] = "none"  # type: ignore[valid-type]


def settings(study: Study, parameters: Mapping[str, str]) -> dict[str, Any]:
    """What holds for all runs: keys of an evaluation file."""
    return {"timeout": study.setup["timeout"].value}


def prepare(study: Study, parameters: Mapping[str, str], folder: Path) -> None:
    """Makes the pages in ``folder``."""
    for sweep in study.sweeps.values():
        for point in sweep.points():
            asked = validate(Asked, point, "sweeps")
            target = folder / _made_page(parameters, asked)
            if asked.page is None and not target.is_dir():
                photo_pages.make(asked.images, _bytes(parameters), target, _scheme(asked))


def conditions(study: Study, parameters: Mapping[str, str], point: Point) -> Conditions:
    """A point in the words of an evaluation file that lies beside the folder of pages."""
    asked = validate(Asked, point, "sweeps")
    return Conditions(
        network=_network(study, parameters, asked),
        agents=_agents(parameters, asked),
        congestion=asked.congestion or parameters["httpae_congestion"],
        http=asked.http,
        initial_window=int(parameters["httpae_initial_window"])
        if asked.browser == "firefox"
        else TODAYS_WINDOW,
        proxy=PROXIES[asked.proxy] | {"name": asked.proxy} if asked.proxy != "none" else None,
    )


def _network(study: Study, parameters: Mapping[str, str], asked: Asked) -> dict[str, Any]:
    delay = study.setup["one_way"].value
    packets = asked.queue or int(parameters["httpae_queue"])
    queue: dict[str, Any] = {"kind": "droptail", "packets": packets}
    down: dict[str, Any] = {"rate": f"{asked.rate_kbit_s} kbit/s", "delay": delay, "queue": queue}
    if (jitter := parameters["httpae_jitter"]) != "0 ms":
        down["jitter"] = {"kind": "uniform", "range": jitter}
    up = down if parameters["httpae_up"] == "same" else down | {"rate": parameters["httpae_up"]}
    if asked.classes:
        shares = [
            {"weight": share, "packets": packets} | ({"dscp": [point]} if point else {})
            for point, share in CLASSES.values()
        ]
        down = down | {"queue": {"kind": "classes", "classes": shares}}
    return {"title": f"{asked.rate_kbit_s}k-q{packets}", "down": down, "up": up}


def _agents(parameters: Mapping[str, str], asked: Asked) -> list[dict[str, Any]]:
    agent: dict[str, Any] = {"pages": [asked.page or f"../{_made_page(parameters, asked)}"]}
    alone = asked.users == 1 and not asked.classes
    if asked.browser == "chromium":
        name = "chromium"
        if not alone:
            agent["browser"] = "light"
    else:
        depth = int(parameters["httpae_pipelining"]) if asked.pipelined else 1
        name = f"firefox-{asked.connections}-{depth}"
        agent["browser"] = {
            "engine": "light",
            "model": "firefox-3",
            "connections": asked.connections,
            "pipelining": depth,
        }
    if alone:
        return [{"name": name, **agent}]
    group = f"x{asked.users}-{asked.page or asked.images}-{name}"
    users = {"together": group, "count": asked.users, "spread": parameters["httpae_spread"]}
    if not asked.classes:
        return [{"name": f"{group}-u", **agent, **users}]
    return [
        {"name": f"{group}-{name}", **agent, **users} | ({"dscp": point} if point else {})
        for name, (point, _) in CLASSES.items()
    ]


def _made_page(parameters: Mapping[str, str], asked: Asked) -> str:
    """The path of a page of photos in the study's folder.

    Each length of text has its own folder. The names are the same, so visits have the same random draws.
    """
    text = parameters["httpae_text"].replace(" ", "")
    return f"pages/{text}/photos-{asked.images:02}-{_scheme(asked)}"


def _scheme(asked: Asked) -> str:
    """Pages of 2011 were plain; today's are encrypted over each version of HTTP."""
    return "http" if asked.browser == "firefox" else "https"


def _bytes(parameters: Mapping[str, str]) -> int:
    return 1000 * int(parameters["httpae_text"].removesuffix(" kB"))


# Measures. Packets are IP packets at the link, both ways.


def load(trace: Trace) -> pl.DataFrame:
    """``load_s`` from the navigation to the load event, ``packets`` both ways, ``connections``."""
    page = trace("page")
    return pl.DataFrame(
        {
            "load_s": _load_s(page),
            "packets": [_packets(trace("client"))],
            "connections": [trace("connection").height],
        }
    )


def users(trace: Trace) -> pl.DataFrame:
    """Load times of the user who began first, and of the others in the mean: series ``first``, ``later``.

    ``later_percent`` is how much longer the later ones take. The series ``all`` has ``jain``, the metric
    jain-index-of-users.
    """
    page = trace("page").sort("navigation_start", maintain_order=True)
    loads = _load_s(page)
    first, later = float(loads[0]), float(loads[1:].to_numpy().mean())
    return pl.DataFrame(
        {
            "series": ["first", "later", "all"],
            "load_s": [first, later, None],
            "later_percent": [None, 100 * (later / first - 1), None],
            "jain": [None, None, metrics.get("jain-index-of-users").function(trace)],
        }
    )


def classes(trace: Trace) -> pl.DataFrame:
    """Mean load times of each class: series ``gold``, ``silver`` and ``bronze``; of bronze also ``first`` and
    ``later`` users, as in :func:`users`."""
    page = trace("page").sort("navigation_start", maintain_order=True)
    named = page.with_columns(_load_s(page), series=group_of("user_agent").str.split("-").list.last())
    rows = named.group_by("series", maintain_order=True).agg(pl.col("load_s").mean())
    bronze = named.filter(series="bronze")["load_s"]
    if bronze.len() > 1:
        later = float(bronze[1:].to_numpy().mean())
        rows.extend(pl.DataFrame({"series": ["first", "later"], "load_s": [float(bronze[0]), later]}))
    return rows


MEASURES = {"load": load, "users": users, "classes": classes}


def _load_s(page: pl.DataFrame) -> pl.Series:
    return ((page["load_event"] - page["navigation_start"]) / 1e9).alias("load_s")


def _packets(clients: pl.DataFrame) -> int:
    return int(clients["sent_packets"].sum()) + int(clients["received_packets"].sum())
