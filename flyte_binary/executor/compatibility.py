"""Whether the interpreter that tasks run under suits the SDK that the task was made with."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from flyteidl2.core import tasks_pb2

from flyte_binary.executor.task_types import CannotRun

_VERSION = re.compile(r"^v?(\d+)\.(\d+)")
_DEFAULT_IMAGE = re.compile(r"/flyte:py(\d+\.\d+)-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What tasks of an image run with."""

    python: str
    """Version, empty if unknown, as is the next."""
    flyte: str
    interpreter: str = ""
    """The program."""
    built: bool = False
    """For this image, and not the default that stands for every image."""
    preparing: bool = False
    """It will be there in a while; nothing is launched before."""


RuntimeOf = Callable[[str], Awaitable[Runtime]]
"""By the name of the image."""


def is_default_image(image: str) -> bool:
    """The one that a task gets that asks for none: nothing in it but Python and the SDK."""
    return _DEFAULT_IMAGE.search(image) is not None


def check_runtime(template: tasks_pb2.TaskTemplate, python: str, flyte: str) -> None:
    """`python` and `flyte` are the versions of the task interpreter, empty if unknown.

    Raises `CannotRun` where the difference is known to break: another major version of the SDK, and
    pickled code from another Python.
    """
    runtime = template.metadata.runtime
    if runtime.type == tasks_pb2.RuntimeMetadata.FLYTE_SDK and flyte:
        _check_sdk(runtime.version, flyte)
    image = _DEFAULT_IMAGE.search(template.container.image)
    pickled = "--pkl" in template.container.args
    if image is not None and pickled and python and not python.startswith(f"{image.group(1)}."):
        raise CannotRun(
            f"the code was pickled under Python {image.group(1)}, and tasks run under Python {python} here; "
            "start the server in an environment of the same Python version, or set executor.interpreter"
        )


def _check_sdk(wanted: str, installed: str) -> None:
    ours, theirs = _VERSION.match(installed), _VERSION.match(wanted)
    if ours is not None and theirs is not None and ours.group(1) != theirs.group(1):
        raise CannotRun(
            f"the task was made with flyte {wanted}, and tasks run with flyte {installed} here; "
            "install the same major version in the environment of executor.interpreter"
        )
