"""The environment of an attempt, built here and nowhere else, and which environments cannot be forked.

Nothing of the server's own environment is passed on. From low to high: what every process needs,
the image's variables, the settings' ones, the task's and the run's own, and what this server must decide itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flyte_binary.executor.local.environments.variables import expanded
from flyte_binary.executor.local.program import files
from flyte_binary.executor.local.settings import LocalSettings

TOKEN_PATH = "/_task"
"""With authentication on, the endpoint of an attempt is `<server>/_task/<token>` (docs/adr)."""

_FIXED_AT_START = ("PYTHON", "LD_", "DYLD_", "MALLOC_", "GLIBC_TUNABLES", "LC_", "LANG", "FSSPEC_")
"""Read once by the interpreter, the C library or fsspec, before a fork."""

_READ_AGAIN = frozenset({"LOG_LEVEL", "USER_LOG_LEVEL", "HOME"})
"""Looked at while the SDK is imported, and again when a task starts."""

_DEBUG = 10


_NO_IMAGE: Mapping[str, str] = {}


def base_environment(
    settings: LocalSettings, interpreter: Path, home: Path, image: Mapping[str, str] = _NO_IMAGE
) -> dict[str, str]:
    """Also what a fork server is started with, so that what libraries read at import is the same. `image` has the
    variables of the image that the interpreter was built for."""
    base = {
        "PATH": f"{interpreter.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "DO_NOT_TRACK": "1",
        "FLYTE_DISABLE_TELEMETRY": "true",
    }
    own = {name: expanded(value, base) for name, value in image.items()}
    if "PATH" in own and str(interpreter.parent) not in own["PATH"].split(":"):
        own["PATH"] = f"{interpreter.parent}:{own['PATH']}"
    return {
        **base,
        **own,
        **settings.environment,
        # The SDK's driver for plain paths makes no folders otherwise, and fails at its first output.
        "FSSPEC_FILE_AUTO_MKDIR": "true",
    }


def attempt_environment(
    settings: LocalSettings,
    interpreter: Path,
    folder: Path,
    variables: Mapping[str, str],
    *,
    image: Mapping[str, str] = _NO_IMAGE,
    token: str = "",
) -> dict[str, str]:
    """`folder` is the attempt's. `variables` come from the executor: template, run and reserved ones; those of the
    `image` are below them. `token` is the attempt's own, empty where no one needs to authenticate."""
    return {
        **base_environment(settings, interpreter, settings.home or folder / files.HOME, image),
        # Or the SDK takes the configuration of a repository in which the data folder happens to lie.
        "GIT_CEILING_DIRECTORIES": str(folder),
        **variables,
        "FSSPEC_FILE_AUTO_MKDIR": "true",
        "_U_EP_OVERRIDE": endpoint_for(settings, token),
        # Automatic for the name `localhost` only.
        "_U_INSECURE": "true" if settings.insecure else "false",
    }


def endpoint_for(settings: LocalSettings, token: str) -> str:
    """The SDK sends no credentials over plain HTTP, but keeps the path of an endpoint that is a URL."""
    if not token:
        return settings.endpoint
    scheme = "http" if settings.insecure else "https"
    return f"{scheme}://{settings.endpoint}{TOKEN_PATH}/{token}"


def reason_to_run_cold(
    environment: Mapping[str, str], forked_from: Mapping[str, str], read_at_import: Mapping[str, str | None]
) -> str:
    """The variable whose value a forked child would not honour, or an empty text.

    `forked_from` is the fork server's environment, `read_at_import` what was looked up while it imported.
    """
    for name in sorted({*environment, *forked_from}):
        if name.startswith(_FIXED_AT_START) and environment.get(name) != forked_from.get(name):
            return name
    for name, value in read_at_import.items():
        if name not in _READ_AGAIN and environment.get(name) != value:
            return name
    return "LOG_LEVEL" if _is_debug(environment.get("LOG_LEVEL", "")) else ""


def _is_debug(level: str) -> bool:
    """The SDK decides while it is imported whether its functions log their calls."""
    return level.lower() == "debug" or (level.isdigit() and int(level) <= _DEBUG)
