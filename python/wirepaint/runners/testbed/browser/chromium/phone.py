"""Emulates a phone through DevTools: screen, touch and user agent."""

from __future__ import annotations

from typing import Any

from wirepaint.runners.testbed.browser.chromium.devtools import Devtools

VIEWPORT = (412, 823)
"""The usual phone of Lighthouse, a moto g power, in CSS pixels."""
PIXELS = 2.625
"""Its device pixels per CSS pixel."""
AGENT = (
    "Mozilla/5.0 (Linux; Android 11; moto g power (2022)) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/{major}.0.0.0 Mobile Safari/537.36"
)


def emulate(devtools: Devtools, session: str, viewport: tuple[int, int]) -> None:
    """Gives the page of ``session`` the phone's screen with ``viewport`` in CSS pixels, and touch."""
    width, height = viewport
    screen = {"width": width, "height": height, "deviceScaleFactor": PIXELS, "mobile": True}
    devtools.call("Emulation.setDeviceMetricsOverride", screen, session)
    devtools.call("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 5}, session)


def user_agent(version: str, asked: str | None = None) -> dict[str, Any]:
    """Parameters of Emulation.setUserAgentOverride for the phone.

    ``version`` is the browser's product and version; ``asked`` replaces the header.
    """
    full = version.partition("/")[2] or "0"
    major = full.partition(".")[0]
    brands = [("Chromium", major, full), ("Not.A/Brand", "24", "24.0.0.0")]
    return {
        "userAgent": asked or AGENT.format(major=major),
        "platform": "Linux armv8l",
        "userAgentMetadata": {
            "brands": [{"brand": name, "version": short} for name, short, _ in brands],
            "fullVersionList": [{"brand": name, "version": long} for name, _, long in brands],
            "platform": "Android",
            "platformVersion": "11",
            "architecture": "",
            "model": "moto g power (2022)",
            "mobile": True,
        },
    }
