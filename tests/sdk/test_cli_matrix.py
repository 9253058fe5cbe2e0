"""Each command of the installed command line is run by a test of this folder, or stands here with a reason."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sdk.sdk import client_environment

HERE = Path(__file__).parent

_DOCKER = "starts a container with the reference backend; no call reaches a server"
NOT_RUN = {
    "serve hello": "its image has packages, which tests do not fetch; `programs/apps.py` has apps of its kind",
    "proxy app": "adds a token of a login to requests, which this server does not ask for",
    "delete devbox": _DOCKER,
    "get devbox": _DOCKER,
    "start devbox": _DOCKER,
    "stop devbox": _DOCKER,
    "prefetch hf-model": "downloads a model from a service on the Internet",
    "start tui": "a full-screen program, which asks what `get run`, `get action`, `get io` and `get logs` ask",
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All that the installed command line has."""
    empty = tmp_path_factory.mktemp("empty")
    done = subprocess.run(
        [sys.executable, str(HERE / "cli_commands.py")],
        cwd=empty,
        env=client_environment(empty),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_each_command_is_run_by_a_test_or_has_a_reason(commands: list[str]) -> None:
    typed = list(typed_commands())
    run = {command for command in commands if any(is_typed(command.split(), words) for words in typed)}

    assert {"run", "get run", "abort action", "deploy"} <= run, "commands are found in the tests"
    assert [command for command in commands if command not in run and command not in NOT_RUN] == []


def test_no_reason_is_out_of_date(commands: list[str]) -> None:
    typed = list(typed_commands())
    gone = [command for command in NOT_RUN if command not in commands]
    run = [command for command in NOT_RUN if any(is_typed(command.split(), words) for words in typed)]

    assert (gone, run) == ([], [])


def is_typed(command: list[str], words: list[str]) -> bool:
    """The command's words come first but for options of `flyte` itself, as `--output-format json`; those of `run` stand
    before what is run."""
    while words[:1] == ["--output-format"]:
        words = words[2:]
    if command[0] == "run":
        return words[:1] == ["run"] and set(command[1:]) <= set(words[1:])
    return words[: len(command)] == command


def typed_commands() -> Iterator[list[str]]:
    """What the tests give to `flyte(...)`, word by word, and to `flyte.all(...)`, as texts of words."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            match node.func:
                case ast.Name(id="flyte"):
                    yield [text_of(argument) for argument in node.args]
                case ast.Attribute(value=ast.Name(id="flyte"), attr="all"):
                    yield from (text_of(argument).split() for argument in node.args)
                case _:
                    pass


def text_of(node: ast.expr) -> str:
    """A text as it stands in the test; what is only known when it runs is a question mark."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) for part in parts)
        case _:
            return "?"
