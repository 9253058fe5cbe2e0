"""Secrets of a build: files that the attempt was given, as the variables under which layers refer to them.

The SDK asks for the secrets of all layers as files (`flyte._internal.imagebuild.remote_builder`), and its builder on
Docker gives them to the commands of a layer as variables, `<group>_<key>` unless they name their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_FOLDER = "FLYTE_SECRETS_DEFAULT_DIR"


def secret_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """By both spellings in use: as it is, and in capitals. What no variable can hold is left out."""
    folder = environ.get(_FOLDER, "")
    if not folder or not Path(folder).is_dir():
        return {}
    found: dict[str, str] = {}
    for path in sorted(Path(folder).rglob("*")):
        if not path.is_file():
            continue
        name = "_".join(path.relative_to(folder).parts).replace("-", "_")
        try:
            value = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if "\0" not in value:
            found |= {name: value, name.upper(): value}
    return found
