"""What to tell somebody whose task lacks a module: which Python it ran under, and how the module gets there. Pure."""

from __future__ import annotations

import re

from flyteidl2.core import execution_pb2

from flyte_binary.executor.compatibility import Runtime, is_default_image

_CODE = "ModuleNotFoundError"
_MISSING = re.compile(r"No module named '([\w.]+)'")


def lacks_module(error: execution_pb2.ExecutionError | None) -> bool:
    return error is not None and error.code == _CODE and _MISSING.search(error.message) is not None


def with_import_hint(error: execution_pb2.ExecutionError, image: str, runtime: Runtime) -> execution_pb2.ExecutionError:
    """The error with a sentence more. An image that was built here is what its author made it, and needs none."""
    found = _MISSING.search(error.message)
    if runtime.built or found is None:
        return error
    package, python = found[1].partition(".")[0], runtime.interpreter
    if image and not is_default_image(image):
        hint = (
            f"Nothing was built on this server for the image {image}, so the task ran under {python}, which has no"
            f" {package!r}. Have the server build the image: set image.builder to remote in the configuration of the"
            f" client (or FLYTE_IMAGE_BUILDER=remote) and run again. Or install the package for {python}."
        )
    else:
        hint = (
            f"The task ran under {python}, which has no {package!r}. Install it there, or name it in the task's image:"
            f" flyte.Image.from_debian_base().with_pip_packages(...)."
        )
    hinted = execution_pb2.ExecutionError()
    hinted.CopyFrom(error)
    hinted.message = f"{error.message}\n\n[flyte-binary] {hint}"
    return hinted
