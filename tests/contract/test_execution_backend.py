"""What every execution backend promises, run against local processes: forked, cold, and without what only Linux has."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from flyte_binary.domain.errors import Unavailable
from flyte_binary.executor.backend import AttemptPhase
from tests.fakes.local_attempts import DEADLINE_SECONDS, Attempts, tarball

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = [pytest.param("forked", marks=pytest.mark.linux), pytest.param("cold", marks=pytest.mark.linux), "portable"]


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attempts]:
    """One backend for the whole module, since a fork server takes a second to start."""
    if request.param != "portable" and sys.platform != "linux":
        pytest.skip("needs Linux")
    attempts = Attempts(tmp_path_factory.mktemp(request.param), request.param)
    await attempts.backend.start()
    yield attempts
    await attempts.backend.stop_serving()


@pytest_asyncio.fixture(loop_scope="module")
async def attempts(served: Attempts) -> AsyncIterator[Attempts]:
    yield served
    await served.clear()


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('fine')", 0),
        ("import os; os._exit(3)", 3),
        ("import sys; sys.exit(5)", 5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ],
)
async def test_the_exit_status_is_the_processes_own(attempts: Attempts, code: str, expected: int) -> None:
    state = await attempts.run(attempts.code(code))

    assert (state.phase, state.exit_code, state.out_of_memory) == (AttemptPhase.EXITED, expected, False)
    assert state.started_at is not None and state.ended_at is not None
    assert state.started_at <= state.ended_at


async def test_a_killed_process_is_reported_with_its_signal(attempts: Attempts) -> None:
    state = await attempts.run(attempts.code("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))

    assert state.exit_code == -signal.SIGKILL
    assert "SIGKILL" in state.reason
    assert not state.out_of_memory


async def test_what_was_never_launched_is_absent(attempts: Attempts) -> None:
    spec = attempts.code("")

    assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.ABSENT
    await attempts.backend.stop(spec.id, grace_seconds=0)
    await attempts.backend.forget(spec.id)


async def test_another_nonce_does_not_see_the_attempt(attempts: Attempts) -> None:
    spec = attempts.code("")
    await attempts.run(spec)

    assert (await attempts.backend.observe(spec.id, "other")).phase is AttemptPhase.ABSENT


async def test_the_same_launch_twice_is_one_process(attempts: Attempts, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    spec = attempts.code(f"open({str(marks)!r}, 'a').write('ran\\n')")
    await asyncio.gather(*(attempts.backend.launch(spec) for _ in range(5)))
    await attempts.ended(spec)
    await attempts.backend.launch(spec)

    assert (await attempts.ended(spec)).exit_code == 0
    assert marks.read_text() == "ran\n"


async def test_a_launch_with_another_nonce_ends_what_still_runs_and_then_replaces_it(attempts: Attempts) -> None:
    old = attempts.code("import time; print('old', flush=True); time.sleep(600)")
    await attempts.backend.launch(old)
    await attempts.printed(old, "old")
    new = replace(attempts.code("print('new')"), id=old.id, nonce="nonce-2")

    with pytest.raises(Unavailable, match="earlier launch"):
        await attempts.backend.launch(new)
    await attempts.ended(old)
    state = await attempts.run(new)

    assert state.exit_code == 0
    assert "new\n" in await attempts.lines(new.id)


async def test_a_stop_ends_the_process_and_its_children(attempts: Attempts) -> None:
    spec = attempts.code(
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
        "print(f'pids {os.getpid()} {child.pid}.', flush=True)\ntime.sleep(600)"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "pids")
    await attempts.backend.stop(spec.id, grace_seconds=5)
    state = await attempts.ended(spec)

    pids = _pids(await attempts.lines(spec.id))
    assert state.exit_code == -signal.SIGTERM
    assert state.reason == "Stopped on request."
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)


async def test_a_process_that_ignores_the_request_is_killed_after_the_grace(attempts: Attempts) -> None:
    spec = attempts.code(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "deaf")
    await attempts.backend.stop(spec.id, grace_seconds=0.2)

    assert (await attempts.ended(spec)).exit_code == -signal.SIGKILL


async def test_a_second_stop_can_shorten_the_grace(attempts: Attempts) -> None:
    spec = attempts.code(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "deaf")
    await attempts.backend.stop(spec.id, grace_seconds=600)
    await attempts.backend.stop(spec.id, grace_seconds=0)

    assert (await attempts.ended(spec)).exit_code == -signal.SIGKILL


async def test_what_a_process_leaves_in_its_group_is_gone_when_it_has_exited(attempts: Attempts) -> None:
    spec = attempts.code("import subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint(f'pids {child.pid}.')")
    state = await attempts.run(spec)

    assert state.exit_code == 0
    (pid,) = _pids(await attempts.lines(spec.id))
    assert not alive(pid)


async def test_a_process_over_its_memory_limit_is_out_of_memory(attempts: Attempts) -> None:
    spec = attempts.code(
        "import time\nhoard = []\nwhile True:\n    hoard.append(bytearray(8 << 20))\n    time.sleep(0.005)",
        memory_limit_bytes=200 << 20,
    )
    state = await attempts.run(spec)

    assert state.out_of_memory
    assert state.exit_code == -signal.SIGKILL
    assert "200 MiB" in state.reason
    assert any("200 MiB" in line for line in await attempts.lines(spec.id))


async def test_memory_of_children_counts(attempts: Attempts) -> None:
    spec = attempts.code(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c',"
        " 'import time; hoard = b\"x\" * (300 << 20); time.sleep(600)'])",
        memory_limit_bytes=200 << 20,
    )

    assert (await attempts.run(spec)).out_of_memory


async def test_a_running_attempt_tells_its_cpu_time(attempts: Attempts) -> None:
    spec = attempts.code(
        "import time\nwhile time.process_time() < 0.3: pass\nprint('busy', flush=True)\ntime.sleep(600)"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "busy")
    state = await attempts.backend.observe(spec.id, spec.nonce, with_cpu=True)

    assert state.phase is AttemptPhase.RUNNING
    assert state.cpu_seconds is not None
    assert 0.2 < state.cpu_seconds < 60


async def test_a_restarted_server_finds_what_runs_and_sees_it_end(attempts: Attempts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    spec = attempts.code(_wait_for(go, 7))
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "waiting")
    await attempts.restart()

    assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.RUNNING
    await attempts.backend.launch(spec)
    go.touch()
    state = await attempts.ended(spec)

    assert state.exit_code == 7
    assert any("after" in line for line in await attempts.lines(spec.id))


async def test_a_restarted_server_can_stop_what_an_earlier_one_launched(attempts: Attempts) -> None:
    spec = attempts.code("import time; print('up', flush=True); time.sleep(600)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "up")
    await attempts.restart()
    await attempts.backend.stop(spec.id, grace_seconds=5)

    assert (await attempts.ended(spec)).exit_code == -signal.SIGTERM


async def test_what_ended_while_no_server_ran_is_found_with_its_status(attempts: Attempts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    spec = attempts.code(_wait_for(go, 7))
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "waiting")
    await attempts.backend.stop_serving()
    go.touch()
    await _until_file(attempts.settings.attempts, "exit.json")
    await attempts.restart()

    assert (await attempts.ended(spec)).exit_code == 7


def _wait_for(path: Path, status: int) -> str:
    return (
        f"import os, time\nprint('waiting', flush=True)\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"
        f"print('after', flush=True)\nos._exit({status})"
    )


async def _until_file(root: Path, name: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not list(root.rglob(name)):  # noqa: ASYNC110, ASYNC240  # nothing tells of a file while no server runs
            await asyncio.sleep(0.01)


async def test_changes_begin_with_everything_that_exists(attempts: Attempts) -> None:
    specs = [attempts.code("") for _ in range(3)]
    for spec in specs:
        await attempts.run(spec)
    seen = set()
    async with asyncio.timeout(DEADLINE_SECONDS):
        async for attempt in attempts.backend.changed():
            seen.add(attempt)
            if len(seen) == 3:
                break

    assert seen == {spec.id for spec in specs}


async def test_a_forgotten_attempt_leaves_nothing(attempts: Attempts) -> None:
    spec = attempts.code(
        "import os; os.makedirs('deep/er'); open('deep/er/file', 'w').close(); os.chmod('deep', 0o500)"
    )
    await attempts.run(spec)
    await attempts.backend.forget(spec.id)

    assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.ABSENT
    assert [path for path in attempts.settings.attempts.rglob("*") if path.name != ".trash"] == []


async def test_a_running_attempt_is_not_forgotten(attempts: Attempts) -> None:
    spec = attempts.code("import time; print('up', flush=True); time.sleep(600)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "up")

    with pytest.raises(Unavailable, match="still runs"):
        await attempts.backend.forget(spec.id)


async def test_a_command_that_is_not_there_can_never_start(attempts: Attempts) -> None:
    spec = attempts.command("no-such-program-anywhere", "x")
    state = await attempts.run(spec)

    assert state.invalid and state.exit_code is None
    assert "no-such-program-anywhere" in state.reason
    assert any("no-such-program-anywhere" in line for line in await attempts.lines(spec.id))


async def test_a_bundle_that_is_no_tar_can_never_start(attempts: Attempts, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"this is not a tar")
    state = await attempts.run(replace(attempts.leaf(), bundle_uri=str(broken)))

    assert state.invalid
    assert "not a tar archive" in state.reason


async def test_a_bundle_that_is_gone_can_never_start(attempts: Attempts, tmp_path: Path) -> None:
    state = await attempts.run(replace(attempts.leaf(), bundle_uri=str(tmp_path / "gone.tar.gz")))

    assert state.invalid
    assert "gone.tar.gz" in state.reason


async def test_the_process_starts_in_its_own_folder_with_the_bundle_in_it(attempts: Attempts, tmp_path: Path) -> None:
    bundle = tarball(tmp_path / "code.tar.gz", {"helper.py": "VALUE = 5\n", "data/x.txt": "x"})
    spec = attempts.command("/bin/sh", "-c", "ls -A; pwd", "--dest", ".", bundle_uri=str(bundle))
    await attempts.run(spec)

    lines = [line.strip() for line in await attempts.lines(spec.id)]
    assert lines[:3] == [".code.tar.gz.extracted", "data", "helper.py"]
    assert lines[3] == str(attempts.settings.attempts / "flytesnacks/development/r1" / spec.id.action.name / "1/work")


async def test_notices_stand_at_the_head_of_the_log(attempts: Attempts) -> None:
    spec = attempts.code("print('mine')", notices=("GPUs are not assigned here.",))
    await attempts.run(spec)

    assert (await attempts.lines(spec.id))[0] == "[flyte-binary] GPUs are not assigned here.\n"


def _pids(lines: list[str]) -> list[int]:
    line = next(line for line in lines if line.startswith("pids "))
    return [int(word.strip(".\n")) for word in line.split()[1:]]
