"""Workers over the queue: passes, failures, the way out."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from flyte_binary.control.controller import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, Controller
from tests.fakes.clock import in_virtual_time


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield
    structlog.reset_defaults()


def test_a_pass_that_wants_to_come_back_does_and_one_that_does_not_is_forgotten() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        passes: list[float] = []

        async def reconcile(key: str) -> float | None:
            passes.append(loop.time())
            return 10.0 if len(passes) < 3 else None

        controller: Controller[str] = Controller("test", reconcile, workers=2)
        controller.queue.add("a")
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(1000)
        running.cancel()
        await asyncio.wait({running})
        return [moment - passes[0] for moment in passes]

    assert in_virtual_time(scenario()) == pytest.approx([0, 10, 20], abs=0.1)


def test_a_pass_that_fails_comes_back_after_a_growing_time_and_starts_afresh_after_a_success() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        passes: list[float] = []

        async def reconcile(key: str) -> float | None:
            passes.append(loop.time())
            if len(passes) in (11, 14):
                return 100.0 if len(passes) == 11 else None
            raise RuntimeError("no")

        controller: Controller[str] = Controller("test", reconcile, workers=1)
        controller.queue.add("a")
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(10_000)
        running.cancel()
        await asyncio.wait({running})
        return [after - before for before, after in itertools.pairwise(passes)]

    first, longest = FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS
    growing = [min(first * 2**number, longest) for number in range(10)]
    assert growing[-1] == longest
    assert in_virtual_time(scenario()) == pytest.approx([*growing, 100, first, first * 2], abs=0.1)


def test_a_change_brings_a_key_back_before_its_time() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        passes: list[float] = []

        async def reconcile(key: str) -> float | None:
            passes.append(loop.time())
            return 60.0

        controller: Controller[str] = Controller("test", reconcile, workers=1)
        controller.queue.add("a")
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(1)
        controller.queue.add("a")
        await asyncio.sleep(65)
        running.cancel()
        await asyncio.wait({running})
        return [moment - passes[0] for moment in passes]

    assert in_virtual_time(scenario()) == pytest.approx([0, 1, 61], abs=0.1)


def test_many_workers_never_work_on_one_key_at_the_same_time() -> None:
    async def scenario() -> tuple[int, int, Counter[str]]:
        inside: Counter[str] = Counter()
        most, together = 0, 0
        passes: Counter[str] = Counter()

        async def reconcile(key: str) -> float | None:
            nonlocal most, together
            inside[key] += 1
            most, together = max(most, inside[key]), max(together, inside.total())
            await asyncio.sleep(1)
            inside[key] -= 1
            passes[key] += 1
            return None

        controller: Controller[str] = Controller("test", reconcile, workers=8)
        running = asyncio.create_task(controller.run())
        for _ in range(50):
            for key in "abcd":
                controller.queue.add(key)
            await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.wait({running})
        return most, together, passes

    most, together, passes = in_virtual_time(scenario())
    assert (most, together) == (1, 4)
    # 5 s of changes, passes of 1 s: one at once, one for each second in which something changed.
    assert all(5 <= count <= 7 for count in passes.values())


def test_a_change_in_the_middle_of_a_pass_is_never_lost() -> None:
    async def scenario() -> tuple[int, int]:
        state = 0
        seen = -1

        async def reconcile(key: str) -> float | None:
            nonlocal seen
            reading = state
            await asyncio.sleep(1)
            seen = reading
            return None

        controller: Controller[str] = Controller("test", reconcile, workers=2)
        running = asyncio.create_task(controller.run())
        for _ in range(20):
            state += 1
            controller.queue.add("a")
            await asyncio.sleep(0.3)
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.wait({running})
        return state, seen

    state, seen = in_virtual_time(scenario())
    assert seen == state


def test_cancelling_finishes_the_pass_that_is_under_way_and_starts_no_other() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        begun: list[str] = []
        finished: list[str] = []

        async def reconcile(key: str) -> float | None:
            begun.append(key)
            await asyncio.sleep(2)
            finished.append(key)
            return None

        controller: Controller[str] = Controller("test", reconcile, workers=1)
        controller.queue.add("a")
        controller.queue.add("b")
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait({running})
        return begun, finished

    assert in_virtual_time(scenario()) == (["a"], ["a"])


def test_a_pass_that_does_not_end_does_not_keep_the_controller_from_stopping() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()

        async def reconcile(key: str) -> float | None:
            await asyncio.sleep(100_000)
            return None

        controller: Controller[str] = Controller("test", reconcile, workers=1)
        controller.queue.add("a")
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(1)
        began = loop.time()
        running.cancel()
        await asyncio.wait({running})
        return loop.time() - began

    assert in_virtual_time(scenario()) < 10
