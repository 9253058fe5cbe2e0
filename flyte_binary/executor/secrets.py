"""Which secrets a task asks for, and in which form; the values come from the backend's side, at the launch.

A group has no meaning for the lookup, as in the reference's own vault; it names a folder for those who expect one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from flyteidl2.core import security_pb2

PREFIX_VARIABLE = "FLYTE_SECRETS_ENV_PREFIX"
PREFIX = "_UNION_"
"""Of the variable that has a secret for which no other name was asked."""

FOLDER_VARIABLE = "FLYTE_SECRETS_DEFAULT_DIR"
FILE_PREFIX_VARIABLE = "FLYTE_SECRETS_FILE_PREFIX"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOLDER = re.compile(r"[-\w][-\w.]*", re.ASCII)
_OF_THE_SERVER = frozenset(
    {"_U_EP_OVERRIDE", "_U_INSECURE", PREFIX_VARIABLE, FOLDER_VARIABLE, FILE_PREFIX_VARIABLE, "FSSPEC_FILE_AUTO_MKDIR"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRequest:
    key: str
    """Name of the secret."""
    group: str = ""
    variable: str = ""
    """For the value, or for the path of the file; empty where none was asked for."""
    as_file: bool = False


class SecretValues(Protocol):
    async def values(self, project: str, domain: str, names: Collection[str]) -> Mapping[str, bytes]:
        """By name; those that a task of the project may not have, or that do not exist, are left out."""
        ...


def requested_secrets(*contexts: security_pb2.SecurityContext) -> tuple[SecretRequest, ...]:
    """Each once, in the order in which they were asked for. Any form that will do is a variable."""
    requests = (
        SecretRequest(
            key=secret.key,
            group=secret.group,
            variable=secret.env_var,
            as_file=secret.mount_requirement == security_pb2.Secret.FILE,
        )
        for context in contexts
        for secret in context.secrets
    )
    return tuple(dict.fromkeys(requests))


def problems_of(requests: Iterable[SecretRequest], reserved: Collection[str]) -> Iterator[str]:
    """What no backend could give. `reserved` are variables that the server itself decides about."""
    for request in requests:
        if not request.key:
            yield "the task asks for a secret without a key"
        if request.variable and not _VARIABLE.fullmatch(request.variable):
            yield f"the secret {request.key!r} cannot be in {request.variable!r}: that is no name of a variable"
        if request.variable in _OF_THE_SERVER or request.variable in reserved:
            yield f"the secret {request.key!r} cannot be in {request.variable}, a variable that the server sets itself"
        if request.as_file and request.group and not _FOLDER.fullmatch(request.group):
            yield f"the group {request.group!r} of the secret {request.key!r} is no name of a folder"
