"""Keys of an evaluation as options of a command line: ``--network lte,wpt-cable``, ``--stop.interval "1 %"``.

An option is a key of ``[scenarios]``, of the evaluation file or of its user agents, in this order, with dots
between the parts of a longer key. The JSON Schema of the file says what kind of value it takes. Values of a
list are separated by commas; a value that begins with ``{`` or ``[`` is TOML.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wirepaint import catalogue
from wirepaint.errors import Faults, UsageError, UsageErrors, show
from wirepaint.evaluation.model import EvaluationFile
from wirepaint.reading import nearest

AGENTS = "user_agents"
_WITHIN = ("scenarios", AGENTS)
"""Tables whose keys are options by themselves."""
_OF_PATHS = {("scenarios", "network"), ("scenarios", "congestion"), (AGENTS, "pages"), ("metrics",)}
"""Keys whose values may be paths: those of a command line are relative to the working directory."""
_MEANT = {"bandwidth": "rate", "latency": "delay", "rtt": "delay"}
"""Keys of networks by other names that people use."""
_PLACES = 2
"""Places of such a key that an error names."""
_ALIKE = 0.7
"""Names of options that are less similar are not meant."""


@dataclass(frozen=True)
class Setting:
    """A key of the evaluation, and the value that an option gives it."""

    option: str
    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        return ".".join(self.path)


def tokens(given: Sequence[str], own: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments and the options among ``given``; ``own`` are the options of the command itself.

    Raises UsageError for options that do not exist or have no value.
    """
    arguments: list[str] = []
    options: list[tuple[str, str]] = []
    faults, left = Faults(), list(given)
    while left:
        one = left.pop(0)
        if not one.startswith("-") or one == "-":
            arguments.append(one)
            continue
        name, equals, value = one.partition("=")
        with faults.kept():
            _path(name, own)
            if not equals and not left:
                raise UsageError(name, "nothing", "a value after it")
            options.append((name, value if equals else left.pop(0)))
    faults.end()
    return arguments, options


def read(options: Iterable[tuple[str, str]]) -> list[Setting]:
    """The settings of options and their texts; the texts of a repeated option are one list.

    Raises UsageError for every text that its key does not take.
    """
    texts: dict[tuple[str, ...], list[str]] = {}
    names: dict[tuple[str, ...], str] = {}
    for name, text in options:
        path = _path(name)
        texts.setdefault(path, []).append(text)
        names.setdefault(path, name)
    settings, faults = [], Faults()
    for path, given in texts.items():
        with faults.kept():
            settings.append(Setting(names[path], path, _value(path, given, names[path])))
    faults.end()
    return settings


def applied(data: dict[str, Any], settings: Iterable[Setting]) -> dict[str, Any]:
    """``data`` of an evaluation with the settings in place of its own; one of a user holds for all."""
    changed = dict(data)
    for setting in settings:
        first, *rest = setting.path
        if first == AGENTS:
            agents = changed.get(AGENTS)
            changed[AGENTS] = [_set(agent, rest, setting.value) for agent in agents or [{}]]
        else:
            changed = _set(changed, setting.path, setting.value)
    return changed


def said(error: UsageError, settings: Iterable[Setting], place: str) -> UsageError:
    """An error of the evaluation at ``place``, with the options in place of the keys that they set."""
    if isinstance(error, UsageErrors):
        return UsageErrors([said(each, settings, place) for each in error.errors])
    head, _, key = error.place.rpartition(f"{place}: ")
    if head or not key:
        return error
    key, _, file = key.partition(": ")
    parts = tuple(part.partition("[")[0] for part in key.split("."))
    for setting in settings:
        if parts[: len(setting.path)] == setting.path:
            below_it = ".".join(parts[len(setting.path) :])
            where = ": ".join(part for part in (setting.option, below_it, file) if part)
            below = [f"{setting.option}.{key}".replace("_", "-") for key in _table(setting.path)]
            if error.accepted.startswith("a table") and parts == setting.path and below:
                return UsageError(where, error.found, f"its keys: {', '.join(below)}")
            return UsageError(where, error.found, error.accepted)
    return error


def _set(table: Any, path: Sequence[str], value: Any) -> dict[str, Any]:
    """A table with a value at a path below it."""
    first, *rest = path
    below = table if isinstance(table, dict) else {}
    return below | {first: _set(below.get(first), rest, value) if rest else value}


def names() -> list[str]:
    """Every option of one part, as it is written."""
    return [f"--{key.replace('_', '-')}" for key in dict.fromkeys(key for key, _ in _short())]


def _short() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Keys that need no dot, each with its path; the first of a name counts."""
    for table in ("scenarios", None, AGENTS):
        above = (table,) if table else ()
        for form in _forms(_form(above)):
            yield from ((key, (*above, key)) for key in form["properties"] if key not in _WITHIN)


def _path(option: str, own: Sequence[str] = ()) -> tuple[str, ...]:
    """The path of an option's key; raises UsageError if the evaluation has none."""
    parts = option.removeprefix("--").split(".")
    short = dict(reversed(list(_short())))
    first = catalogue.called("key", parts[0], short).replace("-", "_")
    start = (first,) if first in _WITHIN else short.get(first)
    if not option.startswith("--") or start is None:
        raise _unknown(option, parts[-1], own)
    keys = _spelt(start, parts[1:])
    for length in range(2 if first in _WITHIN else 1, len(keys) + 1):
        below = _form(keys[:length])
        if below is None:
            above = (key for form in _forms(_form(keys[: length - 1])) for key in form.get("properties", {}))
            begin = ".".join(parts[: length - 1 - len(start)] or parts[:1])
            accepted = nearest(option, [f"--{begin}.{key}".replace("_", "-") for key in above])
            raise UsageError(option, "an option that does not exist", accepted)
        if _free(below) is not None and length < len(keys):
            return (*keys[:length], ".".join(keys[length:]))
    if keys[-1] in _WITHIN:
        raise UsageError(option, "a table", "a key of it after a dot")
    return keys


def _spelt(start: tuple[str, ...], parts: Sequence[str]) -> tuple[str, ...]:
    """A path with "_" in place of "-" in its keys; free keys stay as they are."""
    keys = start
    for part in parts:
        spelt = (*keys, part.replace("-", "_"))
        is_own = any(spelt[-1] in form.get("properties", {}) for form in _forms(_form(keys) or {}))
        keys = spelt if is_own else (*keys, part)
    return keys


def _unknown(option: str, key: str, own: Sequence[str]) -> UsageError:
    """The error for an option that does not exist; names one of a longer key if ``key`` is its last part."""
    if places := _places(_MEANT.get(key, key.replace("-", "_"))):
        return UsageError(option, "no such option", ", or ".join(places))
    bare = {name.lstrip("-"): name for name in [*own, *names()]}
    close = difflib.get_close_matches(option.lstrip("-")[:80].casefold(), bare, n=1, cutoff=_ALIKE)
    found = f'no such option (did you mean "{bare[close[0]]}"?)' if close else "no such option"
    return UsageError(option, found, "the options of `wirepaint run --help` and keys of an evaluation")


def _places(key: str) -> list[str]:
    """How a command line gives a key that is no option by itself: with dots, or in a table of a list."""
    found: list[str] = []
    of_lists: dict[str, list[str]] = {}
    for path, of_list in _keys(_schema()):
        start = 1 if path[0] in _WITHIN else 0
        if path[-1] != key or len(path) == start + 1:
            continue
        option = "--" + ".".join(path[start:of_list]).replace("_", "-")
        if of_list is None:
            found.append(option)
        else:
            of_lists.setdefault(option, []).append(".".join(path[of_list:]))
    for option, keys in of_lists.items():
        shortest = min(each.count(".") for each in keys)
        those = list(dict.fromkeys(each for each in keys if each.count(".") == shortest))
        found.append(f"a table in {option} with {' or '.join(those[:_PLACES])}")
    return found[:_PLACES]


def _keys(
    form: dict[str, Any], path: tuple[str, ...] = (), of_list: int | None = None
) -> Iterator[tuple[tuple[str, ...], int | None]]:
    """The paths of all keys, each with the length of its part up to a list of tables, if it is in one."""
    for each in _forms(form):
        for key, value in each.get("properties", {}).items():
            here = (*path, key)
            yield here, of_list
            yield from _keys(value, here, of_list)
            begin = None if here == (AGENTS,) else len(here) if of_list is None else of_list
            for one in _forms(value):
                if isinstance(items := one.get("items"), dict):
                    yield from _keys(items, here, begin)


def _table(path: Sequence[str]) -> list[str]:
    """The keys of the table at a path; none for another kind of value."""
    return [key for form in _forms(_form(path)) for key in form.get("properties", ())]


@cache
def _schema() -> dict[str, Any]:
    return EvaluationFile.model_json_schema()


def _form(path: Sequence[str]) -> Any:
    """The schema of the key at a path, that of a user for the list of users; None if there is none."""
    form: Any = _schema()
    for key in path:
        found = [each["properties"][key] for each in _forms(form) if key in each.get("properties", {})]
        form = found[0] if found else _free(form)
        if form is None:
            return None
        if key == AGENTS:
            form = form["items"]
    return form


def _free(form: dict[str, Any]) -> Any:
    """The schema of the values of a table with free keys, which may have dots, such as sysctls; else None."""
    found = [each.get("additionalProperties") for each in _forms(form) if "properties" not in each]
    return next((each for each in found if isinstance(each, dict)), None)


def _forms(form: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The alternatives of a schema, without references."""
    if "$ref" in form:
        yield from _forms(_schema()["$defs"][form["$ref"].rpartition("/")[2]])
        return
    alternatives = [*form.get("anyOf", ()), *form.get("oneOf", ())]
    if not alternatives:
        yield form
    for each in alternatives:
        yield from _forms(each)


def _value(path: tuple[str, ...], texts: list[str], option: str) -> Any:
    """The value of a key from the texts of its option."""
    forms = list(_forms(_form(path)))
    of_list = next((form for form in forms if form.get("type") == "array"), None)
    if of_list is None:
        if len(texts) > 1:
            raise UsageError(option, f"it {len(texts)} times", "one value")
        return _one(texts[0], forms, option)
    if len(texts) == 1 and texts[0].lstrip().startswith("["):
        return _toml(texts[0], option)
    items = list(_forms(of_list["items"]))
    parts = [part for text in texts for part in _parts(text)]
    values = [_one(part, items, option) for part in parts]
    return [_located(value) for value in values] if path in _OF_PATHS else values


def _parts(text: str) -> list[str]:
    return [text] if text.lstrip().startswith("{") else [part.strip() for part in text.split(",")]


def _one(text: str, forms: Sequence[dict[str, Any]], option: str) -> Any:
    """A text as the first kind that it fits, of those that the key takes."""
    kinds = {form.get("type") for form in forms}
    if text.lstrip().startswith(("{", "[")) and kinds & {"object", "array"}:
        return _toml(text, option)
    if "boolean" in kinds and text in ("true", "false"):
        return text == "true"
    for kind, number in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return number(text)
            except ValueError:
                pass
    if kinds & {"string", "object", None}:
        return text  # a table may have a name for its defaults
    accepted = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
    }
    raise UsageError(option, show(text), " or ".join(accepted[k] for k in accepted if k in kinds))


def _toml(text: str, option: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError) as error:
        raise UsageError(option, f"{show(text)}, {error}", "a value of TOML, on one line") from None


def _located(value: Any) -> Any:
    """A value that is the path of something, relative to the working directory, as an absolute path."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        return value | {"name": _located(value["name"])}
    if not isinstance(value, str) or value.startswith("~"):
        return value
    return str(Path(value).absolute()) if "/" in value or value.endswith((".toml", ".c", ".py")) else value
