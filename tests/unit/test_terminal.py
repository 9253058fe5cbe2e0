"""What the server says and asks at a terminal."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from flyte_binary.terminal import Facts, Quit, ask_to_quit, banner, config_command, is_interactive


@pytest.fixture
def keyboard() -> Iterator[tuple[TextIO, TextIO]]:
    """The program's end, and the end that a person types into."""
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "w", buffering=1) as person:  # noqa: PTH123 - descriptors, not paths
        yield stdin, person


async def ask(running: int, stdin: TextIO, stdout: TextIO, again: asyncio.Event | None = None) -> Quit:
    async with asyncio.timeout(5):
        return await ask_to_quit(running, stdin=stdin, stdout=stdout, again=again or asyncio.Event())


def test_the_banner_says_where_the_server_is_and_how_to_point_the_cli_at_it():
    facts = Facts(
        url="http://127.0.0.1:30080",
        data_dir=Path("/home/me/.flyte-binary"),
        interpreter=Path("/home/me/project/.venv/bin/python"),
        interpreter_note="Python 3.11.7, flyte 2.12.1",
        adopted=1,
    )

    text = banner(facts)

    assert "Address    http://127.0.0.1:30080\n" in text
    assert "Console    http://127.0.0.1:30080/v2\n" in text
    assert "flyte create config --endpoint localhost:30080 --insecure --project flytesnacks" in text
    assert "/home/me/.flyte-binary\n" in text
    assert "under /home/me/project/.venv/bin/python (Python 3.11.7, flyte 2.12.1)\n" in text
    assert "1 task that an earlier start had left running" in text
    assert len(text.splitlines()) <= 8


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://127.0.0.1:30080", "--endpoint localhost:30080 --insecure"),
        ("http://[::1]:8090", "--endpoint localhost:8090 --insecure"),
        ("http://192.0.2.7:8090", "--endpoint 192.0.2.7:8090 --insecure"),
        ("https://flyte.example.com", "--endpoint flyte.example.com --project"),
        ("http://[2001:db8::1]:8090", "--endpoint [2001:db8::1]:8090 --insecure"),
    ],
)
def test_the_command_names_an_endpoint_that_the_cli_takes(url: str, endpoint: str):
    command = config_command(url, project="p", domain="d")
    assert command.startswith(f"flyte create config {endpoint}")
    assert command.endswith("--project p --domain d --builder remote")


async def test_with_no_task_running_there_is_nothing_to_ask(keyboard: tuple[TextIO, TextIO]):
    out = io.StringIO()
    assert await ask(0, keyboard[0], out) is Quit.STOP
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("s\n", Quit.STOP), ("\n", Quit.STOP), ("K\n", Quit.KEEP), (" keep \n", Quit.KEEP), ("c\n", Quit.GO_ON)],
)
async def test_the_answer_decides(typed: str, meant: Quit, keyboard: tuple[TextIO, TextIO]):
    stdin, person = keyboard
    out = io.StringIO()
    person.write(typed)

    assert await ask(3, stdin, out) is meant

    assert "3 tasks still running: [s]top and quit, [k]eep running and quit" in out.getvalue()


async def test_what_is_no_answer_is_asked_again(keyboard: tuple[TextIO, TextIO]):
    stdin, person = keyboard
    out = io.StringIO()
    person.write("what?\nk\n")

    assert await ask(1, stdin, out) is Quit.KEEP

    assert "1 task still running" in out.getvalue()
    assert out.getvalue().count("Please answer s, k or c") == 1


async def test_a_second_interrupt_while_asking_means_stop(keyboard: tuple[TextIO, TextIO]):
    again = asyncio.Event()
    asked = asyncio.create_task(ask(1, keyboard[0], io.StringIO(), again), name="question")
    await asyncio.sleep(0)
    again.set()

    assert await asked is Quit.STOP


async def test_the_end_of_the_input_means_stop(keyboard: tuple[TextIO, TextIO]):
    stdin, person = keyboard
    person.close()

    assert await ask(1, stdin, io.StringIO()) is Quit.STOP


async def test_the_loop_goes_on_while_nobody_answers_and_can_be_asked_again(keyboard: tuple[TextIO, TextIO]):
    stdin, person = keyboard
    asked = asyncio.create_task(ask(1, stdin, io.StringIO()), name="question")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not asked.done()

    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    person.write("c\n")
    assert await ask(1, stdin, io.StringIO()) is Quit.GO_ON


def test_only_a_terminal_on_both_sides_is_interactive():
    leader, follower = os.openpty()
    with open(leader, "rb", 0), open(follower) as terminal:  # noqa: PTH123 - descriptors, not paths
        assert is_interactive(terminal, terminal)
        assert not is_interactive(terminal, io.StringIO())
        assert not is_interactive(io.StringIO(), terminal)
