"""The configuration of one start: files, then the environment, then flags, each over the one before.

Everything that is wrong is reported at once, with the key, where it was said, what was found and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from flyte_binary.config.checks import check
from flyte_binary.config.document import Given
from flyte_binary.config.errors import ConfigError
from flyte_binary.config.model import Config
from flyte_binary.config.read import UNSET, Reader
from flyte_binary.config.schema import Entry, Section, TextMap, folded, leaves, schema
from flyte_binary.config.sources import Setting, from_environment, from_files, from_flags


@dataclass(frozen=True, slots=True)
class Loaded:
    config: Config
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each setting that is not a default was said, by its path."""


def load_config(
    *,
    files: Sequence[str] = (),
    environ: Mapping[str, str],
    flags: Mapping[str, tuple[str, str | None]] | None = None,
    assignments: Sequence[str] = (),
) -> Loaded:
    """`files` may be patterns; `flags` is a flag's name to its path and its text; `assignments` are `path=value`.

    Raises `ConfigError`.
    """
    reader = Reader()
    settings = [
        *from_files(files, reader.problems),
        *from_environment(environ),
        *from_flags(flags or {}, assignments, reader.problems),
    ]
    chosen: dict[str, Given] = {}
    for setting in settings:
        _choose(reader, chosen, setting)
    config = cast("Config", _build(reader, schema(), "", chosen))
    origins = {path: given.origin for path, given in chosen.items()}
    problems = reader.problems or check(config, origins)
    if problems:
        raise ConfigError(problems)
    return Loaded(config, origins)


def _choose(reader: Reader, chosen: dict[str, Given], setting: Setting) -> None:
    """Put the values of one source over those chosen so far, each under its full path."""
    section, prefix = schema(), ""
    for depth, key in enumerate(setting.keys):
        entry = section.entries.get(folded(key))
        if entry is None:
            reader.unknown_key(section, prefix, key, setting.given)
            return
        rest = setting.keys[depth + 1 :]
        if not isinstance(entry.kind, Section):
            _choose_leaf(reader, chosen, entry, f"{prefix}{entry.key}", rest, setting.given)
            return
        section, prefix = entry.kind, f"{prefix}{entry.key}."
    _choose_section(reader, chosen, section, prefix, setting.given)


def _choose_section(reader: Reader, chosen: dict[str, Given], section: Section, prefix: str, given: Given) -> None:
    if given.value is None:
        return
    if not isinstance(given.value, dict):
        known = ", ".join(entry.key for entry in section.entries.values())
        reader.problem(prefix.rstrip("."), given, f"is a section; expected keys in it ({known})")
        return
    seen: dict[str, str] = {}
    for key, item in given.value.items():
        entry = section.entries.get(folded(key))
        if entry is None:
            reader.unknown_key(section, prefix, key, item)
        elif entry.key in seen:
            reader.problem(f"{prefix}{entry.key}", item, f"given twice, also as {seen[entry.key]}")
        elif isinstance(entry.kind, Section):
            _choose_section(reader, chosen, entry.kind, f"{prefix}{entry.key}.", item)
        else:
            _choose_leaf(reader, chosen, entry, f"{prefix}{entry.key}", (), item)
        if entry is not None:
            seen[entry.key] = key


def _choose_leaf(
    reader: Reader, chosen: dict[str, Given], entry: Entry, path: str, rest: tuple[str, ...], given: Given
) -> None:
    if isinstance(entry.kind, TextMap):
        if rest:
            given = Given({".".join(rest): given}, given.origin)
        before = chosen.get(path)
        if before is not None and isinstance(before.value, dict) and isinstance(given.value, dict):
            merged = {**before.value, **given.value}
            given = Given(merged, given.origin)
    elif rest:
        reader.problem(".".join((path, *rest)), given, f"no such key; {path} is a value and has no keys in it")
        return
    chosen[path] = given


def _build(reader: Reader, section: Section, prefix: str, chosen: Mapping[str, Given]) -> object:
    values: dict[str, object] = {}
    for entry in section.entries.values():
        path = f"{prefix}{entry.key}"
        if isinstance(entry.kind, Section):
            values[entry.field] = _build(reader, entry.kind, f"{path}.", chosen)
        elif path in chosen and (value := reader.value(entry.kind, chosen[path], path)) is not UNSET:
            values[entry.field] = value
    return section.cls(**values)


def settings(config: Config) -> Mapping[str, object]:
    """Every setting by its path, with its value."""
    return {path: _get(config, path) for path, _ in leaves(schema())}


def _get(config: Config, path: str) -> object:
    value: object = config
    section = schema()
    for key in path.split("."):
        entry = section.entries[folded(key)]
        value = getattr(value, entry.field)
        if isinstance(entry.kind, Section):
            section = entry.kind
    return value
