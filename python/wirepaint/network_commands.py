"""The verbs of ``wirepaint network``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from wirepaint.printing import Json, print_json, print_rows

network = App(name="network", help="Networks: list, show and calibrate them.")


@network.command(name="list")
def network_list(*, json: Json = False) -> None:
    """List the networks that ship with wirepaint."""
    from wirepaint import catalogue
    from wirepaint.evaluation import network

    loaded = [network.load(name) for name in catalogue.names("network")]
    rows = [
        {
            "name": path.name,
            "down": _rate(path.rate("down")),
            "up": _rate(path.rate("up")),
            "rtt": f"{path.rtt_ns / 1e6:g} ms",
            "title": path.title,
        }
        for path in loaded
    ]
    print_rows(rows, json)


@network.command(name="show")
def network_show(name: str, /, *, full: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Print a network, resolved, as JSON.

    Parameters
    ----------
    name
        Name in the catalogue or path of a file.
    full
        Print capacity traces whole, not their name, length and mean rate.
    """
    from wirepaint.evaluation import network

    print_json(network.load(name).model_dump() if full else network.abridged(name))


@network.command(name="calibrate")
def network_calibrate(name: str, /, *, json: Json = False) -> None:
    """Measure what the emulated path really gives, against what was asked.

    Parameters
    ----------
    name
        Name in the catalogue or path of a file.
    json
        Print JSON.
    """
    from wirepaint.evaluation import network

    path = network.load(name)
    from wirepaint.runners.testbed import calibrate

    calibrate.command(path, json)


def _rate(bit_per_s: float | None) -> str:
    if bit_per_s is None:
        return "unlimited"
    return f"{bit_per_s / 1e6:.4g} Mbit/s" if bit_per_s >= 1e6 else f"{bit_per_s / 1e3:.4g} kbit/s"
