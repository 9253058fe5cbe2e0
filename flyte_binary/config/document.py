"""YAML with the line of every value: what `yaml.safe_load` gives, but that each value knows where it stood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import yaml

# The C reader where PyYAML was built with it: ten times as fast, the same language.
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # Any: only the Python reader has types


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody wrote: a scalar, a `list` of `Given`, or a `dict` of key to `Given`."""

    value: Value
    origin: str
    """`flyte.yaml:3`, the name of an environment variable, or a flag."""
    is_text: bool = False
    """It comes from a flag or the environment, where everything is text: `1` may be meant as a number."""


Value: TypeAlias = str | int | float | bool | date | bytes | list[Given] | dict[str, Given] | None


def parse_yaml(text: str, origin: Callable[[int], str]) -> Given | None:
    """The document, or None if there is nothing in it; `origin` names the place of a line, counted from 1.

    Raises `ValueError` with a sentence and the line: no YAML, a key given twice, an alias within itself.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else _given(loader, node, origin)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(_sentence(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply, or an alias within itself") from None


def _given(loader: Any, node: yaml.Node, origin: Callable[[int], str]) -> Given:  # Any: see _Loader
    where = origin(node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        entries: dict[str, Given] = {}
        for key_node, value_node in node.value:
            key = str(loader.construct_object(key_node, deep=True))
            if key in entries:
                raise ValueError(f"line {key_node.start_mark.line + 1}: the key {key} is given twice")
            # At the key, since the value of a section starts a line below.
            value = _given(loader, value_node, origin).value
            entries[key] = Given(value, origin(key_node.start_mark.line + 1))
        return Given(entries, where)
    if isinstance(node, yaml.SequenceNode):
        return Given([_given(loader, item, origin) for item in node.value], where)
    return Given(loader.construct_object(node, deep=True), where)


def _sentence(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"not YAML: line {error.problem_mark.line + 1}: {error.problem}"
    return f"not YAML: {error}"
