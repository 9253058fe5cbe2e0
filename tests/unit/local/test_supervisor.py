"""The supervisor when things go wrong around it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from flyte_binary.executor.backend import AttemptPhase
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.local.program import files, platforms
from flyte_binary.executor.local.program.loop import Loop
from flyte_binary.executor.local.program.output import Output
from flyte_binary.executor.local.program.supervised import Supervised
from tests.fakes.local_attempts import DEADLINE_SECONDS, Attempts

pytestmark = [pytest.mark.linux, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]


@pytest_asyncio.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    attempts = Attempts(tmp_path, "cold")
    await attempts.backend.start()
    yield attempts
    await attempts.clear()
    await attempts.backend.stop_serving()


async def test_a_status_that_cannot_be_written_now_is_written_later(attempts: Attempts) -> None:
    """As with a full disk: the attempt stays alive for the server until its end is on the disk."""
    spec = attempts.code("import os; os.mkdir('../exit.json.tmp'); print('blocked', flush=True); os._exit(6)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "blocked")
    async with asyncio.timeout(DEADLINE_SECONDS):
        while _child_lives(attempts, spec.id.action.name):  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)
    assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.RUNNING
    (Folders(attempts.settings.attempts).path(spec.id) / "exit.json.tmp").rmdir()

    assert (await attempts.ended(spec)).exit_code == 6


def _child_lives(attempts: Attempts, action: str) -> bool:
    folder = attempts.settings.attempts / "flytesnacks/development/r1" / action / "1"
    started = files.read_json(str(folder / files.STARTED))
    return started is not None and Path(f"/proc/{started['pid']}").exists()


async def test_a_folder_that_was_removed_under_a_running_attempt_harms_no_other(attempts: Attempts) -> None:
    victim = attempts.code("import os, shutil; shutil.rmtree(os.path.dirname(os.getcwd()))")
    other = attempts.code("import time; print('up', flush=True); time.sleep(600)")
    await attempts.backend.launch(other)
    await attempts.printed(other, "up")
    await attempts.run(victim)

    assert (await attempts.backend.observe(other.id, other.nonce)).phase is AttemptPhase.RUNNING
    assert (await attempts.run(attempts.code(""))).exit_code == 0


async def test_memory_that_children_share_with_their_parent_counts_once(attempts: Attempts) -> None:
    spec = attempts.code(
        "import os, time\nhoard = b'x' * (150 << 20)\nfor _ in range(4):\n"
        "    if os.fork() == 0:\n        time.sleep(1)\n        os._exit(0)\nfor _ in range(4): os.wait()",
        memory_limit_bytes=400 << 20,
    )

    assert (await attempts.run(spec)).exit_code == 0


async def test_an_attempt_that_is_stopped_before_it_runs_never_runs_on(attempts: Attempts) -> None:
    spec = attempts.command("/bin/sleep", "600")
    launching = asyncio.create_task(attempts.backend.launch(spec))
    folder = Folders(attempts.settings.attempts).path(spec.id)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not (folder / files.ATTEMPT).exists():  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
    await attempts.backend.stop(spec.id, grace_seconds=5)
    await launching

    assert (await attempts.ended(spec)).exit_code == -signal.SIGTERM


async def test_a_supervisor_that_is_asked_to_end_ends_its_attempts_first(attempts: Attempts) -> None:
    spec = attempts.code("import os, time; print(f'parent {os.getppid()}.', flush=True); time.sleep(600)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, ".\n")
    (line,) = await _lines_now(attempts, spec.id.action.name)
    supervisor = int(line.split()[1].strip("."))
    os.kill(supervisor, signal.SIGTERM)
    state = await attempts.ended(spec)

    assert state.exit_code == -signal.SIGTERM
    assert "asked to end" in state.reason


async def _lines_now(attempts: Attempts, action: str) -> list[str]:
    text = (attempts.settings.attempts / "flytesnacks/development/r1" / action / "1/output.log").read_text()
    return text.splitlines()


class FakeHost:
    def __init__(self, *, memory_kill: bool) -> None:
        self.loop = Loop()
        self.platform = platforms.choose("portable")
        self.hints = "/no/pipe"
        self._memory_kill = memory_kill

    def killed_for_memory(self) -> bool:
        return self._memory_kill


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    os.mkfifo(tmp_path / files.CONTROL)
    yield tmp_path
    signal.set_wakeup_fd(-1)


@pytest.mark.parametrize(("memory_kill", "sentence"), [(True, "ran out of memory"), (False, "SIGKILL")])
def test_a_kill_by_the_kernel_for_memory_is_called_that(folder: Path, memory_kill: bool, sentence: str) -> None:
    host = FakeHost(memory_kill=memory_kill)
    order = {"folder": str(folder), "name": "n", "memory_limit": None, "log_limit": 1000}
    attempt = Supervised(host, order, os.open(folder, os.O_RDONLY))
    done: list[Supervised] = []
    attempt.begin(os.getpid())
    attempt.end(-signal.SIGKILL, {})
    attempt.finish(done.append)
    host.loop.close()

    status = files.read_json(str(folder / files.EXIT))
    assert status is not None and done == [attempt]
    assert (status["out_of_memory"], sentence in status["reason"]) == (memory_kill, True)


def test_a_full_disk_does_not_hold_up_the_output(tmp_path: Path) -> None:
    output = Output(str(tmp_path), 10_000)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, output._log)
    os.close(full)
    output.write(b"lost\n" * 100, 2.0)
    output.close(3.0)

    assert (tmp_path / files.LOG).read_bytes() == b""
