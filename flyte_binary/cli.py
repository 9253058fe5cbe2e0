"""The command line: `flyte-binary [serve | check-config | migrate | backup | restore | ... | version]`.

What cannot start says so in a sentence on stderr and exits with 2; a traceback is a bug of ours. Only what a command
needs is imported, so that `version` answers at once.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from flyte_binary import __version__
from flyte_binary.domain.errors import FlyteError

if TYPE_CHECKING:
    from flyte_binary.config.load import Loaded

PROGRAM = "flyte-binary"
EXIT_REFUSED = 2
EXIT_BEHIND = 1
"""Of `migrate --check`."""

_FLAGS = {"--data-dir": "dataDir", "--host": "runs.server.host", "--port": "runs.server.port"}
_OPERATIONS = {"secrets": "rotate-key"}
_FOLDERS = ("backup", "restore")
_COMMANDS = """commands:
  serve         run the server (the default)
  check-config  say what is wrong with the configuration, or print what it amounts to
  migrate       bring the database to this version, without serving; with --check only say whether that is needed
  version       print the version
  backup FOLDER
                copy database, objects and keys to a new folder, also while a server runs
  restore FOLDER
                put such a copy back into an empty data folder
  secrets rotate-key
                encrypt all secrets with a new key, also while servers run

Without any option it serves on http://127.0.0.1:30080 and keeps its data in ~/.flyte-binary.
Every setting can also be an environment variable: runs.server.port is FLYTE_BINARY__RUNS__SERVER__PORT.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code; the entry point of the `flyte-binary` script."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    if arguments.check and arguments.command != "migrate":
        parser.error(f"{arguments.command} takes no --check")
    if arguments.command in _FOLDERS:
        if arguments.operation is None:
            parser.error(f"{arguments.command} needs a folder: {PROGRAM} {arguments.command} /mnt/flyte-backup")
    elif arguments.operation != _OPERATIONS.get(arguments.command):
        parser.error(_misplaced(arguments.command, arguments.operation))
    if arguments.version or arguments.command == "version":
        return _version()
    # Here, so that `version` need not load the YAML reader and the model.
    from flyte_binary.config.errors import ConfigError  # noqa: PLC0415

    try:
        loaded = _load(arguments, os.environ)
        commands = {
            "serve": _serve,
            "check-config": _check_config,
            "migrate": _migrate,
            "check": _check_schema,
            "secrets": _rotate_key,
        }
        if arguments.command in _FOLDERS:
            return _copy(loaded, arguments.command, Path(arguments.operation))
        return commands["check" if arguments.check else arguments.command](loaded)
    except (ConfigError, FlyteError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="The Flyte 2 backend in one process.",
        epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command",
        nargs="?",
        default="serve",
        choices=["serve", "check-config", "migrate", "backup", "restore", "secrets", "version"],
        metavar="command",
        help="see below",
    )
    parser.add_argument("operation", nargs="?", metavar="operation", help="of the command that has one")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="YAML file, or a pattern in quotes; may be given several times, later ones win",
    )
    parser.add_argument("--data-dir", metavar="FOLDER", help="folder for everything the server keeps")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", help="port to listen on")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="assignments",
        metavar="PATH=VALUE",
        help="one setting, such as runs.server.port=8090; may be given several times",
    )
    parser.add_argument("--check", action="store_true", help="of migrate: change nothing; exit with 1 if it is needed")
    parser.add_argument("--version", action="store_true", help="same as the command")
    return parser


def _misplaced(command: str, operation: str | None) -> str:
    expected = _OPERATIONS.get(command)
    if expected is None:
        return f"{command} takes no {operation!r}"
    return f"expected `{PROGRAM} {command} {expected}`"


def _load(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Loaded:
    from flyte_binary.config.load import load_config  # noqa: PLC0415 - as above

    given = {"--data-dir": arguments.data_dir, "--host": arguments.host, "--port": arguments.port}
    return load_config(
        files=arguments.config,
        environ=environ,
        flags={flag: (_FLAGS[flag], text) for flag, text in given.items()},
        assignments=arguments.assignments,
    )


def _serve(loaded: Loaded) -> int:
    _refuse_unusable(loaded, address=True)
    # The whole server; only this command needs it.
    from flyte_binary.composition import serve  # noqa: PLC0415

    return serve(loaded.config)


def _migrate(loaded: Loaded) -> int:
    _refuse_unusable(loaded, address=False)
    # SQLAlchemy and the migrations; only this command and the server need them.
    from flyte_binary.composition.databases import migrate  # noqa: PLC0415
    from flyte_binary.db.migrate import HEAD  # noqa: PLC0415

    shown, before = migrate(loaded.config)
    done = "was already at" if before == HEAD else "is now at"
    sys.stdout.write(f"{shown} {done} schema revision {HEAD}.\n")
    return 0


def _check_schema(loaded: Loaded) -> int:
    _refuse_unusable(loaded, address=False)
    from flyte_binary.composition.databases import schema_of  # noqa: PLC0415 - as above
    from flyte_binary.db.migrate import HEAD  # noqa: PLC0415

    shown, found = schema_of(loaded.config)
    if found == HEAD:
        sys.stdout.write(f"{shown} is at schema revision {HEAD}, this program's.\n")
        return 0
    before = "has no schema yet" if found is None else f"is at schema revision {found}"
    sys.stdout.write(f"{shown} {before}; `{PROGRAM} migrate` brings it to {HEAD}, and so does the start of a server.\n")
    return EXIT_BEHIND


def _rotate_key(loaded: Loaded) -> int:
    _refuse_unusable(loaded, address=False)
    # As above; it runs its own event loop, as the server does.
    from flyte_binary.composition.secrets import rotate_key  # noqa: PLC0415

    sys.stdout.write(f"{rotate_key(loaded.config)}\n")
    return 0


def _copy(loaded: Loaded, command: str, folder: Path) -> int:
    _refuse_unusable(loaded, address=False)
    from flyte_binary.composition.backups import backup, restore  # noqa: PLC0415 - as above

    if command == "backup":
        copied = backup(loaded.config, folder)
        said = f"{folder} holds the database, the keys and {copied.files:,} files ({copied.size_bytes:,} bytes)."
        said += " It contains secrets and their key: keep it as safe as the data folder."
        if loaded.config.secret.key_file is not None:
            said += f" The key of the secrets is elsewhere, in {loaded.config.secret.key_file}, and not in the copy."
    else:
        copied = restore(loaded.config, folder)
        said = f"{loaded.config.data_dir} is restored, with {copied.files:,} files ({copied.size_bytes:,} bytes)."
    sys.stdout.write(f"{said}\n")
    return 0


def _check_config(loaded: Loaded) -> int:
    _refuse_unusable(loaded, address=False)
    from flyte_binary.config.show import show  # noqa: PLC0415 - as above

    sys.stdout.write(show(loaded))
    return 0


def _version() -> int:
    parts = [f"Python {platform.python_version()}"]
    for package in ("flyteidl2", "flyte"):
        try:
            parts.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            parts.append(f"no {package}")
    sys.stdout.write(f"{PROGRAM} {__version__} ({', '.join(parts)})\n")
    return 0


def _refuse_unusable(loaded: Loaded, *, address: bool) -> None:
    from flyte_binary.config.errors import ConfigError  # noqa: PLC0415 - as above
    from flyte_binary.config.paths import check_address, check_paths  # noqa: PLC0415 - as above

    problems = check_paths(loaded.config, loaded.origins)
    if address:
        problems += check_address(loaded.config, loaded.origins)
    if problems:
        raise ConfigError(problems)
