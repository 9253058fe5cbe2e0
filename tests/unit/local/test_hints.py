from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.local.changes import Changes
from flyte_binary.executor.local.hints import Hints
from flyte_binary.executor.local.program import files
from tests.fakes.local_attempts import Attempts

ID = ActionId("p", "d", "r", "a0").attempt(1)


async def test_a_hint_reaches_the_server_and_the_next_server_on_the_same_pipe(tmp_path: Path) -> None:
    for _ in range(2):
        heard: asyncio.Queue[str] = asyncio.Queue()
        hints = Hints(tmp_path / "hints", heard.put_nowait)
        hints.open()
        files.send_hint(str(tmp_path / "hints"), "one")
        files.send_hint(str(tmp_path / "hints"), "two")
        async with asyncio.timeout(5):
            assert [await heard.get(), await heard.get()] == ["one", "two"]
        hints.close()


def test_a_hint_without_a_server_is_lost_without_a_complaint(tmp_path: Path) -> None:
    files.send_hint(str(tmp_path / "none"), "x")
    os.mkfifo(tmp_path / "hints")
    files.send_hint(str(tmp_path / "hints"), "x")


async def test_a_pipe_that_nobody_reads_holds_up_no_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hints")
    reader = os.open(tmp_path / "hints", os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(2000):
        files.send_hint(str(tmp_path / "hints"), "x" * 100)
    os.close(reader)


async def test_a_file_in_the_place_of_the_pipe_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "hints").write_text("left by a copy of the folder")
    hints = Hints(tmp_path / "hints", lambda _name: None)
    hints.open()
    assert (tmp_path / "hints").is_fifo()
    hints.close()


async def test_a_listener_hears_each_attempt_once_however_often_it_changed() -> None:
    changes = Changes()
    with changes.listener() as listener:
        for _ in range(10_000):
            changes.tell(ID)
        other = ID.action.attempt(2)
        changes.tell(other)
        changes.close()
        assert [attempt async for attempt in listener] == [ID, other]


async def test_a_change_during_the_handling_of_one_is_heard_again() -> None:
    changes = Changes()
    with changes.listener() as listener:
        changes.tell(ID)
        heard = 0
        async for _ in listener:
            heard += 1
            if heard == 1:
                changes.tell(ID)
            else:
                changes.close()
    assert heard == 2


async def test_listening_after_the_close_ends_at_once() -> None:
    changes = Changes()
    changes.close()
    with changes.listener() as listener:
        assert [attempt async for attempt in listener] == []


@pytest.mark.linux
async def test_a_lost_hint_is_found_by_the_scan(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path, "cold", scan_interval=timedelta(seconds=0.05))
    await attempts.backend.start()
    try:
        spec = attempts.command("/bin/sh", "-c", "rm -f ../../../../../../../hints; exit 4")
        assert (await attempts.run(spec)).exit_code == 4
        assert not attempts.settings.hints.exists()
    finally:
        await attempts.clear()
        await attempts.backend.stop_serving()
