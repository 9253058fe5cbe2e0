"""Logs while a task runs, and the same afterwards."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk, settled, until

MANY = 200_000
FIRST_LINES = 1000
"""How much of what has been written before a reader is given."""


def numbers(lines: list[str]) -> list[int]:
    return [int(found[1]) for line in lines if (found := re.fullmatch(r" line (\d+)\n", line))]


def test_lines_arrive_while_the_task_runs_and_the_stream_ends_with_it(sdk: Sdk, tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = sdk.start("misbehaving.talks_slowly", release=str(go))
    seen = settled(sdk.begin("tail", run=run, until="before the file", release=str(go)))

    assert " before the file\n" in seen["before"]
    assert [line for line in seen["after"] if "[flyte]" not in line] == [" after the file\n"]


def test_a_last_line_without_an_end_gets_one(sdk: Sdk) -> None:
    run = sdk.run("misbehaving.exits").run

    assert sdk.call("logs", run=run)[-1] == " about to leave\n"


def test_two_hundred_thousand_lines_are_tailed_and_kept(sdk: Sdk, flyte: Flyte) -> None:
    run = sdk.run("misbehaving.talks", lines=MANY).run

    until(lambda: numbers(sdk.call("logs", run=run))[-1:] == [MANY - 1], "the log is there to its end")
    tail = numbers(sdk.call("logs", run=run))
    assert tail == list(range(MANY - len(tail), MANY)), "the last lines, in order, none missing"
    assert len(tail) >= FIRST_LINES - 10, "but for those of the framework"
    shown = flyte("get", "logs", run)
    assert [line for line in shown.out.splitlines() if line.strip() == f"line {MANY - 1}"], shown.text[-500:]


def test_lines_of_a_log_carry_their_time(sdk: Sdk) -> None:
    run = sdk.run("hello.nothing").run

    lines = [line for line in sdk.call("logs", run=run, show_ts=True) if "nothing to return" in line]
    assert len(lines) == 1
    assert re.match(r"\[20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\] nothing to return\n", lines[0])
