"""What every source of logs promises, run against local processes, living and ended."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from flyte_binary.executor.backend import AttemptPhase
from flyte_binary.executor.local.log_files import MAX_LINE_BYTES
from tests.fakes.local_attempts import DEADLINE_SECONDS, Attempts

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLATFORMS = [pytest.param("cold", marks=pytest.mark.linux), "portable"]


@pytest_asyncio.fixture(params=PLATFORMS, scope="module", loop_scope="module")
async def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attempts]:
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


async def test_output_and_errors_stand_in_one_log_in_their_order(attempts: Attempts) -> None:
    spec = attempts.code("import sys\nfor n in range(3):\n    print('out', n)\n    print('err', n, file=sys.stderr)")
    await attempts.run(spec)

    assert await attempts.lines(spec.id) == [f"{stream} {n}\n" for n in range(3) for stream in ("out", "err")]


async def test_lines_are_seen_while_the_process_runs_with_the_time_they_came(attempts: Attempts) -> None:
    began = datetime.now(UTC)
    spec = attempts.code("import time\nprint('first')\ntime.sleep(0.3)\nprint('second')\ntime.sleep(600)")
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "second")
    page = await attempts.backend.read(spec.id, 0, limit_lines=10)

    assert [line.text for line in page.lines] == ["first\n", "second\n"]
    assert not page.ended
    first, second = (line.at for line in page.lines)
    assert began - timedelta(seconds=1) <= first
    assert timedelta(seconds=0.15) < second - first < timedelta(seconds=DEADLINE_SECONDS)


async def test_a_page_ends_where_the_next_begins(attempts: Attempts) -> None:
    spec = attempts.code("for n in range(10): print(n)")
    await attempts.run(spec)

    assert await attempts.lines(spec.id, limit_lines=3) == [f"{n}\n" for n in range(10)]


async def test_unicode_comes_through(attempts: Attempts) -> None:
    spec = attempts.code("print('Grüße, мир, 你好, \\U0001f680')")
    await attempts.run(spec)

    assert await attempts.lines(spec.id) == ["Grüße, мир, 你好, \U0001f680\n"]


async def test_bytes_that_are_no_text_do_not_stop_the_reading(attempts: Attempts) -> None:
    spec = attempts.code("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe broken\\nfine\\n')")
    await attempts.run(spec)

    assert await attempts.lines(spec.id) == ["\ufffd\ufffd broken\n", "fine\n"]


async def test_a_last_line_without_a_newline_gets_one(attempts: Attempts) -> None:
    spec = attempts.code("print('one\\ntwo', end='')")
    await attempts.run(spec)

    assert await attempts.lines(spec.id) == ["one\n", "two\n"]


async def test_a_line_that_is_not_finished_waits_for_its_end(attempts: Attempts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    spec = attempts.code(
        f"import os, time\nprint('whole')\nprint('half', end='', flush=True)\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint(' and half')"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "whole")
    before = await attempts.backend.read(spec.id, 0, limit_lines=10)
    go.touch()
    await attempts.ended(spec)

    assert [line.text for line in before.lines] == ["whole\n"]
    assert await attempts.lines(spec.id) == ["whole\n", "half and half\n"]


async def test_an_endless_line_comes_in_pieces_that_cut_no_character(attempts: Attempts) -> None:
    spec = attempts.code("print('€' * 100_000)")
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    assert "".join(line.removesuffix("\n") for line in lines) == "€" * 100_000
    assert len(lines) > 1
    assert all(len(line.encode()) <= MAX_LINE_BYTES + 1 for line in lines)


async def test_what_is_printed_right_before_a_hard_exit_is_kept(attempts: Attempts) -> None:
    spec = attempts.code("import os\nprint('last words')\nos._exit(3)")
    await attempts.run(spec)

    assert await attempts.lines(spec.id) == ["last words\n"]


async def test_a_grandchild_that_holds_the_output_does_not_hold_up_the_end(attempts: Attempts) -> None:
    spec = attempts.code("import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\nprint('done')")
    if attempts.kind == "portable":  # out of reach there: it must at least end, and this ends it
        spec = attempts.code(
            "import subprocess\nsubprocess.Popen(['sleep', '3'], start_new_session=True)\nprint('done')"
        )
    state = await attempts.run(spec)

    assert state.exit_code == 0
    assert await attempts.lines(spec.id) == ["done\n"]


async def test_200_000_lines_are_cheap(attempts: Attempts) -> None:
    spec = attempts.code("for n in range(200_000): print(n)")
    await attempts.run(spec)
    began = time.process_time()
    lines = await attempts.lines(spec.id, limit_lines=5000)
    reading = time.process_time() - began
    began = time.process_time()
    position = await attempts.backend.tail_position(spec.id, lines=1000)
    finding = time.process_time() - began

    assert lines == [f"{n}\n" for n in range(200_000)]
    assert position is not None
    page = await attempts.backend.read(spec.id, position, limit_lines=2000)
    assert [line.text for line in page.lines] == [f"{n}\n" for n in range(199_000, 200_000)]
    assert reading < 10, "about 2 µs a line on an idle machine"
    assert finding < reading / 5, "the end is found from the end"
    index = attempts.settings.attempts / "flytesnacks/development/r1" / spec.id.action.name / "1/output.index"
    assert index.stat().st_size < 16 * 20_000, "one entry a stretch of time, not one a line"


async def test_times_never_go_back(attempts: Attempts) -> None:
    spec = attempts.code("import time\nfor n in range(20):\n    print(n)\n    time.sleep(0.007)")
    await attempts.run(spec)
    page = await attempts.backend.read(spec.id, 0, limit_lines=100)
    later = await attempts.backend.read(spec.id, 10, limit_lines=100)

    times = [line.at for line in page.lines]
    assert all(one <= other for one, other in itertools.pairwise(times))
    assert len(set(times)) > 5
    assert [line.at for line in later.lines] == times[5:], "the same line has the same time, wherever reading began"


@pytest.mark.parametrize(("lines", "expected"), [(0, []), (2, ["8\n", "9\n"]), (50, [f"{n}\n" for n in range(10)])])
async def test_the_tail_has_the_last_lines(attempts: Attempts, lines: int, expected: list[str]) -> None:
    spec = attempts.code("for n in range(10): print(n)")
    await attempts.run(spec)
    position = await attempts.backend.tail_position(spec.id, lines=lines)

    assert position is not None
    page = await attempts.backend.read(spec.id, position, limit_lines=100)
    assert [line.text for line in page.lines] == expected
    assert page.ended


async def test_an_unknown_attempt_has_no_log(attempts: Attempts) -> None:
    spec = attempts.code("")

    assert await attempts.backend.tail_position(spec.id, lines=10) is None
    page = await attempts.backend.read(spec.id, 0, limit_lines=10)
    assert page.lines == [] and page.ended


async def test_a_log_over_its_limit_is_cut_with_a_visible_line_and_keeps_its_end(attempts: Attempts) -> None:
    spec = attempts.code(
        "for n in range(100_000): print('line', n)\nraise ValueError('the cause')", log_limit_bytes=50_000
    )
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    marks = [n for n, line in enumerate(lines) if line.startswith("[flyte-binary]")]
    assert len(marks) == 2
    assert "50000 bytes" in lines[marks[0]]
    assert lines[: marks[0]] == [f"line {n}\n" for n in range(marks[0])]
    assert sum(map(len, lines[: marks[0]])) <= 50_000
    assert lines[-1] == "ValueError: the cause\n"
    assert sum(map(len, lines)) < 50_000 + 128 * 1024


async def test_a_small_excess_loses_nothing(attempts: Attempts) -> None:
    spec = attempts.code("for n in range(1000): print('line', n)", log_limit_bytes=5_000)
    await attempts.run(spec)
    lines = await attempts.lines(spec.id)

    assert [line for line in lines if line.startswith("line")] == [f"line {n}\n" for n in range(1000)]
    assert sum(line.startswith("[flyte-binary]") for line in lines) == 1


async def test_the_log_goes_on_where_it_was_after_a_restart(attempts: Attempts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    spec = attempts.code(
        f"import os, time\nprint('before')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('after')"
    )
    await attempts.backend.launch(spec)
    await attempts.printed(spec, "before")
    page = await attempts.backend.read(spec.id, 0, limit_lines=10)
    await attempts.restart()
    go.touch()
    await attempts.ended(spec)
    rest = await attempts.backend.read(spec.id, page.position, limit_lines=10)

    assert [line.text for line in rest.lines] == ["after\n"]
    assert rest.ended


async def test_waiting_returns_when_a_line_comes_and_when_the_attempt_ends(attempts: Attempts, tmp_path: Path) -> None:
    line, end = tmp_path / "line", tmp_path / "end"
    spec = attempts.code(
        f"import os, time\nwhile not os.path.exists({str(line)!r}): time.sleep(0.01)\nprint('come')\n"
        f"while not os.path.exists({str(end)!r}): time.sleep(0.01)"
    )
    await attempts.backend.launch(spec)
    await attempts.until(spec, AttemptPhase.RUNNING)
    waiting = asyncio.create_task(attempts.backend.wait(spec.id, 0, timeout_seconds=DEADLINE_SECONDS))
    await asyncio.sleep(0)
    assert not waiting.done()
    line.touch()
    async with asyncio.timeout(DEADLINE_SECONDS / 2):
        await waiting
    page = await attempts.backend.read(spec.id, 0, limit_lines=10)
    assert [one.text for one in page.lines] == ["come\n"]

    waiting = asyncio.create_task(attempts.backend.wait(spec.id, page.position, timeout_seconds=DEADLINE_SECONDS))
    end.touch()
    async with asyncio.timeout(DEADLINE_SECONDS / 2):
        await waiting
    await attempts.ended(spec)
    assert (await attempts.backend.read(spec.id, page.position, limit_lines=10)).ended


async def test_waiting_ends_with_its_time(attempts: Attempts) -> None:
    spec = attempts.code("import time; time.sleep(600)")
    await attempts.backend.launch(spec)
    async with asyncio.timeout(DEADLINE_SECONDS):
        await attempts.backend.wait(spec.id, 0, timeout_seconds=0.05)

    assert (await attempts.backend.read(spec.id, 0, limit_lines=10)).lines == []


async def test_what_a_refused_attempt_was_refused_for_is_its_log(attempts: Attempts) -> None:
    spec = replace(attempts.command("/bin/true"), bundle_uri="/no/where.tar.gz")
    await attempts.run(spec)

    (line,) = await attempts.lines(spec.id)
    assert "/no/where.tar.gz" in line
