"""The outcome of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["valid", "suspect", "invalid"]


@dataclass(frozen=True)
class Outcome:
    """A run that has a result.

    ``reasons`` are objects with the keys check, severity ("invalid", "suspect" or "note"), found
    and expected; ``duration_ns`` is the length of the run, ``host`` the name of the testbed that carried it
    out, None for a simulated one. ``trace`` is the digest of all rows that the simulator recorded; it stays
    only where the trace is not kept. A run without a result raises ``RunFailed`` instead.
    """

    verdict: Verdict
    reasons: list[dict[str, Any]] = field(default_factory=list)
    duration_ns: int = 0
    host: str | None = None
    trace: str | None = None

    def to_json(self) -> str:
        return json.dumps({name: value for name, value in vars(self).items() if name != "trace"})

    @classmethod
    def from_json(cls, text: str | bytes) -> Outcome:
        """Raises ``ValueError`` when the text is not an outcome."""
        value = json.loads(text)
        try:
            if value["verdict"] in ("valid", "suspect", "invalid"):
                host = value["host"]
                if host is None or isinstance(host, str):
                    return cls(value["verdict"], list(value["reasons"]), int(value["duration_ns"]), host)
        except (KeyError, TypeError):
            pass
        raise ValueError("not an outcome")
