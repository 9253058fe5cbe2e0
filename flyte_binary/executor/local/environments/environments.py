"""The server's side of images: which environment a name stands for, and preparing a build as an attempt."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import structlog
from flyteidl2.common import identifier_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2
from google.protobuf.message import DecodeError

from flyte_binary.domain import locations
from flyte_binary.domain.errors import FlyteError, InvalidArgument, Unavailable
from flyte_binary.domain.images import REGISTRY, check_image_name, local_image, short_image_name
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.build_image import CONTEXT, FORCE, IMAGE_NAME, SPEC, TARGET_IMAGE
from flyte_binary.executor.local.environments.collect import kept_in, to_remove
from flyte_binary.executor.local.environments.library import BuildRun, Built, Library, Named
from flyte_binary.executor.local.environments.order import Order
from flyte_binary.executor.local.environments.recipe import Default
from flyte_binary.executor.local.environments.restoring import Restoring
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.unpack import InvalidBundle

_log = structlog.get_logger(__name__)

_SPEC_LIMIT_BYTES = 4 * 1024 * 1024
_PROGRAM = "flyte_binary.executor.local.environments"


class ImageStore(Protocol):
    """The part of an object store that is needed here."""

    async def get(self, uri: str, *, limit_bytes: int) -> bytes: ...

    async def put(self, uri: str, data: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    folder: Path
    """Of all environments; of this machine, the same after a restart."""

    uv: Path | None = None
    """The program. Without it nothing is built."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the server's environment, what builds get to see."""

    unused_for: timedelta = timedelta(days=30)
    """After so long an environment is removed."""

    max_size_bytes: int = 20 * 1024**3
    """Above this the longest unused go."""

    context_limit_bytes: int = 256 * 1024 * 1024
    """Largest upload of files with an image; unpacked it may be eight times as large."""


class Missing(Exception):
    """The image was built here once, and its environment is no longer there."""

    def __init__(self, image: str, named: Named) -> None:
        super().__init__(
            f"the environment of image {image} was removed from this machine, since it had not been used for long"
            " or its Python is gone"
        )
        self.named = named
        self.name = image.removeprefix(f"{REGISTRY}/")


class Environments:
    def __init__(self, settings: EnvironmentSettings, store: ImageStore) -> None:
        self._settings = settings
        self._store = store
        self._library = Library(settings.folder)
        self._restoring = Restoring(
            self._library, settings.folder / "scratch", self.command(), self._variables(settings.variables)
        )

    @property
    def can_build(self) -> bool:
        return self._settings.uv is not None

    def of_task(self, image: str) -> Built | None:
        """For an attempt that is about to start; None for an image that was not built here. Raises `Missing`."""
        name = image.removeprefix(f"{REGISTRY}/")
        named = self._library.find(name) if name != image else None
        if named is None:
            return None
        if named.built is None:
            raise Missing(image, named)
        self._library.touch(named.built)
        return named.built

    def restore(self, missing: Missing, default: Interpreter) -> str | None:
        """Have it built again. None while that goes on, else a sentence that says why it cannot be."""
        uv, named = self._settings.uv, missing.named
        problem: str | None = "this server has no program uv"
        if uv is not None:
            order = self._order(uv, missing.name, default, named.build_run, force=False)
            problem = self._restoring.problem(named, order)
        if problem is None:
            return None
        return f"{missing}, and it cannot be built again; run or deploy the task from its source again. {problem}"

    async def close(self) -> None:
        await self._restoring.close()

    async def find_image(self, name: str) -> tuple[str, identifier_pb2.RunIdentifier] | None:
        """What tasks of an image are to name as their image, and the run that built it. Without the means to build
        anything, every name is taken for built: it stands for the default environment."""
        short = short_image_name(name)
        named = await asyncio.to_thread(self._library.find, short)
        if named is None or named.built is None:
            return None if self.can_build else (local_image(name), identifier_pb2.RunIdentifier())
        await asyncio.to_thread(self._library.touch, named.built)
        run = named.build_run
        return local_image(short), identifier_pb2.RunIdentifier(project=run.project, domain=run.domain, name=run.run)

    def command(self) -> list[str]:
        return [sys.executable, "-I", "-u", "-m", _PROGRAM]

    def variables(self, spec: AttemptSpec) -> dict[str, str]:
        """The environment of a build: the server's index and proxies, and above them what the run sets."""
        return {**self._variables(self._settings.variables), **spec.env}

    async def prepare(self, spec: AttemptSpec, work: Path, default: Interpreter) -> None:
        """Put all that the program needs into `work`, and its output where the run's outputs belong: it counts once
        the program ends well. Raises `InvalidBundle` for what can never be built, and `Unavailable`."""
        uv = self._settings.uv
        if uv is None:
            raise InvalidBundle(
                "this server cannot build images: it has no program uv; install the Python package uv beside it"
                " (pip install uv), or set executor.images.uv"
            )
        uris = _options(spec.argv)
        inputs = await self._inputs(uris["--inputs"])
        image = short_image_name(inputs.get(TARGET_IMAGE, ""))
        try:
            check_image_name(TARGET_IMAGE, image)
        except InvalidArgument as error:
            raise InvalidBundle(error.message) from error
        description = await self._get(inputs.get(SPEC, ""), _SPEC_LIMIT_BYTES)
        limit = self._settings.context_limit_bytes
        context = await self._get(inputs[CONTEXT], limit) if inputs.get(CONTEXT) else None
        action = spec.id.action
        run = BuildRun(project=action.project, domain=action.domain, run=action.run)
        placed = self._order(uv, image, default, run, force=FORCE in spec.argv)
        await asyncio.to_thread(lambda: placed.place(work, description, context))
        outputs = locations.join(uris["--outputs-path"], locations.OUTPUTS)
        await self._store.put(outputs, _text_outputs(IMAGE_NAME, local_image(image)))

    async def collect(self, in_use: frozenset[Path]) -> None:
        """Remove what nobody needs. `in_use` are folders of environments that attempts run in."""
        removed = await asyncio.to_thread(self._collect, in_use)
        for folder in removed:
            _log.info("environment_removed", folder=str(folder))

    def _order(self, uv: Path, image: str, default: Interpreter, run: BuildRun, *, force: bool) -> Order:
        return Order(
            image=image,
            library=self._settings.folder,
            uv=uv,
            python=default.path,
            default=Default(python=default.python, sdk=default.flyte),
            context_limit_bytes=8 * self._settings.context_limit_bytes,
            force=force,
            run=run,
        )

    @staticmethod
    def _variables(of_server: Mapping[str, str]) -> dict[str, str]:
        return {"LANG": "C.UTF-8", "NO_COLOR": "1", **of_server}

    def _collect(self, in_use: frozenset[Path]) -> list[Path]:
        self._library.empty_trash()
        self._restoring.empty_scratch()
        chosen = to_remove(
            kept_in(self._library),
            in_use=in_use,
            now=time.time(),
            unused_for=self._settings.unused_for,
            max_size_bytes=self._settings.max_size_bytes,
        )
        return [one.folder for one in chosen if self._library.remove(one.digest, one.folder)]

    async def _inputs(self, uri: str) -> dict[str, str]:
        body = await self._get(uri, _SPEC_LIMIT_BYTES)
        try:
            inputs = common_pb2.Inputs.FromString(body)
        except DecodeError as error:
            raise InvalidBundle(f"the inputs {uri} of the build cannot be read: {error}") from error
        return {one.name: one.value.scalar.primitive.string_value for one in inputs.literals}

    async def _get(self, uri: str, limit_bytes: int) -> bytes:
        if not uri:
            raise InvalidBundle(f"the build has no input {SPEC!r}, the place of the image's description")
        try:
            return await self._store.get(uri, limit_bytes=limit_bytes)
        except Unavailable:
            raise
        except FlyteError as error:
            raise InvalidBundle(f"{uri} cannot be read: {error.message}") from error


def _options(argv: Sequence[str]) -> dict[str, str]:
    return {option: value for option, value in pairwise(argv) if option.startswith("--")}


def _text_outputs(name: str, text: str) -> bytes:
    value = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(string_value=text)))
    return common_pb2.Outputs(literals=[common_pb2.NamedLiteral(name=name, value=value)]).SerializeToString()
