"""What an image means on this machine: the Python, the SDK, the steps, what is left out; and its digest. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from flyteidl2.imagebuilder import definition_pb2 as pb

from flyte_binary.executor.local.environments.layers import InvalidImage, Layers
from flyte_binary.executor.local.environments.steps import Fingerprint, SetVariables, Step, key_of
from flyte_binary.executor.local.environments.variables import expanded

FORMAT = 1
"""Of the environments; a new number has all of them built anew."""

_FLYTE_IMAGE = re.compile(r"/flyte:py(?P<python>\d+\.\d+)-v(?P<sdk>\d+\.\d+\.\d+[0-9a-z.]*)$")
_PYTHON_IMAGE = re.compile(r"(^|/)python:(?P<python>\d+\.\d+)")
_PYTHON = re.compile(r"\d+\.\d+")
_DIGEST_LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """What tasks run under when no image is asked for."""

    python: str
    """Version, all three parts."""
    sdk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    python: str
    """`3.12`, or empty for the default interpreter."""
    sdk: str
    """Version of the SDK that the base image brings, empty if it brings none."""
    steps: tuple[Step, ...]
    notices: tuple[str, ...]
    """Sentences about what has no effect here."""

    def variables(self) -> dict[str, str]:
        """What the image sets, references among them resolved, others (`$PATH`) left for the start of a task."""
        made: dict[str, str] = {}
        for step in self.steps:
            if isinstance(step, SetVariables):
                made |= {name: expanded(value, made) for name, value in step.variables}
        return made

    def digest(self, default: Default, fingerprint: Fingerprint) -> str:
        """Equal for what would be built equally on this machine, whatever the images are called."""
        python = self.python or f"default {default.python}"
        # An image that brings no SDK gets the default's, if its own layers bring none either.
        parts = [
            FORMAT,
            python,
            self.sdk or f"default {default.sdk}",
            [key_of(step, fingerprint) for step in self.steps],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST_LENGTH]


def recipe_from(spec: pb.ImageSpec, default: Default) -> Recipe:
    """Raises `InvalidImage`."""
    layers = Layers()
    for layer in spec.layers:
        layers.read(layer)
    flyte = _FLYTE_IMAGE.search(spec.base_image)
    python = spec.python_version or (flyte["python"] if flyte else "")
    if python and not _PYTHON.fullmatch(python):
        raise InvalidImage(f"python_version {python!r} is not a version such as 3.12")
    notices = list(layers.notices)
    if spec.base_image and not flyte and not _PYTHON_IMAGE.search(spec.base_image):
        notices.insert(
            0,
            f"Left out: the base image {spec.base_image}. The environment starts from a bare Python;"
            " add the packages that the image brings with with_pip_packages.",
        )
    return Recipe(
        python="" if default.python.startswith(f"{python}.") else python,
        sdk=flyte["sdk"] if flyte else "",
        steps=tuple(layers.steps),
        notices=tuple(notices),
    )
