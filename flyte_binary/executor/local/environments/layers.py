"""From the layers of an `ImageSpec` to steps, and to sentences about what cannot be done here. Pure.

Source of the layers' meaning: the SDK's own image builders (`flyte._internal.imagebuild`).
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from flyteidl2.imagebuilder import definition_pb2 as pb

from flyte_binary.executor.local.environments.shell import parts_of
from flyte_binary.executor.local.environments.steps import (
    Copy,
    Packages,
    PipOptions,
    PoetryProject,
    RequirementsFile,
    Run,
    SetVariables,
    Step,
    UvProject,
    Wheels,
)

_HOMES = ("/root", "/home/flyte")
"""Working folders of Flyte's own images; both stand for the working folder of an attempt."""

_OURS = frozenset({"VIRTUAL_ENV", "VIRTUALENV", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT_ENVIRONMENT"})
"""Variables that say where the environment is, which we decide."""

_CONTAINER_PATHS = frozenset({"/opt/venv/bin", *_HOMES})
_SEARCH_PATHS = frozenset({"PATH", "PYTHONPATH"})

_ACCOUNT = "useradd --create-home --shell /bin/bash flyte"
"""In the command with which the SDK's own base image makes its user: nothing to tell the user of."""


class InvalidImage(Exception):
    """The image can never be built as specified; the text is a sentence for the user."""


class Layers:
    """Reads layer after layer: what one means may depend on those before it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.notices: list[str] = []
        self._folders = [*_HOMES]
        self._folder = _HOMES[0]

    def read(self, layer: pb.Layer) -> None:
        """Raises `InvalidImage`."""
        kind = layer.WhichOneof("layer")
        if kind in _PACKAGES:
            self.steps.append(_PACKAGES[kind](layer))
        elif kind == "copy_config":
            self._copy(layer.copy_config)
        elif kind == "commands":
            for command in layer.commands.cmd:
                self._command(command)
        elif kind == "env":
            self._variables(layer.env)
        elif kind == "workdir":
            self._folder = posixpath.normpath(posixpath.join(self._folder, layer.workdir.workdir))
            self._folders.append(self._folder)
        elif kind == "apt_packages":
            self._leave_out(f"apt packages ({', '.join(layer.apt_packages.packages)})")
        else:
            self._leave_out("a layer of a kind that this version of the server does not know")

    def _leave_out(self, what: str) -> None:
        self.notices.append(f"Left out: {what}. Images are virtual environments on this machine, not containers.")

    def _copy(self, copy: pb.CopyConfig) -> None:
        target = self._below_work(copy.dst or ".")
        if target is None:
            self._leave_out(f"the files for {copy.dst}, which is outside of the working folder")
            return
        self.steps.append(Copy(source=_inside(copy.src), target=target))

    def _below_work(self, target: str) -> str | None:
        """Relative to the working folder; None for another place."""
        path = posixpath.normpath(posixpath.join(self._folder, target))
        into_folder = target.endswith("/") or path in self._folders
        for folder in sorted(self._folders, key=len, reverse=True):
            if path == folder or path.startswith(f"{folder.rstrip('/')}/"):
                return posixpath.relpath(path, folder) + ("/" if into_folder else "")
        return None

    def _command(self, command: str) -> None:
        if _ACCOUNT in command:
            return
        parts = parts_of(command)
        if parts is None:
            self._leave_out(f"the command `{command}`; only pip, uv and python commands are run, without a shell")
            return
        self.steps.append(Run(text=command, parts=parts))

    def _variables(self, env: pb.Env) -> None:
        kept = [(name, _adapted(name, value)) for name, value in sorted(env.env_variables.items()) if name not in _OURS]
        variables = tuple((name, value) for name, value in kept if value or not env.env_variables[name])
        if any("\0" in name + value or not name or "=" in name for name, value in variables):
            raise InvalidImage("with_env_vars has a name or a value that no environment variable can have")
        if variables:
            self.steps.append(SetVariables(variables=variables))


def _adapted(name: str, value: str) -> str:
    """Folders of the container are none of this machine's."""
    if name not in _SEARCH_PATHS:
        return value
    return ":".join(part for part in value.split(":") if part not in _CONTAINER_PATHS)


def _packages(layer: pb.Layer) -> Step:
    pip = layer.pip_packages
    return Packages(packages=tuple(pip.packages), options=_options(pip.options))


def _requirements(layer: pb.Layer) -> Step:
    file = layer.requirements
    return RequirementsFile(file=_inside(file.file), options=_options(file.options))


def _wheels(layer: pb.Layer) -> Step:
    wheels = layer.python_wheels
    return Wheels(folder=_inside(wheels.dir), package=wheels.package_name, options=_options(wheels.options))


def _uv_project(layer: pb.Layer) -> Step:
    project = layer.uv_project
    return UvProject(
        folder=_inside(project.pyproject.removesuffix("pyproject.toml") or "."),
        lock=_inside(project.uvlock) if project.uvlock else "",
        source=_inside(project.source_dir) if project.source_dir else "",
        options=_options(project.options),
    )


def _options(options: pb.PipOptions) -> PipOptions:
    try:
        shlex.split(options.extra_args)
    except ValueError as error:
        raise InvalidImage(f"extra_args {options.extra_args!r} cannot be split into arguments: {error}") from error
    return PipOptions(
        index_url=options.index_url,
        extra_index_urls=tuple(options.extra_index_urls),
        pre=options.pre,
        extra_args=options.extra_args,
    )


def _poetry_project(layer: pb.Layer) -> Step:
    """`poetry install` takes all groups but optional ones, `poetry export` the main one, unless told otherwise."""
    project = layer.poetry_project
    arguments = shlex.split(project.extra_args)
    selection = [argument for argument in arguments if argument != "--no-root"]
    if not any(argument.startswith(("--only", "--without", "--with")) for argument in selection):
        selection.append("--all-groups")
    pyproject = PurePosixPath(_inside(project.pyproject))
    return PoetryProject(
        folder=str(pyproject.parent if pyproject.name == "pyproject.toml" else pyproject),
        lock=_inside(project.poetry_lock),
        export_arguments=tuple(selection),
        with_project="--no-root" not in arguments,
    )


def _inside(path: str) -> str:
    """A path of the build context. Raises `InvalidImage` for one that leads out of it."""
    normal = posixpath.normpath(path)
    if not path or path.startswith("/") or normal.split("/")[0] == ".." or "\0" in path:
        raise InvalidImage(f"the image refers to {path!r}, which is not in what was uploaded with it")
    return normal


_PACKAGES: Mapping[str | None, Callable[[pb.Layer], Step]] = {
    "pip_packages": _packages,
    "requirements": _requirements,
    "python_wheels": _wheels,
    "uv_project": _uv_project,
    "poetry_project": _poetry_project,
}
