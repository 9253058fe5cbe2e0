"""Tasks that ask for secrets; they tell a digest of what they got, so that no value is in an output or a log."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path

import flyte

MOUNT = Path("/etc/flyte/secrets")

in_variable = flyte.TaskEnvironment(name="secrets_in_variable", secrets="in-variable")
renamed = flyte.TaskEnvironment(
    name="secrets_renamed", secrets=[flyte.Secret("wide", as_env_var="TOKEN"), flyte.Secret("narrow", group="team")]
)
in_file = flyte.TaskEnvironment(
    name="secrets_in_file",
    secrets=[flyte.Secret("in-file", mount=MOUNT), flyte.Secret("of-group", group="team", mount=MOUNT)],
)
cold = flyte.TaskEnvironment(name="secrets_cold", secrets="in-variable", env_vars={"PYTHONHASHSEED": "7"})
missing = flyte.TaskEnvironment(name="secrets_missing", secrets=["in-variable", "never-made"])
reserved = flyte.TaskEnvironment(name="secrets_reserved", secrets=flyte.Secret("in-variable", as_env_var="RUN_NAME"))


def digest(value: bytes | str) -> str:
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()


@in_variable.task
def variable() -> str:
    return digest(os.environ["IN_VARIABLE"])


@in_variable.task
def variable_while(seconds: float) -> str:
    time.sleep(seconds)
    return digest(os.environ["IN_VARIABLE"])


@cold.task
def cold_variable() -> str:
    return digest(os.environ["IN_VARIABLE"])


@renamed.task
def variables() -> list[str]:
    return [digest(os.environ["TOKEN"]), digest(os.environ["TEAM_NARROW"])]


@in_file.task
def files() -> list[str]:
    folder = Path(os.environ["FLYTE_SECRETS_DEFAULT_DIR"])
    one, other = folder / "in-file", folder / "of-group"
    modes = [oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, one)]
    return [digest(one.read_bytes()), digest(other.read_bytes()), *modes, str(folder)]


@missing.task
def never() -> str:
    return "not reached"


@reserved.task
def refused() -> str:
    return "not reached"
