"""A cold attempt of one of the SDK's programs: what its own command would be, but for what `local_files.py` and
`forwarded_prefix.py` change."""

from __future__ import annotations

import os
import runpy
import sys

from . import forwarded_prefix, local_files

_MODULE = "-m"


def command(python: str, argv: list[str]) -> list[str]:
    """What to execute instead of `argv`, which is a script of the SDK, or `python -m` and a module of it."""
    entry = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    return [python, entry, "cold", *(argv[1:] if argv[1:2] == [_MODULE] else argv)]


def main(arguments: list[str]) -> int:
    """The program leaves by `SystemExit`, or an exception that the interpreter then prints."""
    local_files.install()
    forwarded_prefix.install()
    sys.orig_argv[:] = [sys.executable, *arguments]
    if arguments[0] == _MODULE:
        sys.argv[:] = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = arguments
        sys.path.insert(0, os.path.dirname(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0
