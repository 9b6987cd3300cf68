"""Reads a TOML file into a pydantic model; every error names file, key, found and accepted values."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, LiteralString, Self, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from wirepaint import files
from wirepaint.errors import Faults, UsageError, show

LARGEST_FILE = 2**20
"""Bytes; a hand-written file is far smaller."""
_KNOWN_TYPES = frozenset(get_args(ErrorType))
_JSON = re.compile(r"\s*(\{|\[\s*\{)")
"""How JSON of a recording begins; no TOML file does."""
_PARTS = 16  # also in the expression
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]{0,200}+"|'[^'\n]{0,200}+')[ \t]*+\.[ \t]*+){16}""")
"""A dotted key of more parts: tomllib takes quadratic time in their number."""


Text = Annotated[str, Field(min_length=1, max_length=200)]
"""A line that a user writes."""
_SHORT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def _short_name(name: str) -> str:
    if not _SHORT_NAME.fullmatch(name):
        raise refused("1 to 32 characters of a-z, 0-9, _ and -")
    return name


ShortName = Annotated[str, AfterValidator(_short_name)]
"""A name that becomes a part of a file name."""


class Table(BaseModel):
    """A table of a file: unknown keys are refused with the nearest name that exists."""

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Keys that people may look for here, each with where it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys_only(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        names = [field.alias or name for name, field in cls.model_fields.items()]
        if not isinstance(value, dict) or cls.model_config.get("extra") != "forbid":
            return handler(value)
        known = {key: value[key] for key in value if key in names}
        unknown = [unknown_key(key, names, cls.elsewhere) for key in value if key not in names]
        if not unknown:
            return handler(value)
        faults = [InitErrorDetails(type=each, loc=(), input=value) for each in unknown]
        try:
            handler(known)
        except ValidationError as error:
            faults += map(_again, error.errors(include_url=False))
        raise ValidationError.from_exception_data(cls.__name__, faults)


def _again(error: ErrorDetails) -> InitErrorDetails:
    """An error of pydantic as it takes it back."""
    context = error.get("ctx", {})
    known = error["type"] in _KNOWN_TYPES
    kind = (
        error["type"]
        if known
        else PydanticCustomError(
            cast(LiteralString, error["type"]), cast(LiteralString, error["msg"]), context
        )
    )
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)


def unknown_key(
    key: str, names: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> PydanticCustomError:
    """The error for a key that does not exist; ``elsewhere`` says where keys of other tables are."""
    names = list(names)
    accepted = nearest(key, names)
    if not hint(key, names) and (close := difflib.get_close_matches(key[:80], elsewhere or {}, n=1)):
        accepted += f' (did you mean "{(elsewhere or {})[close[0]]}"?)'
    return PydanticCustomError("unknown_key", "unknown key", {"key": key, "accepted": accepted})


def such_as(example: str) -> BeforeValidator:
    """Refuses what is no table, with an example of one."""

    def table(value: Any) -> Any:
        if not isinstance(value, dict | BaseModel):
            raise refused(f"a table, such as {example}")
        return value

    return BeforeValidator(table)


def refused(accepted: str, found: str | None = None, key: str | None = None) -> PydanticCustomError:
    """The error for a value; ``found`` replaces the value, ``key`` is a key below the place."""
    context = {"accepted": accepted} | ({"found": found} if found else {}) | ({"key": key} if key else {})
    return PydanticCustomError("refused", "refused", context)


def nearest(name: str, names: Iterable[str], aliases: Iterable[str] = ()) -> str:
    """``names`` as text, with the one of them or their ``aliases`` that is most similar to ``name``."""
    names = list(names)
    return f"one of {', '.join(names)}{hint(name, [*names, *aliases])}" if names else "nothing"


def hint(name: str, names: Iterable[str]) -> str:
    """A question for the one of ``names`` most similar to ``name`` in any case; empty if none is similar."""
    by_key = {each.casefold(): each for each in names}
    close = difflib.get_close_matches(name[:80].casefold(), by_key, n=1)
    return f' (did you mean "{by_key[close[0]]}"?)' if close else ""


def within(place: str, key: str) -> str:
    """The place of a key below a place."""
    return f"{place}.{key}" if ": " in place else f"{place}: {key}"


def located(reference: str, base: Path, place: str) -> Path:
    """The path of a reference in a file: relative to ``base``, ``~`` for a home; raises UsageError."""
    if not files.is_path(reference):
        raise UsageError(place, show(reference), "a name, or a path that a file can have")
    try:
        return base / Path(reference).expanduser()
    except RuntimeError:
        accepted = "a path that begins with the ~ of a user of this machine, or without ~"
        raise UsageError(place, show(reference), accepted) from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; raises UsageError."""
    return parsed(files.text(path, LARGEST_FILE, "a TOML file"), path)


def parsed(text: str, path: Path) -> dict[str, Any]:
    """The content of ``text`` from the file ``path``; raises UsageError."""
    if _JSON.match(text):
        accepted = "TOML 1.0 (https://toml.io); a HAR is named as a page: `wirepaint run page.har`"
        raise UsageError(str(path), "JSON", accepted)
    if deep := _DEEP_KEY.search(text):
        found = f"a key of more than {_PARTS} parts, {show(deep[0])}"
        raise UsageError(str(path), found, "keys as docs/guide/evaluation.md has them")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError(str(path), "tables nested too deeply", "a TOML file of a person's making") from None
    except ValueError as error:  # also of numbers with thousands of digits
        raise UsageError(str(path), f"a syntax error: {error}", "TOML 1.0 (https://toml.io)") from None


Model = TypeVar("Model", bound=BaseModel)


def validate(
    model: type[Model], data: Any, place: str, prefix: str = "", *, every: bool = False, **context: Any
) -> Model:
    """``data`` as ``model``; raises UsageError for the first fault, or for ``every`` one.

    Errors have the file's own names.

    ``prefix`` is the key path of ``data`` within the file; ``context`` reaches the validators.
    """
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        details = error.errors(include_url=False)
        if not every:
            raise _usage_error(details[0], data, place, prefix, len(details) - 1) from None
    # A value that fits no form of a union has an error for each of them, at one place.
    by_place: dict[str, UsageError] = {}
    for each in details:
        fault = _usage_error(each, data, place, prefix, 0)
        before = by_place.setdefault(fault.place, fault)
        if fault.accepted not in before.accepted:
            accepted = f"{before.accepted} or {fault.accepted}"
            by_place[fault.place] = UsageError(fault.place, before.found, accepted)
    faults = Faults()
    for fault in by_place.values():
        faults.add(fault)
    raise faults.error()


def _usage_error(error: ErrorDetails, data: Any, place: str, prefix: str, others: int) -> UsageError:
    context = error.get("ctx", {})
    keys, value = _follow(data, error["loc"])
    if "key" in context:
        keys.append(context["key"])
        value = value.get(context["key"]) if isinstance(value, dict) else None
    if error["type"] == "missing":
        keys, found = [*keys, error["loc"][-1]], "nothing"
    else:
        found = context.get("found") or show(value)
    where = f"{place}: {path}" if (path := _path(keys, prefix)) else place
    accepted = _accepted(error) + (f" ({others} more after this)" if others else "")
    return UsageError(where, found, accepted)


def _follow(data: Any, location: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The parts of pydantic's location that exist in the data (it also names union members)."""
    keys: list[Any] = []
    for part in location:
        inside = isinstance(data, dict) and part in data
        inside |= isinstance(data, list) and isinstance(part, int) and part < len(data)
        if inside:
            keys.append(part)
            data = data[part]
    return keys, data


def _path(keys: Iterable[int | str], prefix: str) -> str:
    text = prefix
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


_PHRASES = {
    "missing": "this key, it must be there",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "literal_error": "{expected}",
    "union_tag_invalid": "for kind: {expected_tags}",
    "union_tag_not_found": "a table with the key {discriminator}",
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt}",
    "less_than_equal": "a number of at most {le}",
    "too_short": "at least {min_length} in the list",
    "too_long": "at most {max_length} in the list",
    "string_too_short": "a text that is not empty",
    "string_too_long": "a text of at most {max_length} characters",
}


def _accepted(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if "accepted" in context:
        return context["accepted"]
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        return context["expected"] + hint(error["input"], re.findall(r"'([^']+)'", context["expected"]))
    phrase = _PHRASES.get(error["type"])
    return phrase.format(**context) if phrase else error["msg"]


def differ(names: Sequence[str], places: Sequence[str]) -> None:
    """Refuses a repeated name, at its place: it would give two runs the same key."""
    seen: set[str] = set()
    for name, place in zip(names, places, strict=True):
        if name in seen:
            accepted = "names that differ in a-z, 0-9, _ and . (give one a title or a file name of its own)"
            raise UsageError(place, f"a second {show(name)}", accepted)
        seen.add(name)
