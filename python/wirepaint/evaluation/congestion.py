"""Congestion controls by name: those built into the running kernel and ours, with their parameters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from wirepaint import catalogue, dataplane, files
from wirepaint.errors import UsageError
from wirepaint.evaluation import sysctls as kernel_settings
from wirepaint.reading import Table, Text, located, nearest, show

_LARGEST_FILE = 2**20
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LINUX = {
    *("reno", "bic", "cubic", "westwood", "htcp", "hybla", "vegas", "nv", "scalable", "lp", "veno", "yeah"),
    *("illinois", "dctcp", "cdg", "bbr", "bbr2", "bbr3"),
}
"""Names that Linux itself may register; all others in the kernel's list are BPF programs."""


NATIVE: dict[str, tuple[str, dict[str, int]]] = {
    "cubic": ("cubic9438", {"cubic_flight": 1, "cubic_hystart": 1, "cubic_linux": 1}),
    "reno": ("std", {"std_flight": 1, "std_applim_growth": 0, "std_rw": 65535}),
    "bbr": ("bbr1", {}),
}
"""The simulator's equivalent of a kernel algorithm: one of ours, with parameters.
Linux's cubic and reno reduce from cwnd; its cubic has HyStart; its reno grows only while the window is in
use, and leaves restarts to the kernel."""


class CongestionTable(Table):
    """A congestion control with parameters; every further key is a parameter of the algorithm."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]  # pyright: ignore[reportIncompatibleVariableOverride]

    name: Text
    title: Text | None = None
    sysctls: kernel_settings.Sysctls = Field(default_factory=dict)


C_FILE = "a C file that can be read"


class UserFile(BaseModel):
    """A C file of the user's own. Runs use ``text``, whatever the file holds later."""

    model_config = ConfigDict(frozen=True)

    sha256: str
    text: str = Field(exclude=True, repr=False)


class Congestion(BaseModel):
    """A congestion control as a scenario asks for it.

    ``label`` is its name in the scenario. ``own`` tells a C file, of congestion/algorithms or of the
    user's own (``file``), from one of the kernel's own; ``parameters`` differ from the algorithm's defaults.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    name: str
    own: bool
    parameters: dict[str, int]
    sysctls: dict[str, int | str]
    file: UserFile | None = None
    own_initial_window: bool = Field(default=False, exclude=True)
    """It sets the window of a new connection itself (CC_OWN_INITIAL_WINDOW in its source)."""

    def algorithm(self, folder: Path) -> str:
        """Its name for the data plane, or the path of a copy of its file in ``folder``."""
        if self.file is None:
            return self.name
        path = folder.absolute() / f"{self.name}.c"
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.file.text)
        return str(path)

    @property
    def simulated(self) -> str:
        """Name of the algorithm that the simulator runs for it."""
        return NATIVE[self.name][0] if not self.own and self.name in NATIVE else self.name

    def native(self, folder: Path) -> tuple[str, dict[str, int]]:
        """The algorithm (see ``algorithm``) and the parameters that the simulator runs for it."""
        if not self.own and self.name in NATIVE:
            return NATIVE[self.name]
        return self.algorithm(folder), self.parameters


WORDS = {
    "cubic": "CUBIC", "reno": "Reno", "bbr": "BBR", "dctcp": "DCTCP", "bbr1": "BBR v1", "bic": "BIC",
    "cubic9438": "CUBIC (RFC 9438)", "cwv": "CWV", "dcac": "TCP/DCA-C", "fld": "FLD_TCP",
    "heracles": "Heracles", "hybla": "Hybla", "newcwv": "newCWV", "std": "STD", "tcbe": "TCBE",
    "tcbt": "TCBT", "tcpint": "TCP-Int", "vegas": "Vegas", "westwood": "Westwood+",
}  # fmt: skip
"""Names as their papers write them, by label; any other label is its own name."""
_OF_RUN = re.compile(r"_[a-z0-9]{5}$")


def in_words(name: str | None) -> str | None:
    """A control as people write it, by its label or the name that a run registered with the kernel."""
    label = name and _OF_RUN.sub("", name)
    return WORDS.get(label, label) if label else label


@cache
def of_kernel() -> tuple[str, ...]:
    """Names that this kernel has built in or loaded as modules."""
    return tuple(name for name in _AVAILABLE.read_text().split() if name in _LINUX)


def registered_by_runs() -> list[str]:
    """Names that runs registered, ``<algorithm>_<run id>``, and that still exist."""
    pattern = re.compile(rf"({'|'.join(name[:9] for name in ours())})_[a-z0-9]{{5}}")
    return [name for name in _AVAILABLE.read_text().split() if pattern.fullmatch(name)]


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in dataplane.call("cc", "list")}


@cache
def ours() -> dict[str, dict[str, dict[str, Any]]]:
    """Algorithms of congestion/ by name, each with its parameters by name (min, max, summary)."""
    return {name: {p["name"]: p for p in entry["parameters"]} for name, entry in _catalogue().items()}


def needs(name: str) -> dict[str, int | str]:
    """Sysctls that an algorithm of ours needs (CC_SYSCTL in its source)."""
    return dict(_catalogue()[name]["sysctls"])


def own_file(value: str | CongestionTable) -> str | None:
    """The C file of a congestion control, as written; None for one with a name."""
    name = value if isinstance(value, str) else value.name
    return name if name.endswith(".c") else None


def resolve(
    value: str | CongestionTable, place: str, backends: Sequence[str] = ("testbed",), base: Path | None = None
) -> Congestion:
    """The congestion control that an evaluation names; raises UsageError at ``place``.

    A name that ends in ``.c`` is a C file of the user's own, relative to ``base``.
    """
    table = CongestionTable.model_construct(name=value) if isinstance(value, str) else value
    parameters = dict(table.__pydantic_extra__ or {})
    where = place if isinstance(value, str) else f"{place}.name"
    if table.name.endswith(".c"):
        path = located(table.name, base or Path(), where)
        return _of_file(path, table, place, where, backends)
    name = find(table.name, where, backends)
    own = name not in _of_linux(backends)
    _check_parameters(name, parameters, ours()[name] if own else {}, place, backends)
    kernel_settings.check(table.sysctls, f"{place}.sysctls", backends)
    sysctls = (needs(name) if own else {}) | table.sysctls
    return Congestion(
        label=_label(name, table, place),
        name=name,
        own=own,
        parameters=parameters,
        sysctls=sysctls,
        own_initial_window=own and _catalogue()[name]["own_initial_window"],
    )


def known() -> list[str]:
    """Every name of this kernel's and ours."""
    return [*dict.fromkeys([*of_kernel(), *NATIVE, *ours()])]


def find(written: str, place: str, backends: Sequence[str]) -> str:
    """The congestion control that a name means; raises UsageError at ``place`` if a back end has none."""
    of_linux = _of_linux(backends)
    name = catalogue.called("congestion", written, [*of_linux, *ours()])
    if "simulator" in backends and name not in NATIVE and name not in ours():
        accepted = f"for the simulator {catalogue.nearest('congestion', written, [*NATIVE, *ours()])}"
        raise UsageError(place, show(written), accepted)
    if name not in of_linux and name not in ours():
        accepted = catalogue.nearest("congestion", written, [*of_linux, *ours()])
        if name in _LINUX:
            accepted += f" ({name} after: sudo modprobe tcp_{name})"
        raise UsageError(place, show(written), accepted)
    return name


def _of_linux(backends: Sequence[str]) -> tuple[str, ...]:
    return of_kernel() if "testbed" in backends else tuple(NATIVE)


def _of_file(
    path: Path, table: CongestionTable, place: str, where: str, backends: Sequence[str]
) -> Congestion:
    """The congestion control of a C file, which is compiled to learn its parameters."""
    text = files.text(path, _LARGEST_FILE, C_FILE, f"{where}: {path}")
    entry = dataplane.control(path, where)
    name, parameters = entry["name"], dict(table.__pydantic_extra__ or {})
    _check_parameters(name, parameters, {p["name"]: p for p in entry["parameters"]}, place, backends)
    kernel_settings.check(entry["sysctls"], f"{path}: CC_SYSCTL", backends)
    kernel_settings.check(table.sysctls, f"{place}.sysctls", backends)
    return Congestion(
        label=_label(name, table, place),
        name=name,
        own=True,
        parameters=parameters,
        sysctls=entry["sysctls"] | table.sysctls,
        own_initial_window=entry["own_initial_window"],
        file=UserFile(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text),
    )


def _check_parameters(
    name: str,
    parameters: dict[str, int],
    known: dict[str, dict[str, Any]],
    place: str,
    backends: Sequence[str],
) -> None:
    for key, number in parameters.items():
        if key not in known:
            accepted = nearest(key, ["name", "title", "sysctls", *known])
            raise UsageError(f"{place}.{key}", f"a key that {name} does not have", accepted)
        least, most = known[key]["min"], known[key]["max"]
        if not least <= number <= most:
            accepted = f"{least} to {most} ({known[key]['summary']})"
            raise UsageError(f"{place}.{key}", show(number), accepted)
        usual = known[key]["default"]
        if known[key].get("simulated") and "testbed" in backends and number != usual:
            raise UsageError(
                f"{place}.{key}", f"{number} for the testbed", f'{usual}, or backend = "simulator"'
            )


def _label(name: str, table: CongestionTable, place: str) -> str:
    if table.title is not None:
        return named(table.title, f"{place}.title")
    parameters = table.__pydantic_extra__ or {}
    return slug("-".join([name, *(f"{key}-{number}" for key, number in parameters.items())]))


def named(text: str, place: str) -> str:
    """``slug`` of a name; raises UsageError at ``place`` if it is empty."""
    if not (left := slug(text)):
        raise UsageError(place, show(text), "a name with a letter or digit of ASCII")
    return left


def slug(text: str) -> str:
    """``text`` as a part of a run key: only a-z, 0-9, dot, underscore and hyphen."""
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-.")
