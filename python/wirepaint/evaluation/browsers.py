"""The browser of a user: the real Chromium, or a light one that loads pages by the page model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from wirepaint import catalogue
from wirepaint.browsers import USUAL
from wirepaint.reading import Table, nearest, refused, show

MOST_CONNECTIONS, MOST_PIPELINED = 8, 8
BrowserCache = Literal["cold", "warm", "shared"]
"""What the HTTP cache of a browser holds as a visit begins: nothing, what an earlier visit of the same page
left, or what the user's earlier visits of the run left. Connections and TLS sessions are always cold."""


def _known(model: str) -> str:
    if model not in (shipped := catalogue.names("browser")):
        raise refused(nearest(model, shipped), show(model))
    return model


class BrowserTable(Table):
    """A browser; the name of an engine alone is the table with its defaults."""

    engine: Literal["chromium", "light"] = "chromium"
    model: Annotated[str, AfterValidator(_known)] = USUAL
    """Light: whose numbers it has, a browser of the catalogue."""
    connections: Annotated[int, Field(ge=1, le=MOST_CONNECTIONS)] = 6
    """Light: most connections to a host. Over HTTP/2 one of them carries everything."""
    pipelining: Annotated[int, Field(ge=1, le=MOST_PIPELINED)] = 1
    """Light: most requests on a connection of HTTP/1.1 before the answer to the first; 1 is no pipelining."""

    @model_validator(mode="after")
    def _only_a_light_one_is_told(self) -> BrowserTable:
        told = self.model_fields_set - {"engine"}
        if self.engine == "chromium" and told:
            key = min(told)
            raise refused(
                'no such key for "chromium": only a light browser is told', show(getattr(self, key)), key
            )
        return self


def _by_name(written: Any) -> Any:
    return {"engine": written} if isinstance(written, str) else written


Browser = Annotated[BrowserTable, BeforeValidator(_by_name)]
"""The key ``browser`` of a user: ``"chromium"``, ``"light"`` or a table."""
