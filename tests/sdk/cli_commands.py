"""A program: prints each command of the installed `flyte` as a line, its words with blanks between them.

Commands that are made of the programs in the current folder are left out; the group that makes them is a line instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from flyte.cli.main import main

OF_FILES = {"run", "build", "deploy", "serve"}
OF_THE_SERVER = {"deployed-task"}
"""Made of what the server knows."""


def commands(command: click.Command, context: click.Context, words: tuple[str, ...] = ()) -> Iterator[str]:
    if words[:1] and words[0] in OF_FILES:
        yield " ".join(words)
    if not isinstance(command, click.Group):
        if words[0] not in OF_FILES:
            yield " ".join(words)
        return
    for name in command.list_commands(context):
        if name in OF_THE_SERVER:
            yield " ".join((*words, name))
            continue
        try:
            below = command.get_command(context, name)
        except click.ClickException:  # the example of an app lacks a package
            continue
        if below is not None:
            yield from commands(below, click.Context(below, parent=context, info_name=name), (*words, name))


if __name__ == "__main__":
    sys.stdout.write("\n".join(commands(main, click.Context(main))) + "\n")
