"""The tree of keys that `model.py` declares, read off its dataclasses once."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from flyte_binary.config.bounds import Between, Matching
from flyte_binary.config.model import Config


@dataclass(frozen=True, slots=True)
class Scalar:
    type: type[Any]  # Any: of a field, whatever it is
    bounds: Between | Matching | None = None
    size: bool = False
    """An `int` of bytes, written with its unit."""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Scalar | Section


@dataclass(frozen=True, slots=True)
class TextMap:
    """Names of the user's choice, case and all, to texts."""


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    """As documentation and messages spell it."""
    field: str
    kind: Scalar | ListOf | TextMap | Section
    secret: bool = False
    """Never shown."""


@dataclass(frozen=True, slots=True)
class Section:
    cls: type
    entries: Mapping[str, Entry]
    """By `folded` key."""


def folded(key: str) -> str:
    """Keys are compared without case, dashes and underscores, so that environment variables can spell them."""
    return key.lower().replace("-", "").replace("_", "")


@cache
def schema() -> Section:
    return _section(Config)


def leaves(section: Section, prefix: str = "") -> Iterator[tuple[str, Entry]]:
    """The settings below `section`, by path, in the order of the model."""
    for entry in section.entries.values():
        if isinstance(entry.kind, Section):
            yield from leaves(entry.kind, f"{prefix}{entry.key}.")
        else:
            yield f"{prefix}{entry.key}", entry


def suggestion(section: Section, prefix: str, key: str) -> str | None:
    """The path that was perhaps meant by the unknown `key` of the section at `prefix` (which ends in a dot)."""
    paths = [path for path, _ in leaves(schema())]
    sections = {path.rpartition(".")[0] for path in paths if "." in path}
    elsewhere = [path for path in (*paths, *sections) if folded(path.rpartition(".")[2]) == folded(key)]
    if len(elsewhere) == 1:
        return elsewhere[0]
    siblings = {folded(entry.key): entry.key for entry in section.entries.values()}
    close = difflib.get_close_matches(folded(key), siblings, n=1, cutoff=0.6)
    return prefix + siblings[close[0]] if close else None


def _section(cls: type) -> Section:
    hints = get_type_hints(cls, include_extras=True)
    entries = [
        Entry(
            key=field.metadata.get("key") or _camel_case(field.name.removesuffix("_bytes")),
            field=field.name,
            kind=_kind(hints[field.name], size=field.name.endswith("_bytes")),
            secret=field.metadata.get("secret", False),
        )
        for field in dataclasses.fields(cls)
    ]
    return Section(cls, {folded(entry.key): entry for entry in entries})


def _kind(
    hint: Any, *, size: bool = False
) -> Scalar | ListOf | TextMap | Section:  # Any: a type form, which has no type
    if get_origin(hint) is tuple:
        item = _kind(get_args(hint)[0])
        assert isinstance(item, (Scalar, Section))
        return ListOf(item)
    if get_origin(hint) is Mapping:
        return TextMap()
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _section(hint)
    return _scalar(hint, size=size)


def _scalar(hint: Any, *, size: bool) -> Scalar:  # Any: a type form, which has no type
    if type(None) in get_args(hint):
        return dataclasses.replace(_scalar(get_args(hint)[0], size=size), optional=True)
    if get_origin(hint) is Annotated:
        base, bounds = get_args(hint)
        return Scalar(base, bounds, size=size)
    return Scalar(hint, size=size)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
