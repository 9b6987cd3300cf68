"""The stored recording contains no headers and cookies of the user."""

from __future__ import annotations

import base64

import pytest

from wirepaint.recording.secrets import Secrets, suspects
from wirepaint.recording.wish import read

URL = "https://site.test/"


@pytest.mark.parametrize(
    "text",
    [
        "a/b+c=d&long",
        "a%2Fb%2Bc%3Dd%26long",
        "a%2fb%2bc%3dd%26long",
        "a/b%2Bc%3Dd%26long",
        "a\\/b+c=d&long",
        "a/b+c=d&amp;long",
    ],
)
def test_a_value_is_hidden_however_it_is_escaped(text: str) -> None:
    secrets = Secrets(read(URL, header=["X-Token: a/b+c=d&long"]))
    assert secrets.text(f"<{text}>") == f"<{'x' * len(text)}>"
    assert dict(secrets.found) == {"the value of header X-Token": 1}


def test_the_parts_of_an_authorization_are_hidden() -> None:
    basic = base64.b64encode(b"me:correct horse").decode()
    secrets = Secrets(read(URL, header=[f"Authorization: Basic {basic}"]))
    assert (
        secrets.hidden(f"{basic} correct horse me".encode()) == b"x" * len(basic) + b" " + b"x" * 13 + b" me"
    )
    bearer = Secrets(read(URL, header=["Authorization: Bearer abcdefghij"]))
    assert bearer.text("abcdefghij Bearer") == "xxxxxxxxxx Bearer"


def test_short_values_and_the_user_agent_stay() -> None:
    secrets = Secrets(read(URL, header=["Cookie: lang=en; on=1", "User-Agent: Mozilla/5.0"]))
    data = b"en 1 Mozilla/5.0"
    assert secrets.hidden(data) is data


def test_a_value_within_another_is_hidden_with_it() -> None:
    secrets = Secrets(read(URL, header=["X-A: abcdefgh", "X-B: abcdefghij"]))
    assert secrets.text("abcdefghij abcdefgh") == "xxxxxxxxxx xxxxxxxx"


def test_parameters_that_sound_secret_are_named_and_others_are_not() -> None:
    urls = [
        "https://a.test/?token=0123456789&page=0123456789&author=0123456789",
        "https://a.test/?api_key=01234567",
    ]
    assert suspects([*urls, "https://a.test/?sid=1"]) == ["api_key", "token"]
