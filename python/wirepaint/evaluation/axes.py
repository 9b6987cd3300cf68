"""The declarations of the axes of an evaluation.

An axis is a field of ``Levels`` with an ``Axis``. The declaration determines its key under ``[scenarios]``,
its part of a scenario's name, its column in the journal and in every table of runs, and its place among the
factors of ``compare``, ``report`` and ``agree``. A back end reads its level from the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from wirepaint.evaluation import proxies
from wirepaint.evaluation.background import NONE, Background
from wirepaint.evaluation.congestion import WORDS as CONGESTION_WORDS
from wirepaint.evaluation.congestion import Congestion, CongestionTable
from wirepaint.evaluation.network import Network, NetworkTable
from wirepaint.evaluation.proxies import Proxy
from wirepaint.reading import ShortName, Table, Text

HTTP_VERSIONS = {"h1": "http/1.1", "h2": "h2"}
"""The HTTP versions and their names in ALPN (RFC 7301)."""
HTTP_WORDS = {"h1": "HTTP/1.1", "h2": "HTTP/2"}


def _form(value: Any) -> str:
    return "table" if isinstance(value, dict | Table) else "name"


@dataclass(frozen=True)
class Axis:
    """The declaration of an axis.

    ``title`` is its name in sentences. ``written`` is the type of one value in the evaluation file,
    ``default`` the values if the file has none (None: the file must have some), ``most`` the largest number.
    ``level`` turns a value into a level for columns and names, of the type ``column``; ``tag`` turns a level
    into its part of a scenario's name, ``words`` into what people read, such as "IW 10". ``named``: the name
    has this part if the file has the axis ("given"), or if the axis has several values ("varying").
    ``of_path``: the axis describes the path, not its use. Such levels have random elements of their own,
    and no direction that a back end could get wrong.
    """

    title: str
    written: Any
    default: tuple[Any, ...] | None = None
    most: int = 100
    level: Callable[[Any], str | int] = lambda value: value
    column: type[str] | type[int] = str
    tag: Callable[[str | int], str] = str
    words: Callable[[str], str] = str
    named: Literal["always", "given", "varying"] = "always"
    of_path: bool = False


class Levels(BaseModel):
    """A level of each axis, resolved: ``initial_window`` in segments."""

    model_config = ConfigDict(frozen=True)

    network: Annotated[
        Network,
        Axis(
            "network",
            Annotated[
                Annotated[Text, Tag("name")] | Annotated[NetworkTable, Tag("table")], Discriminator(_form)
            ],
            level=lambda network: network.name,
            of_path=True,
        ),
    ]
    congestion: Annotated[
        Congestion,
        Axis(
            "congestion control",
            Annotated[
                Annotated[Text, Tag("name")] | Annotated[CongestionTable, Tag("table")], Discriminator(_form)
            ],
            ("cubic",),
            level=lambda congestion: congestion.label,
            words=lambda label: CONGESTION_WORDS.get(label, label),
        ),
    ]
    http: Annotated[
        str,
        Axis(
            "HTTP version",
            Literal[*HTTP_VERSIONS],
            ("h2",),
            most=2,
            words=lambda version: HTTP_WORDS.get(version, version),
        ),
    ]
    initial_window: Annotated[
        int,
        Axis(
            "initial window",
            Annotated[int, Field(ge=1, le=1000)],
            (10,),
            most=1000,
            column=int,
            tag=lambda segments: f"iw{segments}",
            words=lambda segments: f"IW {segments}",
            named="given",
        ),
    ]
    background: Annotated[
        Background,
        Axis(
            "background traffic",
            ShortName,
            (NONE,),
            level=lambda background: background.name,
            words=lambda name: "no background" if name == NONE else name,
            named="varying",
            of_path=True,
        ),
    ] = Background()
    proxy: Annotated[
        Proxy,
        Axis(
            "proxy",
            ShortName | Annotated[list[ShortName], Field(min_length=1, max_length=len(proxies.KINDS))],
            (proxies.NONE,),
            level=lambda proxy: proxy.name,
            words=proxies.words,
            named="varying",
        ),
    ] = Proxy()


@cache
def axes() -> dict[str, Axis]:
    """Every axis by its name, in their order in scenarios."""
    fields = Levels.model_fields.items()
    return {name: each for name, field in fields for each in field.metadata if isinstance(each, Axis)}


def levels(of: Levels) -> dict[str, str | int]:
    """The level of each axis, as in its column."""
    return {name: axis.level(getattr(of, name)) for name, axis in axes().items()}


def factors() -> dict[str, str]:
    """Titles of the factors of a comparison by column: first the use of a path, then path and back end.

    By default, the first one that varies is compared.
    """
    ordered = sorted(axes().items(), key=lambda named: named[1].of_path)
    return {name: axis.title for name, axis in ordered} | {"backend": "back end"}


def words(axis: str, level: str | int) -> str:
    """A level of a factor as people read it: "HTTP/2", "IW 10"; of another column as it is."""
    declared = axes().get(axis)
    return declared.words(str(level)) if declared else str(level)
