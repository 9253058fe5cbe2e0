"""Shared reads: one read for a change however many watch, and nothing that changed is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from flyte_binary.domain.topics import Key, Topic
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import BATCH_LIMIT, KEPT_VALUES, SharedWatches
from tests.waiting import until

TOPIC: Topic = ("run", "p", "d", "r")


class Rows:
    """What the reads see, and how often they look."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.values: dict[Key, int] = {}
        self.reads: list[list[Key]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def read(self, topic: Topic, keys: Collection[Key]) -> dict[Key, int]:
        assert topic == TOPIC
        self.reads.append(list(keys))
        seen = dict(self.values)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return {key: seen[key] for key in keys if key in seen}

    def change(self, key: str, value: int) -> None:
        self.values[key,] = value
        self._hub.publish([(TOPIC, (key,))])


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def rows(hub: Hub) -> Rows:
    return Rows(hub)


@pytest.fixture
def watches(hub: Hub, rows: Rows) -> SharedWatches[int]:
    return SharedWatches(hub, rows.read)


async def test_a_change_costs_one_read_for_a_hundred_watchers(watches: SharedWatches[int], rows: Rows) -> None:
    seen: list[int] = []

    async def follow() -> None:
        with watches.open(TOPIC) as watch:
            while (value := (await watch.next())["a",]) != 3:
                seen.append(value)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(follow())
        for value in (1, 2, 3):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            rows.change("a", value)
            expected = 100 * min(value, 2)
            await until(lambda expected=expected: len(seen) == expected)

    assert seen.count(1) == 100
    assert seen.count(2) == 100
    assert len(rows.reads) == 3


async def test_ten_thousand_changes_on_three_keys_cost_a_busy_watcher_three_reads(
    watches: SharedWatches[int], rows: Rows
) -> None:
    with watches.open(TOPIC) as watch:
        for number in range(10_000):
            rows.change("abc"[number % 3], number)
        found = await watch.next()

    assert found == {("a",): 9999, ("b",): 9997, ("c",): 9998}
    assert sum(len(keys) for keys in rows.reads) == 3


async def test_a_change_during_a_read_is_read_again(watches: SharedWatches[int], rows: Rows) -> None:
    with watches.open(TOPIC) as watch:
        rows.gate.clear()
        rows.change("a", 1)
        first = asyncio.ensure_future(watch.next())
        await until(lambda: rows.reads)
        rows.change("a", 2)
        rows.gate.set()

        assert await first == {("a",): 1}
        assert await watch.next() == {("a",): 2}


async def test_who_asks_after_a_change_does_not_get_the_read_from_before(
    watches: SharedWatches[int], rows: Rows
) -> None:
    with watches.open(TOPIC) as early, watches.open(TOPIC) as late:
        rows.values["a",] = 1
        rows.gate.clear()
        before = asyncio.ensure_future(early.read([("a",)]))
        await until(lambda: rows.reads)
        rows.change("a", 2)
        after = asyncio.ensure_future(late.read([("a",)]))
        await asyncio.sleep(0)
        rows.gate.set()

        assert await before == {("a",): 1}
        assert await after == {("a",): 2}


async def test_a_watcher_that_leaves_does_not_end_the_read_of_the_others(
    watches: SharedWatches[int], rows: Rows
) -> None:
    with watches.open(TOPIC) as one, watches.open(TOPIC) as other:
        rows.values["a",] = 1
        rows.gate.clear()
        leaving = asyncio.ensure_future(one.read([("a",)]))
        staying = asyncio.ensure_future(other.read([("a",)]))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        rows.gate.set()

        assert await staying == {("a",): 1}
        assert leaving.cancelled()
        assert len(rows.reads) == 1


async def test_a_failed_read_is_told_to_all_and_tried_again(watches: SharedWatches[int], rows: Rows) -> None:
    with watches.open(TOPIC) as one, watches.open(TOPIC) as other:
        rows.values["a",] = 1
        rows.error = RuntimeError("no disk")
        answers = await asyncio.gather(one.read([("a",)]), other.read([("a",)]), return_exceptions=True)
        assert [str(answer) for answer in answers] == ["no disk", "no disk"]

        rows.error = None
        assert await one.read([("a",)]) == {("a",): 1}


async def test_other_keys_do_not_wake_a_watch_for_one(watches: SharedWatches[int], rows: Rows) -> None:
    with watches.open(TOPIC) as watch:
        waiting = asyncio.ensure_future(watch.next(only=[("a",)]))
        for number in range(50):
            rows.change("b", number)
            await asyncio.sleep(0)
        assert not rows.reads
        rows.change("a", 1)

        assert await waiting == {("a",): 1}


async def test_what_is_gone_is_left_out(watches: SharedWatches[int], rows: Rows) -> None:
    with watches.open(TOPIC) as watch:
        rows.change("a", 1)
        del rows.values["a",]
        assert await watch.next() == {}


async def test_many_keys_come_in_batches_and_do_not_stay_in_memory(watches: SharedWatches[int], rows: Rows) -> None:
    count = BATCH_LIMIT * 3
    with watches.open(TOPIC) as watch:
        for number in range(count):
            rows.change(f"{number}", number)
        found: dict[Key, int] = {}
        while len(found) < count:
            found |= await watch.next()
        kept = len(watches._feeds[TOPIC]._kept)  # the bound is the point

    assert [len(keys) for keys in rows.reads[:3]] == [BATCH_LIMIT] * 3
    assert kept <= KEPT_VALUES


async def test_nothing_is_left_subscribed_when_the_last_watcher_leaves(
    hub: Hub, watches: SharedWatches[int], rows: Rows
) -> None:
    with watches.open(TOPIC), watches.open(TOPIC):
        assert hub.subscribers(TOPIC) == 3  # two watchers, and one for the values that are kept
    assert hub.subscribers(TOPIC) == 0

    with pytest.raises(RuntimeError), watches.open(TOPIC):
        raise RuntimeError
    assert hub.subscribers(TOPIC) == 0
