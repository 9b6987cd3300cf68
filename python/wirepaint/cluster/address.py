"""Where a Dask scheduler is, and how connections to it are secured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wirepaint.errors import MachineLacks, UsageError, show

_SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://")
ACCEPTED = "dask://HOST:PORT, tls://HOST:PORT, or the scheduler's file (dask scheduler --scheduler-file F)"


@dataclass(frozen=True)
class Tls:
    """Files in PEM form that secure connections to tls://HOST:PORT."""

    tls_ca: Path | None = None
    """With tls://host:8786, the authority of the scheduler's certificate, PEM."""
    tls_cert: Path | None = None
    """With tls://host:8786, one's own certificate, PEM."""
    tls_key: Path | None = None
    """With tls://host:8786, the key of one's own certificate, PEM."""


def needs_dask() -> None:
    """Imports Dask distributed, without its log; raises MachineLacks where it is missing."""
    try:
        from dask import config

        config.set({"logging.distributed": "critical"})
        import distributed  # noqa: F401
    except ImportError:
        raise MachineLacks(
            "Dask distributed is not installed", 'Install it: pip install "wirepaint[dask]".'
        ) from None


def resolve(on: str, place: str) -> str:
    """The address of a scheduler as Dask writes it; raises UsageError at ``place``."""
    if on.startswith("dask://"):
        return "tcp://" + on.removeprefix("dask://")
    if on.startswith(_SCHEMES):
        return on
    path = Path(on)
    if not path.is_file():
        raise UsageError(place, show(on), ACCEPTED)
    try:
        found = json.loads(path.read_text())
    except (ValueError, OSError):
        found = None
    if not isinstance(found, Mapping) or not isinstance(found.get("address"), str):
        raise UsageError(f"{place}: {path}", "no address", "the file that a Dask scheduler wrote")
    return found["address"]


def security(address: str, tls: Tls, place: str) -> Any:
    """How connections are secured: by ``tls``, else as Dask's configuration says.

    Raises UsageError at ``place`` for a file that is missing, and for files without tls:// in the address.
    """
    from distributed import Security

    named = {f"--{name.replace('_', '-')}": path for name, path in asdict(tls).items()}
    given = {name: path for name, path in named.items() if path is not None}
    encrypted = address.startswith(("tls://", "wss://"))
    if not given:
        known = Security()
        if encrypted and known.get_connection_args("client").get("ssl_context") is None:
            accepted = "--tls-ca, --tls-cert and --tls-key, or distributed.comm.tls in Dask's configuration"
            raise UsageError(place, f"{address} without certificates", accepted)
        return known
    for name, path in given.items():
        if not path.is_file():
            raise UsageError(name, str(path), "a file in PEM form")
    if not encrypted:
        raise UsageError(place, f"{address} with {next(iter(given))}", "tls://HOST:PORT")
    if len(given) < 3:
        lacking = ", ".join(name for name in named if name not in given)
        raise UsageError("--tls", f"only {', '.join(given)}", f"also {lacking}")
    files = {"tls_ca_file": str(tls.tls_ca)}
    for role in ("client", "worker", "scheduler"):
        files |= {f"tls_{role}_cert": str(tls.tls_cert), f"tls_{role}_key": str(tls.tls_key)}
    return Security(**files, require_encryption=True)
