"""The whole configuration as text, for `check-config`: every setting, with the origin of what is not a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import cast

from flyte_binary.config.load import Loaded, settings
from flyte_binary.config.schema import Scalar, leaves, schema
from flyte_binary.config.units import format_duration, format_size

HIDDEN = "********"


def show(loaded: Loaded) -> str:
    """One line for each setting: `path: value`, and behind it its origin."""
    entries = dict(leaves(schema()))
    sizes = {path for path, entry in entries.items() if isinstance(entry.kind, Scalar) and entry.kind.size}
    secrets = {path for path, entry in entries.items() if entry.secret}
    lines: list[str] = []
    for path, value in settings(loaded.config).items():
        shown = HIDDEN if path in secrets and value else text_of(value, size=path in sizes)
        line = f"{path}: {shown}"
        lines.append(f"{line}  # {loaded.origins[path]}" if path in loaded.origins else line)
    return "\n".join([*lines, ""])


def text_of(value: object, *, size: bool = False) -> str:
    """A value in the form in which YAML takes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and size:
        return format_size(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{key}: {text_of(item)}" for key, item in entries) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(text_of(item) for item in cast("tuple[object, ...]", value)) + "]"
    if is_dataclass(value):
        return "{" + ", ".join(f"{each.name}: {text_of(getattr(value, each.name))}" for each in fields(value)) + "}"
    return str(value) or '""'
