"""Names of images: what is allowed, and what an image is called that this server keeps itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flyte_binary.domain.errors import InvalidArgument

REGISTRY = "local"
"""Stands where the registry of an image would: these images are names of environments on this machine."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:+-]*")
_NAME_LENGTH = 255


def check_image_name(field: str, name: str) -> None:
    """Raises `InvalidArgument` naming the field."""
    if not name:
        raise InvalidArgument(f"{field} is required")
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidArgument(f"{field} {name[:80]!r} is not the name of an image")


def short_image_name(name: str) -> str:
    """`name:tag` without any registry: what the SDK asks for, whatever registry the image is to be pushed to."""
    return name.rpartition("/")[2]


def local_image(name: str) -> str:
    """What tasks of an image have as their container's image if this server provides for it."""
    return f"{REGISTRY}/{name}"


def image_from_registry(name: str, *, registry: str, names: Mapping[str, str]) -> str | None:
    """Where an image is that is built elsewhere, by configuration: `names` has whole answers for some names, the rest
    is below `registry`. None if the configuration says nothing."""
    chosen = names.get(name) or names.get(short_image_name(name))
    if chosen:
        return chosen
    return f"{registry.rstrip('/')}/{short_image_name(name)}" if registry else None
