"""Users of an evaluation: who visits which pages in a run, and when.

A user agent alone has a run for each of its pages. User agents ``together`` share their runs: there each
user visits its pages one after another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from wirepaint.errors import UsageError
from wirepaint.evaluation import congestion as congestions
from wirepaint.evaluation import pages
from wirepaint.evaluation.browsers import BrowserCache, BrowserTable
from wirepaint.evaluation.congestion import Congestion
from wirepaint.evaluation.model import MOST_TOGETHER, THINK_NS, EvaluationFile, UserAgent
from wirepaint.evaluation.pages import PageRef
from wirepaint.reading import differ, show

_HOSTS = ("client", "server", "squid", "split", "remote", "ground")
MOST_CAPTURED = 16
"""Users of a run with captures: each has two programs and 32 MiB of the kernel's memory."""
PageResolver = Callable[[str, Path, str], PageRef]
Rehearse = Callable[[Sequence[tuple[Path, tuple[int, int]]]], list[Path]]
"""Maps the folders of pages, with the view ports of their visits, to folders of the rehearsed pages."""


class PlannedUser(BaseModel):
    """A user of a run."""

    model_config = ConfigDict(frozen=True)

    name: str
    """Unique in the run: that of its user agent, with a dot and a number where there are several."""
    congestion: Congestion | None
    """Of its uplink; None for the usual one."""
    dscp: int | None
    browser: BrowserTable

    @property
    def is_light(self) -> bool:
        """Whether it has a light browser and not Chromium."""
        return self.browser.engine == "light"


class PlannedVisit(BaseModel):
    """A visit of a run."""

    model_config = ConfigDict(frozen=True)

    user: int
    """Number of its user."""
    page_name: str
    page: Path
    """Folder of the page's archive."""
    viewport: tuple[int, int]
    """CSS pixels."""
    start_ns: int
    """Counted from the beginning of the flows, or from the load event of the visit that it comes after."""
    after: int | None = None
    """Number of that visit."""
    cache: BrowserCache = "cold"


OfRun = tuple[tuple[PlannedUser, ...], tuple[PlannedVisit, ...]]
"""Users and visits of a run."""


@dataclass(frozen=True)
class Member:
    """A user agent and its pages, in a group of users or alone."""

    name: str
    agent: UserAgent
    pages: tuple[PageRef, ...]
    congestion: Congestion | None

    def viewport(self, page: PageRef) -> tuple[int, int]:
        """The view port in which it visits a page."""
        given = self.agent.viewport
        return (given[0], given[1]) if given else page.viewport


@dataclass(frozen=True)
class Visitor:
    """Who has a run of its own in each scenario: a user agent and one of its pages, or a group of users."""

    name: str
    page: str
    """Name of the page, or of the group."""
    members: tuple[Member, ...]
    visits: int
    is_group: bool = False

    @property
    def pages(self) -> list[PageRef]:
        return [page for member in self.members for page in member.pages]

    @property
    def is_drawn(self) -> bool:
        """Whether its runs differ: equal users begin at random times."""
        return any(member.agent.spread for member in self.members)

    def of_run(self, http: str, seed: int) -> OfRun:
        """Users and visits of a run; ``seed`` draws the beginnings of equal users."""
        users: list[PlannedUser] = []
        visits: list[PlannedVisit] = []
        for member in self.members:
            agent = member.agent
            drawn = random.Random(f"{seed} {member.name}")
            for number in range(1, agent.count + 1):
                name = member.name if agent.count == 1 else f"{member.name}.{number}"
                start = agent.start + (drawn.randrange(agent.spread) if agent.spread else 0)
                for place, page in enumerate(member.pages):
                    loaded = (page.by_https if http == "h2" else None) or page
                    think = THINK_NS if agent.think is None else agent.think
                    visit = PlannedVisit(
                        user=len(users),
                        page_name=page.name,
                        page=loaded.folder,
                        viewport=member.viewport(page),
                        start_ns=think if place else start,
                        after=len(visits) - 1 if place else None,
                        cache=agent.cache,
                    )
                    visits.append(visit)
                user = PlannedUser(
                    name=name, congestion=member.congestion, dscp=agent.dscp, browser=agent.browser
                )
                users.append(user)
        return tuple(users), tuple(visits)


def resolve(
    file: EvaluationFile, backends: Sequence[str], base: Path, place: str, page_resolver: PageResolver
) -> list[Visitor]:
    """The visitors of an evaluation; raises UsageError at ``place``."""
    several = len(file.user_agents) > 1
    names = [agent.name or (f"user{i}" if several else "user") for i, agent in enumerate(file.user_agents, 1)]
    differ(names, [f"{place}: user_agents[{i}].name" for i in range(len(names))])
    visitors: list[Visitor] = []
    groups: dict[str, list[Member]] = {}
    for index, (name, agent) in enumerate(zip(names, file.user_agents, strict=True)):
        at = f"{place}: user_agents[{index}]"
        member = _member(name, agent, backends, base, at, page_resolver)
        if name in _HOSTS and (agent.group is not None or file.flows or file.background):
            accepted = f"another name: {', '.join(_HOSTS)} are hosts of every run"
            raise UsageError(f"{at}.name", show(name), accepted)
        if agent.group is None:
            visitors += [
                Visitor(name, page.name, (replace(member, pages=(page,)),), agent.visits)
                for page in member.pages
            ]
            continue
        if agent.group in names:
            accepted = f"a name that no user agent has: {agent.group} is one"
            raise UsageError(f"{at}.together", show(agent.group), accepted)
        others = groups.setdefault(agent.group, [])
        if agent.browser.engine == "light":
            for other in others:
                if other.agent.browser.engine == "light" and other.congestion != member.congestion:
                    accepted = f"that of {other.name}: the light users of a run share a machine"
                    raise UsageError(f"{at}.congestion", show(agent.congestion), accepted)
        if others and others[0].agent.visits != agent.visits:
            accepted = f"{others[0].agent.visits}, as of {others[0].name}: they share their runs"
            raise UsageError(f"{at}.visits", show(agent.visits), accepted)
        others.append(member)
        if (users := sum(other.agent.count for other in others)) > MOST_TOGETHER:
            raise UsageError(f"{at}.count", f"{users} users", f"at most {MOST_TOGETHER} in one run")
    # What cannot count is known by the names of pages and groups.
    known = {page.name for visitor in visitors for page in visitor.pages}
    for name, members in groups.items():
        if name in known:
            raise UsageError(f"{place}: user_agents.together", show(name), f"another name: {name} is a page")
        users = sum(member.agent.count for member in members)
        if file.capture is not None and users > MOST_CAPTURED:
            raise UsageError(f"{place}: capture", f"{users} users in {name}", f"at most {MOST_CAPTURED}")
        visitors.append(Visitor(name, name, tuple(members), members[0].agent.visits, is_group=True))
    return visitors


def _member(
    name: str, agent: UserAgent, backends: Sequence[str], base: Path, place: str, page_resolver: PageResolver
) -> Member:
    places = [f"{place}.pages[{i}]" for i in range(len(agent.pages))]
    differ(agent.pages, places)
    found = [page_resolver(page, base, at) for page, at in zip(agent.pages, places, strict=True)]
    differ([page.name for page in found], places)
    control = None
    if agent.congestion is not None:
        control = congestions.resolve(agent.congestion, f"{place}.congestion", backends, base)
        if control.file is not None:
            accepted = "a name; a C file of your own goes under scenarios.congestion"
            raise UsageError(f"{place}.congestion", show(agent.congestion), accepted)
    return Member(name, agent, tuple(found), control)


def check_hosts(visitors: Sequence[Visitor], proxy: str, place: str) -> None:
    """Raises UsageError for pages of one run that share a host, where ``proxy`` is an HTTP proxy.

    It goes by names, and each page has servers of its own; so has a page in each of its view ports.
    """
    for visitor in visitors:
        owners: dict[str, tuple[PageRef, tuple[int, int]]] = {}
        for member in visitor.members:
            for page in member.pages:
                visited = page, member.viewport(page)
                for host in page.hosts:
                    known, viewport = owners.setdefault(host, visited)
                    if (known.folder, viewport) == (page.folder, visited[1]):
                        continue
                    both = f"{known.name} and {page.name}, which share the host {host}"
                    if known.folder == page.folder:
                        both = f"{page.name} in two view ports"
                    found = f"{both}, in the group {visitor.page} with proxy {proxy}"
                    accepted = "pages with hosts of their own: a proxy goes by names"
                    raise UsageError(f"{place}: user_agents, {member.name}: pages", found, accepted)


def by_version(visitors: list[Visitor], versions: Sequence[str]) -> list[Visitor]:
    """Adds the https version of plain http pages if some scenario asks for HTTP/2."""
    from wirepaint.pages import secure

    def both(_: Member, page: PageRef) -> PageRef:
        if "h2" not in versions or not page.plain:
            return page
        if "h1" not in versions:
            return pages.of_folder(secure.secured(page.folder))
        return page.model_copy(update={"by_https": pages.of_folder(secure.secured(page.folder))})

    return _with_pages(visitors, both)


def rehearsed(visitors: list[Visitor], rehearse: Rehearse) -> list[Visitor]:
    """The visitors with rehearsed pages."""
    wanted = {
        (page.folder, member.viewport(page)): None
        for visitor in visitors
        for member in visitor.members
        for one in member.pages
        for page in (one, one.by_https)
        if page is not None
    }
    found = dict(zip(wanted, rehearse(list(wanted)), strict=True))

    def of(member: Member, page: PageRef) -> PageRef:
        folder = found[page.folder, member.viewport(page)]
        by_https = of(member, page.by_https) if page.by_https else None
        of_source = {"by_https": by_https, "contents": page.contents}
        return pages.of_folder(folder).model_copy(update=of_source)

    return _with_pages(visitors, of)


def _with_pages(visitors: list[Visitor], of: Callable[[Member, PageRef], PageRef]) -> list[Visitor]:
    def changed(members: Sequence[Member]) -> Iterator[Member]:
        for member in members:
            yield replace(member, pages=tuple(of(member, page) for page in member.pages))

    return [replace(visitor, members=tuple(changed(visitor.members))) for visitor in visitors]
