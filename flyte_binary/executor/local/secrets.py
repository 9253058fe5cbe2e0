"""Secrets of an attempt on this machine: variables, and files in a folder that is its own and goes with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from flyte_binary.domain.errors import FlyteError, Unavailable
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.secrets import (
    FILE_PREFIX_VARIABLE,
    FOLDER_VARIABLE,
    PREFIX,
    PREFIX_VARIABLE,
    SecretRequest,
    SecretValues,
)

_LONGEST_VARIABLE_BYTES = 128 * 1024 - 1
"""Of name, equals sign and value together: what Linux passes to a program."""


class SecretProblem(Exception):
    """The attempt cannot have a secret; the text says which and why, and shows nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Not part of the attempt's spec, and never shown."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """By their path in the folder."""


async def place_secrets(spec: AttemptSpec, source: SecretValues | None, folder: Path) -> Placement:
    """`folder` is where the files will be. Raises `SecretProblem`, and `Unavailable` where it may work later."""
    if not spec.secrets:
        return Placement()
    if source is None:
        raise SecretProblem("this server has no secrets, and the task asks for some")
    action = spec.id.action
    names = sorted({request.key for request in spec.secrets})
    try:
        values = await source.values(action.project, action.domain, names)
    except Unavailable:
        raise
    except FlyteError as error:
        raise SecretProblem(error.message) from error
    missing = [name for name in names if name not in values]
    if missing:
        raise SecretProblem(_missing(missing, action.project, action.domain))
    return Placement(variables=_variables(spec.secrets, values, folder), files=_files(spec.secrets, values))


def write_files(placement: Placement, folder: Path) -> None:
    """In a folder that nobody else may look into."""
    if not placement.files:
        return
    folder.mkdir(0o700)
    for name, value in placement.files.items():
        path = folder / name
        path.parent.mkdir(0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(value)


def _missing(names: list[str], project: str, domain: str) -> str:
    what = f"the secret {names[0]!r} does" if len(names) == 1 else f"the secrets {', '.join(map(repr, names))} do"
    return (
        f"{what} not exist in the project {project}/{domain}, in the domain {domain} or in the organization: "
        f"create it with `flyte create secret {names[0]}`"
    )


def _variables(requests: Iterable[SecretRequest], values: Mapping[str, bytes], folder: Path) -> dict[str, str]:
    made: dict[str, str] = {}
    for request in requests:
        if request.as_file:
            made |= {FOLDER_VARIABLE: str(folder), FILE_PREFIX_VARIABLE: ""}
            if request.variable:
                made[request.variable] = str(folder / request.key)
            continue
        name = request.variable or f"{PREFIX}{request.key.upper()}"
        made[PREFIX_VARIABLE] = PREFIX
        made[name] = _text(request, name, values[request.key])
    return made


def _text(request: SecretRequest, name: str, value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SecretProblem(
            f"the secret {request.key!r} is no text that the variable {name} could have: ask for it as a file"
        )
    if len(name) + 1 + len(value) > _LONGEST_VARIABLE_BYTES:
        raise SecretProblem(
            f"the secret {request.key!r} has {len(value)} bytes, too many for a variable: ask for it as a file"
        )
    return text


def _files(requests: Iterable[SecretRequest], values: Mapping[str, bytes]) -> dict[str, bytes]:
    """By the key, as the reference's own vault has it, and by group and key, as its Kubernetes one."""
    wanted = [request for request in requests if request.as_file]
    keys = {request.key for request in wanted}
    grouped = {
        str(PurePosixPath(request.group, request.key)): values[request.key]
        for request in wanted
        if request.group and request.group not in keys
    }
    return {**{key: values[key] for key in sorted(keys)}, **grouped}
