"""From what somebody wrote to the value of a field, or a problem that says what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import cast

from flyte_binary.config.bounds import Between, Matching
from flyte_binary.config.document import Given, parse_yaml
from flyte_binary.config.errors import Problem
from flyte_binary.config.schema import ListOf, Scalar, Section, TextMap, folded, suggestion
from flyte_binary.config.units import parse_duration, parse_size

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Unset(Enum):
    UNSET = "unset"


UNSET = Unset.UNSET
"""There was a problem, which is noted; the default stands in so that the rest can be read too."""


@dataclass(slots=True)
class Reader:
    problems: list[Problem] = field(default_factory=list[Problem])

    def value(self, kind: Scalar | ListOf | TextMap | Section, given: Given, path: str) -> object:
        """The value for the field, or `UNSET` after a problem."""
        try:
            if isinstance(kind, Scalar):
                return _scalar(kind, given)
            if isinstance(kind, ListOf):
                return self._list(kind, given, path)
            if isinstance(kind, TextMap):
                return self._map(given, path)
            return self._record(kind, given, path)
        except ValueError as error:
            self.problem(path, given, f"found {_shown(given)}; expected {error}")
            return UNSET

    def problem(self, path: str, given: Given, text: str) -> None:
        self.problems.append(Problem(path, given.origin, text))

    def unknown_key(self, section: Section, prefix: str, key: str, given: Given) -> None:
        meant = suggestion(section, prefix, key)
        known = ", ".join(entry.key for entry in section.entries.values())
        hint = f"did you mean {meant}?" if meant else f"known here: {known}"
        self.problem(f"{prefix}{key}", given, f"no such key; {hint}")

    def _list(self, kind: ListOf, given: Given, path: str) -> object:
        items = [self.value(kind.item, item, f"{path}[{index}]") for index, item in enumerate(_items(given))]
        return UNSET if UNSET in items else tuple(items)

    def _map(self, given: Given, path: str) -> object:
        texts: dict[str, object] = {}
        for entries in _maps(given):
            for key, item in entries.items():
                texts[key] = self.value(Scalar(str), item, f"{path}.{key}")
        return UNSET if UNSET in texts.values() else texts

    def _record(self, section: Section, given: Given, path: str) -> object:
        entries = given.value
        if not isinstance(entries, dict):
            raise ValueError("the keys " + ", ".join(entry.key for entry in section.entries.values()))
        values: dict[str, object] = {}
        for key, item in entries.items():
            entry = section.entries.get(folded(key))
            if entry is None:
                self.unknown_key(section, f"{path}.", key, item)
                continue
            values[entry.field] = self.value(entry.kind, item, f"{path}.{entry.key}")
        if UNSET in values.values():
            return UNSET
        try:
            return section.cls(**values)
        except TypeError:
            missing = [entry.key for entry in section.entries.values() if entry.field not in values]
            raise ValueError(f"also {missing[0]}") from None


def _items(given: Given) -> list[Given]:
    if isinstance(given.value, str):
        text = given.value.strip()
        if not text.startswith("["):
            return [Given(item.strip(), given.origin, is_text=True) for item in text.split(",") if item.strip()]
        given = parse_yaml(text, lambda _line: given.origin) or given
    if not isinstance(given.value, list):
        raise ValueError("a list")
    return given.value


def _maps(given: Given) -> list[dict[str, Given]]:
    """A map, or the reference backend's list of maps, which keeps the case of the names there."""
    if given.is_text and isinstance(given.value, str):
        given = parse_yaml(given.value, lambda _line: given.origin) or Given({}, given.origin)
    items = given.value if isinstance(given.value, list) else [given]
    maps = [item.value for item in items if isinstance(item.value, dict)]
    if len(maps) < len(items):
        raise ValueError("names with their texts, such as {NAME: text}")
    return maps


def _scalar(kind: Scalar, given: Given) -> object:
    if given.value is None and kind.optional:
        return None
    value = _READERS[Enum if issubclass(kind.type, Enum) else kind.type](kind, given)
    if isinstance(kind.bounds, Between):
        problem = kind.bounds.problem(cast("float | timedelta", value))
    elif isinstance(kind.bounds, Matching):
        problem = kind.bounds.problem(cast("str", value))
    elif not value and (kind.size or kind.type is timedelta):
        problem = "more than zero"
    else:
        problem = None
    if problem is not None:
        raise ValueError(problem)
    return value


def _text(_kind: Scalar, given: Given) -> str:
    if isinstance(given.value, str):
        return given.value
    raise ValueError("a text" if isinstance(given.value, (dict, list, type(None))) else "a text: put it in quotes")


def _path(_kind: Scalar, given: Given) -> Path:
    if not isinstance(given.value, str) or not given.value.strip():
        raise ValueError("the path of a file or folder")
    try:
        # Relative to where the server is started; links are kept, as a virtual environment's interpreter is one.
        return Path.cwd() / Path(given.value).expanduser()
    except RuntimeError:
        raise ValueError("a path without ~, since this user has no home folder") from None


def _boolean(_kind: Scalar, given: Given) -> bool:
    if isinstance(given.value, bool):
        return given.value
    if isinstance(given.value, str) and given.value.strip().lower() in _TRUTH:
        return _TRUTH[given.value.strip().lower()]
    raise ValueError("true or false")


def _integer(kind: Scalar, given: Given) -> int:
    if kind.size:
        return parse_size(_written(given))
    try:
        return int(_written(given))
    except ValueError:
        raise ValueError("a whole number") from None


def _number(_kind: Scalar, given: Given) -> float:
    try:
        number = float(_written(given))
    except ValueError:
        raise ValueError("a number") from None
    if number - number != 0:
        raise ValueError("a finite number")
    return number


def _duration(_kind: Scalar, given: Given) -> timedelta:
    return parse_duration(_written(given))


def _choice(kind: Scalar, given: Given) -> Enum:
    choices = cast("type[Enum]", kind.type)
    try:
        return choices(_written(given).strip().lower())
    except ValueError:
        raise ValueError("one of " + ", ".join(str(choice.value) for choice in choices)) from None


_READERS = {
    str: _text,
    Path: _path,
    bool: _boolean,
    int: _integer,
    float: _number,
    timedelta: _duration,
    Enum: _choice,
}


def _written(given: Given) -> str:
    """The text of a number or word, as far as YAML left it; anything else becomes a text that no reader takes."""
    plain = isinstance(given.value, (str, int, float)) and not isinstance(given.value, bool)
    return str(given.value) if plain else ""


def _shown(given: Given) -> str:
    value = given.value
    if value is None:
        return "nothing (leave the key out for its default)"
    if isinstance(value, Mapping):
        return "keys"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, date)):
        return f"the {'date' if isinstance(value, date) else 'number'} {value}"
    return f'"{value}"'
