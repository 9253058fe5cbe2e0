"""Write docs/configuration.md and configs/reference.yaml from the docstrings of the settings in flyte_binary/config.

python scripts/config_docs.py            write
python scripts/config_docs.py --check    exit 1 if they do not belong to the model any more
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path

from flyte_binary.config import apps, model
from flyte_binary.config.bounds import Between
from flyte_binary.config.load import settings
from flyte_binary.config.model import Config
from flyte_binary.config.schema import Entry, ListOf, Scalar, Section, TextMap, schema
from flyte_binary.config.show import text_of
from flyte_binary.config.units import format_duration, format_size

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/configuration.md"
REFERENCE = ROOT / "configs/reference.yaml"
INTRODUCTION = ROOT / "docs/configuration.intro.md"


@dataclass(frozen=True, slots=True)
class Documented:
    path: str
    kind: Scalar | ListOf | TextMap
    text: str
    """The docstring without its `YAML: path.`"""
    stated_path: str
    """The path in the docstring's `YAML: path.`"""


def documented() -> list[Documented]:
    """Every setting with the docstring under its field, in the order of the model."""
    return list(_walk(schema(), "", _docstrings()))


def page() -> str:
    values = settings(Config())
    sections: dict[str, list[Documented]] = {}
    for setting in documented():
        sections.setdefault(setting.path.partition(".")[0], []).append(setting)
    lines = [INTRODUCTION.read_text(encoding="utf-8").rstrip(), ""]
    for name, members in sections.items():
        lines += [f"### `{name}`", "", "| Setting | Kind | Default | Meaning |", "|---|---|---|---|"]
        for member in members:
            value = values.get(member.path)  # None too for the keys of a list's items
            default = "" if value is None else f"`{_default(member, value)}`"
            cells = [f"`{member.path}`", _kind(member.kind), default, member.text.replace("|", "\\|")]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def reference() -> str:
    """A YAML file with every setting at its default, commented out."""
    values = settings(Config())
    lines = ["# Every setting with its default. Made by `make docs`; docs/configuration.md says more."]
    before: list[str] = []
    for setting in documented():
        if "[]" in setting.path:
            continue
        *parents, key = setting.path.split(".")
        shared = 0
        while shared < min(len(parents), len(before)) and parents[shared] == before[shared]:
            shared += 1
        lines += [f"# {'  ' * depth}{parents[depth]}:" for depth in range(shared, len(parents))]
        before = parents
        lines.append(f"# {'  ' * len(parents)}{key}: {_default(setting, values[setting.path])}")
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    stale = [path for path, text in ((PAGE, page()), (REFERENCE, reference())) if _read(path) != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)} does not belong to the model any more: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    PAGE.write_text(page(), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
    return 0


def _walk(section: Section, prefix: str, docstrings: dict[tuple[str, str], str]) -> Iterator[Documented]:
    for entry in section.entries.values():
        path = f"{prefix}{entry.key}"
        if isinstance(entry.kind, Section):
            yield from _walk(entry.kind, f"{path}.", docstrings)
            continue
        yield _documented(section, entry, path, docstrings)
        if isinstance(entry.kind, ListOf) and isinstance(entry.kind.item, Section):
            yield from _walk(entry.kind.item, f"{path}[].", docstrings)


def _documented(section: Section, entry: Entry, path: str, docstrings: dict[tuple[str, str], str]) -> Documented:
    docstring = docstrings.get((section.cls.__name__, entry.field), "")
    text, _, stated = docstring.rpartition(" YAML: ")
    assert not isinstance(entry.kind, Section)
    return Documented(path, entry.kind, text, stated.removesuffix("."))


def _docstrings() -> dict[tuple[str, str], str]:
    """The text under each field, by class and field, its lines joined."""
    found: dict[tuple[str, str], str] = {}
    trees = [ast.parse(Path(module.__file__).read_text(encoding="utf-8")) for module in (model, apps)]
    for cls in (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, following in zip(cls.body, cls.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                found[cls.name, field.target.id] = " ".join(str(following.value.value).split())
    return found


def _kind(kind: Scalar | ListOf | TextMap | Section) -> str:
    if isinstance(kind, ListOf):
        return f"list of {_kind(kind.item)}s"
    if isinstance(kind, TextMap):
        return "map of texts"
    if isinstance(kind, Section):
        return "section"
    if issubclass(kind.type, Enum):
        return " or ".join(f"`{choice.value}`" for choice in kind.type)
    names = {str: "text", Path: "path", bool: "true or false", int: "whole number", float: "number"}
    name = "size" if kind.size else "duration" if kind.type is timedelta else names[kind.type]
    return name + _limits(kind)


def _limits(kind: Scalar) -> str:
    if not isinstance(kind.bounds, Between) or kind.type is timedelta:
        return ""
    low = format_size(int(kind.bounds.low)) if kind.size else f"{kind.bounds.low:g}"
    return f", at least {low}" if kind.bounds.high is None else f", {low} to {kind.bounds.high:g}"


def _default(setting: Documented, value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    is_size = isinstance(setting.kind, Scalar) and setting.kind.size
    home = str(Path("~").expanduser())
    text = text_of(value, size=is_size)
    return "~" + text.removeprefix(home) if isinstance(value, Path) and text.startswith(f"{home}/") else text


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
