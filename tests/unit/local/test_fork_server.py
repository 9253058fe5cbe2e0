"""Forked attempts: as a cold process would be, and none the worse for what happens to the processes around them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import sysconfig
import venv
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from flyte_binary.executor.backend import AttemptPhase, AttemptSpec
from tests.fakes.local_attempts import DEADLINE_SECONDS, Attempts

pytestmark = [
    pytest.mark.linux,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
    pytest.mark.asyncio(loop_scope="module"),
]

DUMP = """
import json, locale, logging, os, resource, signal, sys, tempfile, threading

def where(fd):
    path = os.readlink(f"/proc/self/fd/{fd}")
    return path if path.startswith("/dev") else path.split(":")[0]

def kind(handler):
    return type(handler).__name__ if callable(handler) and not isinstance(handler, signal.Handlers) else str(handler)

print("DUMP" + json.dumps({
    "environ": dict(os.environ),
    "cwd": os.getcwd(),
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "path": sys.path,
    "flags": repr(sys.flags),
    "executable": [sys.executable, sys.prefix, sys.base_prefix],
    "main": [sys.modules["__main__"].__name__, sys.modules["__main__"].__file__],
    "signals": {s.name: kind(signal.getsignal(s)) for s in signal.Signals if s.name not in ("SIGKILL", "SIGSTOP")},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "streams": [
        [s.encoding, s.errors, s.line_buffering, s.write_through, type(s.buffer).__name__]
        for s in (sys.stdout, sys.stderr)
    ],
    "standard": [where(fd) for fd in (0, 1, 2)],
    "session": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "umask": os.umask(0o22),
    "limits": [resource.getrlimit(r) for r in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_AS)],
    "locale": [locale.getlocale(), sys.getfilesystemencoding()],
    "temporary": tempfile.gettempdir(),
    "oom": open("/proc/self/oom_score_adj").read(),
    "nice": os.nice(0),
    "loggers": {
        name: [logging.getLogger(name).level, [type(h).__name__ for h in logging.getLogger(name).handlers]]
        for name in ("", "flyte", "flyte.user")
    },
    "daemons": sorted(t.daemon for t in threading.enumerate()),
    "ours": sorted(m for m in sys.modules if "flyte_binary" in m and not m.startswith("flyte_binary_program")),
    "hash_seed": os.environ.get("PYTHONHASHSEED"),
    "status": [l for l in open("/proc/self/status") if l.startswith(("SigIgn", "SigBlk"))],
}))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attempts]:
    attempts = Attempts(tmp_path_factory.mktemp("forked"))
    await attempts.backend.start()
    yield attempts
    await attempts.backend.stop_serving()


@pytest_asyncio.fixture(loop_scope="module")
async def attempts(served: Attempts) -> AsyncIterator[Attempts]:
    yield served
    await served.clear()


async def dump_of(attempts: Attempts, spec: AttemptSpec) -> dict[str, object]:
    """What the attempt printed about itself, its own folders left out."""
    state = await attempts.run(spec)
    lines = await attempts.lines(spec.id)
    assert state.exit_code == 0, lines
    text = next(line for line in lines if line.startswith("DUMP")).removeprefix("DUMP")
    for path, name in ((attempts.folder, "<folder>"), (Path(spec.id.action.name), "<action>")):
        text = text.replace(f"{path}", name)
    return json.loads(text)


async def test_user_code_sees_the_same_in_a_forked_and_in_a_cold_process(attempts: Attempts, tmp_path: Path) -> None:
    cold = Attempts(tmp_path, "cold")
    await cold.backend.start()
    try:
        extra = {"env": {"MY_VARIABLE": "mine", "TZ": "Asia/Tokyo", "USER_LOG_LEVEL": "10"}}
        expected = await dump_of(cold, cold.leaf(DUMP, **extra))
        await cold.clear()
    finally:
        await cold.backend.stop_serving()

    spec = attempts.leaf(DUMP, **extra)
    seen = await dump_of(attempts, spec)
    assert await was_forked(attempts, spec)
    assert seen == expected


async def was_forked(attempts: Attempts, spec: AttemptSpec) -> bool:
    """A cold start takes longer than 0.5 s of CPU time for its imports; a forked one starts behind them."""
    folder = attempts.settings.attempts / "flytesnacks/development/r1" / spec.id.action.name / "1"
    ended = json.loads((folder / "exit.json").read_text())
    return ended["user_seconds"] < 0.4


@pytest.mark.parametrize(
    "env", [{"PYTHONHASHSEED": "7"}, {"FSSPEC_S3_KEY": "k"}, {"FLYTE_IO_BATCH_SIZE": "3"}, {"LOG_LEVEL": "10"}]
)
async def test_what_is_read_at_import_is_honoured_by_a_cold_process(attempts: Attempts, env: dict[str, str]) -> None:
    spec = attempts.leaf("import os; print('hash', hash('flyte'), os.getpid())", env=env)
    state = await attempts.run(spec)

    assert state.exit_code == 0
    assert not await was_forked(attempts, spec)


async def test_two_forked_attempts_draw_different_random_numbers(attempts: Attempts) -> None:
    code = "import random, uuid; print('drawn', random.random(), uuid.uuid4())"
    specs = [attempts.leaf(code) for _ in range(2)]
    drawn = []
    for spec in specs:
        await attempts.run(spec)
        drawn += [line for line in await attempts.lines(spec.id) if line.startswith("drawn")]

    assert len(set(drawn)) == 2


async def test_a_leaf_imports_nothing_but_its_own_module(attempts: Attempts) -> None:
    """What was there before the fork is frozen, so the garbage collector knows what came after it."""
    spec = attempts.leaf(
        "import gc, sys\nyoung = {id(one) for one in gc.get_objects()}\n"
        "print('late', *sorted(name for name, module in sys.modules.items() if id(module) in young))"
    )
    await attempts.run(spec)

    (line,) = [line for line in await attempts.lines(spec.id) if line.startswith("late")]
    assert line.split() == ["late", "__main__", "leaf"]


async def test_a_module_that_fails_to_import_is_reported_by_the_sdk(attempts: Attempts) -> None:
    spec = attempts.leaf(module="import no_such_module_at_all\n")
    state = await attempts.run(spec)

    assert state.exit_code == 1
    assert (attempts.outputs / spec.id.action.name / "1/error.pb").exists()
    text = "".join(await attempts.lines(spec.id))
    assert "no_such_module_at_all" in text
    assert "flyte_binary_program" not in text and "forkserver.py" not in text, "the traceback is the user's"


async def test_atexit_handlers_and_threads_of_user_code_run_to_their_end(attempts: Attempts) -> None:
    spec = attempts.leaf(
        "import atexit, threading, time\natexit.register(print, 'at exit')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    )
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    assert lines.index("thread\n") < lines.index("at exit\n")


async def test_multiprocessing_works_in_a_forked_attempt(attempts: Attempts) -> None:
    module = (
        "import flyte, multiprocessing\nenv = flyte.TaskEnvironment(name='leaf_env')\n\n"
        "def square(n):\n    return n * n\n\n"
        "@env.task\nasync def run() -> None:\n"
        "    for method in ('spawn', 'fork', 'forkserver'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool:\n"
        "            print(method, pool.map(square, range(4)))\n"
    )
    spec = attempts.leaf(module=module)
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    assert [line for line in lines if line.startswith(("spawn", "fork"))] == [
        f"{method} [0, 1, 4, 9]\n" for method in ("spawn", "fork", "forkserver")
    ], lines


async def test_a_synchronous_call_of_the_sdk_works_in_a_forked_attempt(attempts: Attempts) -> None:
    spec = attempts.leaf(
        "import flyte, threading\nfrom flyte.syncify import syncify\n\n@syncify\nasync def answer():\n    return 42\n\n"
        "print('answer', answer())"
    )
    await attempts.run(spec)

    assert "answer 42\n" in await attempts.lines(spec.id)


async def test_clients_of_the_sdk_come_to_life_when_they_are_needed(attempts: Attempts) -> None:
    spec = attempts.leaf(
        "from flyte._initialize import get_client\nclient = get_client()\n"
        "print('client', type(client).__name__, type(client.run_service).__name__)\n"
        "print(client.console.run_url('p', 'd', 'r'))\n"
        "try:\n    client.no_such_service\nexcept AttributeError as error:\n    print('error', error)"
    )
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    assert "client ClientSet RunServiceClient\n" in lines, lines
    assert "http://127.0.0.1:9/v2/domain/d/project/p/runs/r\n" in lines
    assert "error 'ClientSet' object has no attribute 'no_such_service'\n" in lines


async def test_attempts_outlive_their_fork_server_and_keep_their_status(attempts: Attempts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    specs = [
        attempts.leaf(
            f"import os, time\nprint('parent', os.getppid(), flush=True)\n"
            f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nos._exit({status})"
        )
        for status in (3, 4)
    ]
    for spec in specs:
        await attempts.backend.launch(spec)
    for spec in specs:
        await attempts.printed(spec, "parent")
    page = await attempts.backend.read(specs[0].id, 0, limit_lines=9)
    (parent,) = [int(line.text.split()[1]) for line in page.lines if line.text.startswith("parent")]
    os.kill(parent, signal.SIGKILL)

    after = attempts.leaf("print('after')")
    assert (await attempts.run(after)).exit_code == 0
    for spec in specs:
        assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.RUNNING
    go.touch()
    assert [(await attempts.ended(spec)).exit_code for spec in specs] == [3, 4]


async def test_a_storm_of_kills_of_the_fork_server_loses_no_launch(attempts: Attempts) -> None:
    specs = [attempts.leaf("print('ran')") for _ in range(12)]

    async def kill_now_and_then() -> None:
        for _ in range(3):
            await asyncio.sleep(0.05)
            for pid in _fork_servers_of(attempts):
                os.kill(pid, signal.SIGKILL)

    killing = asyncio.create_task(kill_now_and_then())
    await asyncio.gather(*(attempts.backend.launch(spec) for spec in specs))
    await killing
    states = [await attempts.ended(spec) for spec in specs]

    assert [state.exit_code for state in states] == [0] * 12
    for spec in specs:
        assert (await attempts.lines(spec.id)).count("ran\n") == 1


def _fork_servers_of(attempts: Attempts) -> list[int]:
    """Children of the supervisor that are no attempts, by the log that they write to."""
    log = str(attempts.settings.folder / "fork-server.log")
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and str((entry / "fd/1").readlink()) == log:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def test_processes_that_left_the_group_are_gone_after_a_stop(attempts: Attempts) -> None:
    spec = attempts.leaf(
        "import os, subprocess, sys, time\n"
        "daemon = subprocess.Popen([sys.executable, '-c', 'import os, time\\n"
        'if os.fork(): os._exit(0)\\nos.setsid()\\nprint(f"daemon {os.getpid()}.", flush=True)\\ntime.sleep(600)\'])\n'
        "daemon.wait()\ntime.sleep(600)"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, ".\n")
    await attempts.backend.stop(spec.id, grace_seconds=5)
    await attempts.ended(spec)

    line = next(line for line in await attempts.lines(spec.id) if line.startswith("daemon"))
    assert not _exists(line.split()[1].strip("."))


async def test_daemons_of_a_finished_attempt_are_gone_and_those_of_another_live_on(attempts: Attempts) -> None:
    daemon = (
        "import os, subprocess, sys, time\n"
        "pid = subprocess.Popen(['sleep', '600'], start_new_session=True).pid\nprint(f'daemon {pid}.', flush=True)\n"
    )
    living = attempts.leaf(daemon + "time.sleep(600)")
    await attempts.backend.launch(living)
    await attempts.printed(living, ".\n")
    finished = attempts.leaf(daemon)
    assert (await attempts.run(finished)).exit_code == 0

    assert not _exists(await _daemon_of(attempts, finished))
    page = await attempts.backend.read(living.id, 0, limit_lines=10)
    (pid,) = [line.text.split()[1].strip(".\n") for line in page.lines if line.text.startswith("daemon")]
    assert _exists(pid)


async def _daemon_of(attempts: Attempts, spec: AttemptSpec) -> str:
    line = next(line for line in await attempts.lines(spec.id) if line.startswith("daemon"))
    return line.split()[1].strip(".")


async def test_an_attempt_whose_supervisor_was_killed_is_absent_and_its_process_gone(attempts: Attempts) -> None:
    spec = attempts.leaf("import os, time\nprint(f'pid {os.getpid()}.', flush=True)\ntime.sleep(600)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, ".\n")
    page = await attempts.backend.read(spec.id, 0, limit_lines=10)
    (pid,) = [int(line.text.split()[1].strip(".\n")) for line in page.lines if line.text.startswith("pid")]
    os.kill(_supervisor_of(attempts), signal.SIGKILL)

    state = await attempts.until(spec, AttemptPhase.ABSENT)
    assert state.started_at is not None and "killed" in state.reason
    async with asyncio.timeout(DEADLINE_SECONDS):
        while _exists(pid):  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)
    await attempts.backend.launch(spec)
    assert (await attempts.backend.observe(spec.id, spec.nonce)).phase is AttemptPhase.ABSENT, "no second process"
    assert (await attempts.run(attempts.leaf("print('goes on')"))).exit_code == 0


def _supervisor_of(attempts: Attempts) -> int:
    log = str(attempts.settings.folder / "supervisor.log")
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and str((entry / "fd/1").readlink()) == log:
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError("there is no supervisor")


async def test_another_environment_runs_and_its_fork_server_is_replaced_when_its_packages_change(
    tmp_path: Path,
) -> None:
    """One that has the SDK and not this project, as the user's own has."""
    python = _environment_with_the_sdk(tmp_path / "venv")
    own = Attempts(tmp_path, interpreter=python)
    code = (
        "import importlib.util, sys\n"
        "print('here', sys.prefix, importlib.util.find_spec('flyte_binary') is None, flush=True)"
    )
    interpreter = await own.backend.start()
    try:
        first = own.leaf(code)
        assert (await own.run(first)).exit_code == 0
        assert f"here {tmp_path / 'venv'} True\n" in await own.lines(first.id)
        assert await was_forked(own, first)
        (before,) = _fork_servers_of(own)
        (packages,) = interpreter.folders
        (packages / "new-1.0.dist-info").mkdir()
        assert (await own.run(own.leaf(code))).exit_code == 0
        (after,) = _fork_servers_of(own)
        assert after != before

        (tmp_path / "venv/bin/a0").unlink()
        cold = own.leaf(code)
        assert (await own.run(cold)).exit_code == 0
        assert not await was_forked(own, cold)
    finally:
        await own.clear()
        await own.backend.stop_serving()


async def test_an_environment_that_starts_threads_of_its_own_gets_cold_processes(tmp_path: Path) -> None:
    python = _environment_with_the_sdk(tmp_path / "venv")
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    (packages / "thread.pth").write_text(
        "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
    )
    own = Attempts(tmp_path, interpreter=python)
    await own.backend.start()
    try:
        spec = own.leaf("print('ran')")
        assert (await own.run(spec)).exit_code == 0
        assert "ran\n" in await own.lines(spec.id)
        assert not await was_forked(own, spec)
    finally:
        await own.clear()
        await own.backend.stop_serving()


def _environment_with_the_sdk(folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "sdk.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    script = folder / "bin/a0"
    script.write_text(f"#!{python}\nimport sys\nfrom flyte._bin.runtime import main\nsys.exit(main())\n")
    script.chmod(0o755)
    return python


def _exists(pid: int | str) -> bool:
    return Path(f"/proc/{pid}").exists()
