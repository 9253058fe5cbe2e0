"""The queue of keys, on its own."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.control.workqueue import WorkQueue
from tests.fakes.clock import in_virtual_time


async def taken(queue: WorkQueue[str]) -> list[str]:
    return [await queue.get() for _ in range(len(queue))]


async def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a", "a", "b"):
        queue.add(key)

    assert await taken(queue) == ["a", "b"]


async def test_a_key_that_is_being_worked_on_is_not_handed_out_and_comes_again_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    meanwhile = len(queue)
    queue.done("a")

    assert meanwhile == 0
    assert await taken(queue) == ["a"]


async def test_a_key_that_was_not_added_again_is_forgotten_when_it_is_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.done(await queue.get())

    assert queue.idle


async def test_a_worker_that_waits_is_woken_by_a_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    _done, pending = await asyncio.wait(waiting, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)

    assert sorted(task.result() for task in waiting if task.done()) == ["a", "b"]
    for task in pending:
        task.cancel()


async def test_a_key_is_not_lost_with_a_worker_that_is_cancelled_as_it_comes() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()

    assert await asyncio.wait_for(second, 5) == "a"


def test_a_timer_adds_its_key_when_the_time_has_come() -> None:
    async def scenario() -> float:
        queue: WorkQueue[str] = WorkQueue()
        began = asyncio.get_running_loop().time()
        queue.add_after("a", 60)
        await queue.get()
        return asyncio.get_running_loop().time() - began

    assert in_virtual_time(scenario()) == pytest.approx(60, abs=0.1)


def test_a_later_timer_of_a_key_replaces_the_earlier_one() -> None:
    async def scenario() -> list[float]:
        queue: WorkQueue[str] = WorkQueue()
        began = asyncio.get_running_loop().time()
        queue.add_after("a", 10)
        queue.add_after("a", 60)
        queue.add_after("b", 5)
        queue.forget_timer("b")
        await queue.get()
        return [asyncio.get_running_loop().time() - began, float(len(queue))]

    assert in_virtual_time(scenario()) == pytest.approx([60, 0], abs=0.1)


def test_a_timer_that_is_due_during_a_pass_brings_the_key_back_after_it() -> None:
    async def scenario() -> tuple[int, int]:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        await queue.get()
        queue.add_after("a", 1)
        await asyncio.sleep(2)
        during = len(queue)
        queue.done("a")
        return during, len(queue)

    assert in_virtual_time(scenario()) == (0, 1)


async def test_closing_cancels_the_timers() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0)
    assert queue.due_in("a") == 0
    queue.close()
    await asyncio.sleep(0.001)

    assert queue.idle and queue.due_in("a") is None


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from("abc")), max_size=60))
def test_whatever_happens_no_key_is_worked_on_twice_at_once_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue()
        working: set[str] = set()
        owed: set[str] = set()
        for step, key in steps:
            if step == "add":
                queue.add(key)
                owed.add(key)
            elif step == "take" and len(queue):
                took = await queue.get()
                assert took not in working
                working.add(took)
                owed.discard(took)
            elif step == "done" and key in working:
                working.discard(key)
                queue.done(key)
        for key in sorted(working):
            queue.done(key)
        assert set(await taken(queue)) == owed

    asyncio.run(scenario())
