"""Entry of the processes beside the server; run as a file: `python __main__.py supervisor|forkserver ...`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

NAME = "flyte_binary_program"
"""An unlikely name, since in a forked child these modules stay beside the user's."""


def main(argv: list[str]) -> int:
    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath(folder):
        del sys.path[0]  # or our file names would shadow the user's modules
    package = importlib.util.spec_from_file_location(
        NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if package is None or package.loader is None:
        raise ImportError(f"cannot load {folder}")
    module = importlib.util.module_from_spec(package)
    sys.modules[NAME] = module
    package.loader.exec_module(module)
    return int(importlib.import_module(f"{NAME}.{argv[1]}").main(argv[2:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
