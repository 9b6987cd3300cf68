"""The content of a study's file."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, model_validator

from wirepaint import catalogue
from wirepaint.errors import UsageError
from wirepaint.reading import Table, nearest, read_toml, refused, show, validate

Point = dict[str, Any]
"""One point of a sweep: the values of the varied names."""


class Given(Table):
    """A value of the set-up, as the paper gives it."""

    value: str
    meaning: str
    source: str


class Parameter(Table):
    """What the paper leaves open: our choice, the alternatives, and why."""

    default: str
    options: list[str] = Field(min_length=1)
    reason: str

    @model_validator(mode="after")
    def _default_is_an_option(self) -> Parameter:
        if self.default not in self.options:
            raise refused(f"one of {', '.join(self.options)}", show(self.default), "default")
        return self


class Sweep(Table):
    """Points to carry out: ``fixed`` at all of them, ``over`` the grid of the lists.

    ``series`` is the key of a point whose values are the series of figures and claims; without it the measure
    gives them. With ``against``, one of the series, ``saved_percent`` says how much shorter the load time
    ``load_s`` is than that series' at the same point.
    """

    measure: str
    fixed: Point = Field(default_factory=dict)
    over: dict[str, list[Any]] = Field(default_factory=dict)
    seeds: int | None = Field(default=None, ge=1)
    series: str | None = None
    against: str | None = None

    @model_validator(mode="after")
    def _series_is_varied(self) -> Sweep:
        if self.series is not None and self.series not in self.over:
            raise refused(nearest(self.series, self.over), show(self.series), "series")
        known = [str(value) for value in self.over[self.series]] if self.series else []
        if self.against is not None and self.against not in known:
            raise refused(nearest(self.against, known), show(self.against), "against")
        return self

    def points(self) -> list[Point]:
        """The points, the last key of ``over`` varying fastest."""
        grid = product(*self.over.values())
        return [self.fixed | dict(zip(self.over, values, strict=True)) for values in grid]


class Selection(Table):
    """Rows of a sweep: those whose columns have the values of ``where`` and lie in ``between``."""

    sweep: str
    where: dict[str, Any] = Field(default_factory=dict)
    between: dict[str, Annotated[tuple[float, float], Strict(False)]] = Field(default_factory=dict)


class Figure(Selection):
    """One plot: ``y`` over ``x``, a line for each series, a panel for each value of the column ``facet``."""

    id: str
    title: str
    caption: str
    x: str
    x_title: str
    y: str
    y_title: str
    facet: str | None = None
    log: bool = False


class Claim(Selection):
    """What the paper says, and by which rule that is tested; :mod:`wirepaint.studies.verdicts`."""

    id: str
    item: str
    says: str
    published: str
    kind: Literal["more", "same", "about", "rises", "falls", "incomparable"]
    sweep: str = ""
    x: str | None = None
    y: str = ""
    first: str = ""
    second: str = ""
    margin: float = Field(default=0.02, ge=0)
    factor: float = Field(default=1, ge=1)
    value: float | None = None
    """The published number of a claim of the kind ``about``."""
    at_every_point: bool = False
    """Of the kind ``about``: at each point of the sweep, not in the mean over them."""
    why: str = ""
    remark: str = ""
    """Shown below what the paper says: why this rule."""
    same_as: str | None = None
    """Another claim, which tests the same fact and is counted in place of this one."""

    @model_validator(mode="after")
    def _only_more_has_a_factor(self) -> Claim:
        if self.factor != 1 and self.kind != "more":
            raise refused("1 where the kind is not more", show(self.factor), "factor")
        return self

    @model_validator(mode="after")
    def _about_has_a_value(self) -> Claim:
        if (self.value is not None) != (self.kind == "about"):
            found = "nothing" if self.value is None else show(self.value)
            raise refused("a number where the kind is about, else nothing", found, "value")
        if self.at_every_point and self.kind != "about":
            raise refused("false where the kind is not about", "true", "at_every_point")
        return self


class Derived(Table):
    """A statement that holds when the claims behind it do."""

    id: str
    item: str
    says: str
    claims: list[str] = Field(min_length=1)


class Study(Table):
    """A study: what was published, what is simulated, what is drawn and claimed."""

    title: str
    summary: str
    source: str
    code: str
    seeds: int = Field(ge=1)
    quick_seeds: int = Field(ge=1)
    setup: dict[str, Given]
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    sweeps: dict[str, Sweep]
    figures: list[Figure]
    claims: list[Claim]
    derived: list[Derived] = Field(default_factory=list)
    today: list[Claim] = Field(default_factory=list)
    """The paper's questions asked of today's browsers, protocols and pages; not counted as claims."""

    @model_validator(mode="after")
    def _names_exist(self) -> Study:
        selected = {"figures": self.figures, "claims": self.claims, "today": self.today}
        for key, selections in selected.items():
            for at, selection in enumerate(selections):
                if selection.sweep not in self.sweeps and getattr(selection, "kind", "") != "incomparable":
                    raise refused(
                        nearest(selection.sweep, self.sweeps), show(selection.sweep), f"{key}[{at}].sweep"
                    )
        known = [claim.id for claim in self.claims]
        ids = [*known, *(derived.id for derived in self.derived), *(claim.id for claim in self.today)]
        if again := [name for name in ids if ids.count(name) > 1]:
            raise refused("names that each stand once", show(again[0]), "claims.id, derived.id, today.id")
        named = [
            (f"derived[{at}].claims", claim) for at, one in enumerate(self.derived) for claim in one.claims
        ]
        named += [(f"claims[{at}].same_as", one.same_as) for at, one in enumerate(self.claims) if one.same_as]
        for key, claim in named:
            if claim not in known:
                raise refused(nearest(claim, known), show(claim), key)
        return self

    def chosen(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The parameters with ``settings`` in place of defaults; raises UsageError."""
        for name, value in settings.items():
            if name not in self.parameters:
                raise UsageError("--set", show(name), nearest(name, self.parameters))
            if value not in (options := self.parameters[name].options):
                raise UsageError(f"--set {name}", show(value), f"one of {', '.join(options)}")
        return {name: parameter.default for name, parameter in self.parameters.items()} | dict(settings)

    def part(self, sweeps: Sequence[str] | None, seeds: int | None) -> Study:
        """The study with these sweeps only and so many repetitions of a point, and the claims that are left.

        None leaves all as it is. Raises UsageError for a sweep that it lacks.
        """
        for name in sweeps or ():
            if name not in self.sweeps:
                raise UsageError("--sweep", show(name), nearest(name, self.sweeps))
        if seeds is not None and seeds < 1:
            raise UsageError("--seeds", show(seeds), "a whole number from 1")
        kept = {name: of for name, of in self.sweeps.items() if sweeps is None or name in sweeps}
        claims = [claim for claim in self.claims if sweeps is None or claim.sweep in kept]
        ids = {claim.id for claim in claims}
        left = {
            "sweeps": kept,
            "figures": [figure for figure in self.figures if figure.sweep in kept],
            # What tests the same fact as a claim that is left out counts itself.
            "claims": [
                claim if claim.same_as in ids else claim.model_copy(update={"same_as": None})
                for claim in claims
            ],
            "derived": [one for one in self.derived if ids.issuperset(one.claims)],
            "today": [claim for claim in self.today if sweeps is None or claim.sweep in kept],
        }
        repeated = {} if seeds is None else {"seeds": seeds, "quick_seeds": seeds}
        return self.model_copy(update=left | repeated)

    def seeds_of(self, sweep: Sweep, quick: bool) -> int:
        """Repetitions of each point of a sweep."""
        seeds = self.quick_seeds if quick else self.seeds
        return min(seeds, sweep.seeds or seeds)

    @property
    def is_evaluated(self) -> bool:
        """Whether its points are runs of evaluations, not run descriptions of its own code."""
        return hasattr(self.module(), "conditions")

    def module(self) -> ModuleType:
        """The code of the study."""
        return importlib.import_module(f"wirepaint.studies.{self.code}")


def load(reference: str) -> tuple[str, Study]:
    """Name and content of a study, by its name in the catalogue or the path of a file; raises UsageError."""
    path = catalogue.find("study", reference, Path())
    study = validate(Study, read_toml(path), str(path))
    try:
        code = study.module()
    except ModuleNotFoundError:
        raise UsageError(f"{path}: code", show(study.code), "a module of wirepaint.studies") from None
    for key, sweep in study.sweeps.items():
        if sweep.measure not in code.MEASURES:
            accepted = nearest(sweep.measure, code.MEASURES)
            raise UsageError(f"{path}: sweeps.{key}.measure", show(sweep.measure), accepted)
        for point in sweep.points():
            validate(code.Asked, point, str(path), f"sweeps.{key}")
    return catalogue.name_of(path), study
