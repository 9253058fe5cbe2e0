"""Where settings come from: YAML files, the environment, flags. Each value keeps where it stood.

Nothing is judged here but what cannot be read at all; keys and types are `load.py`'s.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flyte_binary.config.document import Given, parse_yaml
from flyte_binary.config.errors import Problem
from flyte_binary.config.schema import folded, schema

ENVIRONMENT_PREFIX = "FLYTE_BINARY__"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value at a path of keys; for a whole file the path is empty and the value a mapping."""

    keys: tuple[str, ...]
    given: Given


def from_files(patterns: Sequence[str], problems: list[Problem]) -> list[Setting]:
    """The files of all patterns, each pattern's sorted by name, in the order in which they override one another."""
    return [
        Setting((), document)
        for pattern in patterns
        for path in _expand(pattern, problems)
        if (document := _document(path, problems)) is not None
    ]


def from_environment(environ: Mapping[str, str]) -> list[Setting]:
    """`FLYTE_BINARY__RUNS__SERVER__PORT`, and the reference backend's `RUNS.SERVER.PORT`; the former wins."""
    dotted, prefixed = list[Setting](), list[Setting]()
    for name, text in sorted(environ.items()):
        given = Given(text, name, is_text=True)
        if name.startswith(ENVIRONMENT_PREFIX):
            prefixed.append(Setting(tuple(name.removeprefix(ENVIRONMENT_PREFIX).split("__")), given))
        elif "." in name and name == name.upper() and folded(name.partition(".")[0]) in schema().entries:
            dotted.append(Setting(tuple(name.split(".")), given))
    return dotted + prefixed


def from_flags(
    flags: Mapping[str, tuple[str, str | None]], assignments: Iterable[str], problems: list[Problem]
) -> list[Setting]:
    """`flags` is the flag's name to its path and its text, if it was given; `assignments` the texts of `--set`."""
    settings: list[Setting] = []
    for text in assignments:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            problems.append(Problem("", "--set", f'found "{text}"; expected path=value, such as runs.server.port=8090'))
            continue
        settings.append(Setting(tuple(path.strip().split(".")), Given(value, "--set", is_text=True)))
    for flag, (path, text) in flags.items():
        if text is not None:
            settings.append(Setting(tuple(path.split(".")), Given(text, flag, is_text=True)))
    return settings


def parse_text(given: Given) -> Given:
    """The text of a flag or variable read as YAML, for lists and maps. Raises `ValueError`."""
    return parse_yaml(str(given.value), lambda _line: given.origin) or given


def _expand(pattern: str, problems: list[Problem]) -> list[Path]:
    path = Path(pattern).expanduser()
    if path.is_dir():
        problems.append(Problem("", "--config", f'found the folder {pattern}; expected a file, or "{pattern}/*.yaml"'))
        return []
    if path.exists() or not glob.has_magic(pattern):
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(path)) if not Path(name).is_dir())  # noqa: PTH207 absolute patterns
    if not found:
        problems.append(Problem("", "--config", f'no file matches "{pattern}"'))
    return found


def _document(path: Path, problems: list[Problem]) -> Given | None:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        problems.append(Problem("", "--config", f"cannot read {path}: {error.strerror}"))
        return None
    except UnicodeDecodeError:
        problems.append(Problem("", str(path), "expected text in UTF-8"))
        return None
    try:
        document = parse_yaml(text, lambda line: f"{path}:{line}")
    except ValueError as error:
        problems.append(Problem("", str(path), str(error)))
        return None
    if document is None or isinstance(document.value, dict):
        return document
    problems.append(Problem("", str(path), "expected sections with keys, such as `runs:`"))
    return None
