"""What is done to an environment for one layer of its image: commands of `uv`, as values.

A step does not run anything. `key_of` is what makes two steps equal: contents of files and not their names, since
the SDK puts files under names that differ from machine to machine.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

Fingerprint = Callable[[str], str]
"""Of a file or folder of the build context, by its relative path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where things are during a build."""

    uv: Path
    python: Path
    """Of the environment."""
    context: Path
    """Folder of the uploaded files."""
    work: Path
    """What the image brings into the working folder of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    argv: tuple[str, ...]
    cwd: Path
    variables: tuple[tuple[str, str], ...] = ()
    """Beside those of the build; an empty one is not set."""
    literal: bool = False
    """`$NAME` in its arguments is meant as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipOptions:
    """`uv pip install`'s options, `$NAME` in them to be filled in from the environment of the build."""

    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    pre: bool = False
    extra_args: str = ""

    def arguments(self) -> list[str]:
        arguments = ["--index-url", self.index_url] if self.index_url else []
        for url in self.extra_index_urls:
            arguments += ["--extra-index-url", url]
        if self.pre:
            arguments.append("--prerelease=allow")
        return arguments + shlex.split(self.extra_args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    FILES: ClassVar[tuple[str, ...]] = ()

    packages: tuple[str, ...]
    options: PipOptions = PipOptions()

    def commands(self, place: Place) -> Iterator[Command]:
        if self.packages:
            yield _pip_install(place, *self.options.arguments(), *self.packages)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementsFile:
    FILES: ClassVar[tuple[str, ...]] = ("file",)
    """Fields that name files of the build context, here and below."""

    file: str
    options: PipOptions = PipOptions()

    def commands(self, place: Place) -> Iterator[Command]:
        yield _pip_install(place, *self.options.arguments(), "--requirement", str(place.context / self.file))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """Wheels that came along: their dependencies from the index, the package itself from the folder in any case."""

    FILES: ClassVar[tuple[str, ...]] = ("folder",)

    folder: str
    package: str
    options: PipOptions = PipOptions()

    def commands(self, place: Place) -> Iterator[Command]:
        found = [*self.options.arguments(), "--find-links", str(place.context / self.folder)]
        yield _pip_install(place, *found, self.package)
        yield _pip_install(place, *found, "--no-deps", "--no-index", "--reinstall", self.package)


@dataclass(frozen=True, slots=True, kw_only=True)
class UvProject:
    """A project with `pyproject.toml`, and `uv.lock` if there is one. Nothing is installed in place: the uploaded
    files are gone after the build."""

    FILES: ClassVar[tuple[str, ...]] = ("folder", "lock", "source")

    folder: str
    lock: str = ""
    source: str = ""
    """The folder that holds the project and the projects it refers to by path."""
    options: PipOptions = PipOptions()

    def commands(self, place: Place) -> Iterator[Command]:
        folder = place.context / self.folder
        sync = [str(place.uv), "sync", "--active", "--inexact", "--no-editable", *self.options.arguments()]
        yield Command(argv=(*sync, "--project", str(folder)), cwd=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoetryProject:
    """What the project's `poetry.lock` says, exported by Poetry itself and installed by `uv`."""

    FILES: ClassVar[tuple[str, ...]] = ("folder", "lock")

    folder: str
    lock: str
    export_arguments: tuple[str, ...] = ()
    with_project: bool = False
    """Install the project too, not only what it depends on."""

    def commands(self, place: Place) -> Iterator[Command]:
        folder = place.context / self.folder
        exported = str(folder / "poetry-export.txt")
        poetry = [str(place.uv), "tool", "run", "--from", "poetry", "--with", "poetry-plugin-export", "poetry"]
        export = [*poetry, "export", "--format", "requirements.txt", "--output", exported, *self.export_arguments]
        # Poetry is a tool beside the environment; its virtual environment is not that of the image.
        elsewhere = (("VIRTUAL_ENV", ""), ("UV_PYTHON", ""), ("POETRY_VIRTUALENVS_CREATE", "false"))
        yield Command(argv=tuple(export), cwd=folder, variables=elsewhere)
        yield _pip_install(place, "--requirement", exported)
        if self.with_project:
            yield _pip_install(place, "--no-deps", str(folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A file, or what is in a folder, into the working folder of the image's tasks."""

    FILES: ClassVar[tuple[str, ...]] = ("source",)

    source: str
    target: str
    """Below the working folder, `.` for itself; ends in `/` for a folder that a file goes into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A command of `with_commands` that concerns the environment only, split at its `&&`."""

    FILES: ClassVar[tuple[str, ...]] = ()

    text: str
    parts: tuple[tuple[str, ...], ...]

    def commands(self, place: Place) -> Iterator[Command]:
        for program, *rest in self.parts:
            yield Command(argv=(*_program(place, program), *rest), cwd=place.work, literal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariables:
    """Environment variables of the image, from here on also of the build."""

    FILES: ClassVar[tuple[str, ...]] = ()

    variables: tuple[tuple[str, str], ...]


Step = Packages | RequirementsFile | Wheels | UvProject | PoetryProject | Copy | Run | SetVariables


def key_of(step: Step, fingerprint: Fingerprint) -> str:
    fields = asdict(step)
    contents = {name: fingerprint(fields[name]) for name in step.FILES if fields[name]}
    name = step.source.rpartition("/")[2] if isinstance(step, Copy) else ""
    return json.dumps([type(step).__name__, name, {**fields, **contents}], sort_keys=True)


def _program(place: Place, program: str) -> list[str]:
    if program == "uv":
        return [str(place.uv)]
    if program == "pip":
        return [str(place.uv), "pip"]
    return [str(place.python.parent / program)]


def _pip_install(place: Place, *arguments: str) -> Command:
    argv = (str(place.uv), "pip", "install", *arguments)
    # Not among the uploaded files: `uv` would take the settings of a project that happens to be there.
    return Command(argv=argv, cwd=place.work.parent)
