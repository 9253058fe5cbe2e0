"""The pool in which a store does its blocking calls."""

from __future__ import annotations

import asyncio
import threading

import pytest

from flyte_binary.storage.threads import StoreThreads

DEADLINE_SECONDS = 10


async def test_no_more_calls_run_at_once_than_there_are_threads() -> None:
    threads, running, release = StoreThreads(2), threading.Semaphore(0), threading.Event()

    def call() -> None:
        running.release()
        release.wait(DEADLINE_SECONDS)

    calls = [asyncio.create_task(threads.run(call)) for _ in range(3)]
    for _ in range(2):
        assert await asyncio.to_thread(running.acquire, timeout=DEADLINE_SECONDS)
    assert not running.acquire(blocking=False)
    release.set()
    await asyncio.gather(*calls)
    threads.close()


async def test_a_call_that_hangs_does_not_keep_a_server_that_stops() -> None:
    threads, begun, release = StoreThreads(1), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        release.wait(DEADLINE_SECONDS)

    hanging = asyncio.create_task(threads.run(call))
    waiting = asyncio.create_task(threads.run(call))
    await asyncio.to_thread(begun.wait, DEADLINE_SECONDS)
    threads.close(wait=False)  # which would take as long as the call otherwise
    assert not release.is_set() and not hanging.done()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    await hanging
