"""Building the environment of an image: the program's own part, which runs `uv`. Blocking.

What it prints is the log of the run. It ends with an exit code; the server takes 0 for an environment that is there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from flyteidl2.imagebuilder import definition_pb2 as pb
from google.protobuf.message import DecodeError

from flyte_binary.executor.local.environments.build_secrets import secret_variables
from flyte_binary.executor.local.environments.context import Context
from flyte_binary.executor.local.environments.layers import InvalidImage
from flyte_binary.executor.local.environments.library import Built, Library
from flyte_binary.executor.local.environments.order import CONTEXT, SPEC, Order
from flyte_binary.executor.local.environments.recipe import Recipe, recipe_from
from flyte_binary.executor.local.environments.steps import (
    Command,
    Copy,
    Place,
    PoetryProject,
    SetVariables,
    Step,
    UvProject,
)
from flyte_binary.executor.local.environments.variables import expanded
from flyte_binary.executor.local.folders import remove_tree
from flyte_binary.executor.local.unpack import InvalidBundle

_SDK_QUESTION = "from importlib.metadata import version; print(version('flyte'))"
_RUNTIME = "flyte._bin.runtime"
_LEADS_ELSEWHERE = ("UV_PROJECT_ENVIRONMENT", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_WORKING_DIRECTORY", "UV_NO_SYNC")
"""What a user may have set for `uv` that would have it work on another environment than ours."""


class BuildFailed(Exception):
    """A command failed and has said why; the text says which."""


def build(folder: Path) -> int:
    """Carry out the order in `folder`. Returns the exit code."""
    order = Order.read(folder)
    try:
        _Build(order, folder).run()
    except (InvalidImage, InvalidBundle, BuildFailed) as error:
        say(f"The image {order.image} was not built: {error}")
        return 1
    return 0


def say(sentence: str) -> None:
    print(f"[flyte-binary] {sentence}", flush=True)  # noqa: T201  # the log of the run


class _Build:
    def __init__(self, order: Order, folder: Path) -> None:
        self._order = order
        self._folder = folder
        self._library = Library(order.library)
        self._context = Context(folder / "context")

    def run(self) -> None:
        recipe = self._read()
        for notice in recipe.notices:
            say(notice)
        digest = recipe.digest(self._order.default, self._context.fingerprint)
        with self._library.locked(digest, lambda: say("Another run builds the same layers; waiting for it.")):
            built = self._library.ready(digest)
            if built is not None and not self._order.force:
                say(f"The same layers are built already: {built.folder}")
            else:
                built = self._make(digest, recipe)
            self._library.touch(built)
            self._library.name(self._order.image, digest, self._order.run)
        say(f"The image {self._order.image} is ready.")

    def _read(self) -> Recipe:
        try:
            spec = pb.ImageSpec.FromString((self._folder / SPEC).read_bytes())
        except DecodeError as error:
            raise InvalidImage(f"what was uploaded is not the description of an image ({error})") from error
        self._context.unpack(self._folder / CONTEXT, limit_bytes=self._order.context_limit_bytes)
        return recipe_from(spec, self._order.default)

    def _make(self, digest: str, recipe: Recipe) -> Built:
        built = Built(folder=self._library.new_folder(digest), variables=recipe.variables())
        try:
            self._fill(built, recipe)
        except BaseException:
            remove_tree(built.folder)
            raise
        context = self._folder / CONTEXT
        self._library.keep_recipe(
            digest, (self._folder / SPEC).read_bytes(), context.read_bytes() if context.exists() else None
        )
        self._library.publish(digest, built)
        return built

    def _fill(self, built: Built, recipe: Recipe) -> None:
        place = Place(uv=self._order.uv, python=built.python, context=self._context.folder, work=built.work)
        variables: dict[str, str] = {}
        python = recipe.python or str(self._order.python)
        self._command(_uv(place, "venv", "--python", python, str(built.folder / "venv")), place, variables)
        if recipe.sdk:
            self._command(_uv(place, "pip", "install", f"flyte=={recipe.sdk}"), place, variables)
        for step in recipe.steps:
            self._lay_out(step, place)
            if isinstance(step, SetVariables):
                variables |= {name: expanded(value, variables) for name, value in step.variables}
            elif not isinstance(step, Copy):
                for command in step.commands(place):
                    self._command(command, place, variables)
        self._require_sdk(place, variables)
        self._try(place)

    def _lay_out(self, step: Step, place: Place) -> None:
        """The files that a step brings or needs."""
        match step:
            case Copy():
                target = place.work / step.target
                source = self._context.folder / step.source
                into_folder = step.target.endswith("/") or target.is_dir()
                self._context.copy(step.source, target / source.name if into_folder and source.is_file() else target)
            case UvProject() if step.lock:
                self._context.put_beside(step.lock, step.folder, "uv.lock")
            case PoetryProject():
                self._context.put_beside(step.lock, step.folder, "poetry.lock")
            case _:
                pass

    def _require_sdk(self, place: Place, variables: Mapping[str, str]) -> None:
        """Tasks cannot run without it."""
        asked = subprocess.run(
            [place.python, "-I", "-c", _SDK_QUESTION], capture_output=True, text=True, check=False, env=os.environ
        )
        if asked.returncode == 0:
            return
        sdk = self._order.default.sdk
        package = f"flyte=={sdk}" if sdk else "flyte"
        say(f"The image does not bring the SDK; its tasks get the version that other tasks have here: {package}.")
        self._command(_uv(place, "pip", "install", package), place, variables)

    def _try(self, place: Place) -> None:
        """Better now than in every task; it also compiles what tasks load first."""
        tried = subprocess.run([place.python, "-I", "-c", f"import {_RUNTIME}"], check=False, stdin=subprocess.DEVNULL)
        if tried.returncode != 0:
            raise BuildFailed("the SDK cannot be loaded with the packages of this image, see the error above")

    def _command(self, command: Command, place: Place, variables: Mapping[str, str]) -> None:
        """Its output is the log's. Shown as written: what `$NAME` stands for may be a secret."""
        environment = _environment(place, variables, command)
        program = Path(command.argv[0]).name
        shown = " ".join((program, *command.argv[1:]))
        say(shown)
        argv = [one if command.literal else expanded(one, environment) for one in command.argv]
        try:
            code = subprocess.run(argv, cwd=command.cwd, env=environment, check=False, stdin=subprocess.DEVNULL)
        except FileNotFoundError as error:
            raise BuildFailed(f"{program} is not there ({error})") from error
        if code.returncode != 0:
            raise BuildFailed(f"`{shown}` failed with exit code {code.returncode}")


def _environment(place: Place, variables: Mapping[str, str], command: Command) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _LEADS_ELSEWHERE}
    venv = place.python.parent.parent
    path = f"{venv / 'bin'}:{place.uv.parent}:{own.get('PATH', os.defpath)}"
    made = {**secret_variables(os.environ), **own, "PATH": path}
    made |= {name: expanded(value, made) for name, value in variables.items()}
    made |= {"VIRTUAL_ENV": str(venv), "UV_PYTHON": str(place.python), **dict(command.variables)}
    return {name: value for name, value in made.items() if value or name not in ("VIRTUAL_ENV", "UV_PYTHON")}


def _uv(place: Place, *arguments: str) -> Command:
    return Command(argv=(str(place.uv), *arguments), cwd=place.work.parent)
