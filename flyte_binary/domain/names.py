"""Names of runs and tasks: what is allowed, how new ones are made, and what is derived from them."""

from __future__ import annotations

import re
import secrets

from flyte_binary.domain.errors import InvalidArgument

RUN_NAME_LIMIT = 30
TEXT_LIMIT = 255
"""Longest name or version of a task, in characters; the reference's protos say so for names."""

_RUN_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PROJECT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def check_run_name(name: str) -> None:
    """A run's name becomes part of paths and, on a cluster, of pod names: a DNS-1035 label of at most 30 characters."""
    if not _RUN_NAME.fullmatch(name):
        raise InvalidArgument(
            f"run_id.name {name!r} is no name of a run: it takes lower case letters, digits and '-', "
            "starts with a letter and does not end in '-'"
        )
    if len(name) > RUN_NAME_LIMIT:
        raise InvalidArgument(f"run_id.name {name!r} is too long: at most {RUN_NAME_LIMIT} characters")


def new_run_name() -> str:
    """`r` and 19 characters that spell no words; 90 bits, so that nobody guesses or repeats one."""
    number = secrets.randbits(128)
    letters: list[str] = []
    for _ in range(19):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "r" + "".join(letters)


def check_project_id(field: str, name: str) -> None:
    """A project's id becomes a folder of every path, so nothing that leads elsewhere."""
    check_text(field, name, required=True, limit=63)
    if not _PROJECT_ID.fullmatch(name):
        raise InvalidArgument(
            f"{field} {name!r} is no id of a project: it takes letters, digits, '.', '_' and '-', "
            "and starts with a letter or a digit"
        )


def check_text(field: str, value: str, *, required: bool = False, limit: int = TEXT_LIMIT) -> None:
    """Refuse what a text column of either database, or a path, cannot hold. `field` is named in the error."""
    if required and not value:
        raise InvalidArgument(f"{field} is required")
    if "\0" in value:
        raise InvalidArgument(f"{field} must not contain the NUL character")
    if len(value) > limit:
        raise InvalidArgument(f"{field} is too long: {len(value)} characters, at most {limit} are allowed")


def short_name_of(task_name: str) -> str:
    """What follows the environment: `env.hello` -> `hello`."""
    return task_name.rpartition(".")[2]


def function_name_of(task_name: str, environment: str) -> str:
    """The task's name without its environment, which may contain dots itself."""
    if environment and task_name.startswith(f"{environment}."):
        return task_name.removeprefix(f"{environment}.")
    return short_name_of(task_name)


def cut(text: str, limit_bytes: int) -> str:
    """The longest beginning of `text` that fits into so many bytes of UTF-8, whole characters only."""
    body = text.encode()
    if len(body) <= limit_bytes:
        return text
    return body[:limit_bytes].decode(errors="ignore")
