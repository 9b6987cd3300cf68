"""Reads quantities: ``"25 Mbit/s"``, ``"13 ms"``, ``"64 kB"``, ``"1 %"``.

Prefixes are decimal (k = 1000) for rates and sizes; ``KiB`` and ``MiB`` are binary. Each reader
returns an integer in the base unit (bit/s, ns, bytes) or, for a probability, a float of 0 to 1.
The pydantic types ``Rate``, ``Time``, ``Size`` and ``Share`` read a string in an evaluation file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
TIMES = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20}
SHARES = {"%": 1}

_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ%/]+)\s*")
_LARGEST = 2**63 - 1


def _amount(text: object, units: dict[str, int], accepted: str) -> Decimal:
    """Value of ``text`` in the base unit, exact."""
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        raise PydanticCustomError("quantity", "not {accepted}", {"accepted": accepted})
    return Decimal(match[1]) * units[match[2]]


def _whole(units: dict[str, int], what: str, smallest: int = 0) -> Callable[[object], int]:
    accepted = f"{what}, in {', '.join(units)}"

    def read(text: object) -> int:
        amount = _amount(text, units, accepted)
        if not smallest <= amount <= _LARGEST:
            limit = f"{accepted}, at least {smallest} and at most 2^63-1 in the smallest unit"
            raise PydanticCustomError("quantity", "not {accepted}", {"accepted": limit})
        return round(amount)

    return read


rate = _whole(RATES, 'a rate such as "25 Mbit/s"', smallest=1)
time = _whole(TIMES, 'a time such as "13 ms"')
size = _whole(SIZES, 'a size such as "64 kB"', smallest=1)

_SHARE = 'a share such as "1 %" or 0.01, from 0 to 1'


def share(value: object) -> float:
    """A probability or relative width: a number from 0 to 1, or a string in per cent."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    else:
        number = _amount(value, SHARES, _SHARE) / 100
    if not 0 <= number <= 1:
        raise PydanticCustomError("quantity", "not {accepted}", {"accepted": _SHARE})
    return float(number)


def between(least: str, most: str, read: Callable[[object], int] = time) -> AfterValidator:
    """Restricts ``Time``, or another quantity of ``read``, to a range including both ends."""
    smallest, largest = read(least), read(most)

    def check(value: int) -> int:
        if not smallest <= value <= largest:
            raise PydanticCustomError("quantity", "not {accepted}", {"accepted": f"{least} to {most}"})
        return value

    return AfterValidator(check)


def _text(units: dict[str, int], example: str) -> dict[str, Any]:
    pattern = rf"^\s*\d+(\.\d+)?\s*({'|'.join(units)})\s*$"
    return {"type": "string", "pattern": pattern, "examples": [example]}


Rate = Annotated[int, BeforeValidator(rate), WithJsonSchema(_text(RATES, "25 Mbit/s"))]
"""Bits per second."""
Time = Annotated[int, BeforeValidator(time), WithJsonSchema(_text(TIMES, "13 ms"))]
"""Nanoseconds."""
Size = Annotated[int, BeforeValidator(size), WithJsonSchema(_text(SIZES, "64 kB"))]
"""Bytes."""
Share = Annotated[
    float,
    BeforeValidator(share),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _text(SHARES, "1 %")]}),
]
"""0 to 1."""
