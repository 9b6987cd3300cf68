"""An error message is one line of bounded length that any terminal can show."""

from __future__ import annotations

import pytest

from wirepaint.errors import LONGEST_MESSAGE, UsageError, cut, show


def test_a_message_is_cut_in_the_middle_of_what_is_too_long() -> None:
    text = str(
        UsageError("/etc/" + "x" * 5000 + "/page.json", "y" * 10**6, "one of " + "z, " * 9000 + "last")
    )
    assert len(text) <= LONGEST_MESSAGE
    assert text.startswith("/etc/xxx") and "/page.json: found yyy" in text
    assert "; accepted: one of z, z" in text and text.endswith("last")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\0", r"\x00"),
        ("\ud800", r"\ud800"),
        ("\u202eevil", r"\u202eevil"),
        ("München", "München"),
    ],
)
def test_no_character_reaches_a_terminal_as_a_command(text: str, shown: str) -> None:
    assert cut(text) == shown


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "nothing"),
        ("x", '"x"'),
        ({"a": [1, 2.5, True]}, '{"a": [1, 2.5, true]}'),
        ("x" * 10**7, '"' + "x" * 58 + "…"),
        (list(range(10**6)), str(list(range(100)))[:59] + "…"),
        (nested(100_000), "[" * 59 + "…"),
        (16**100_000, "a int too large to show"),
    ],
    ids=["none", "text", "table", "long text", "long list", "deep list", "long number"],
)
def test_a_value_is_shown_shortened(value: object, shown: str) -> None:
    assert show(value) == shown
