"""The hub: hints cannot overflow, and cannot be lost."""

from __future__ import annotations

import asyncio

import pytest

from flyte_binary.domain.topics import Topic
from flyte_binary.live.hub import Hub

TOPIC: Topic = ("run", "p", "d", "r")


async def test_ten_thousand_changes_on_three_keys_are_three_keys_to_read() -> None:
    hub = Hub()
    with hub.subscribe(TOPIC) as subscription:
        for number in range(10_000):
            hub.publish([(TOPIC, (f"c{number % 3}",))])

        assert await subscription.wait() == {("c0",), ("c1",), ("c2",)}
        assert subscription.take() == set()


async def test_a_change_between_two_looks_is_in_the_next_one() -> None:
    hub = Hub()
    with hub.subscribe(TOPIC) as subscription:
        hub.publish([(TOPIC, ("c1",))])
        first = await subscription.wait()
        hub.publish([(TOPIC, ("c1",))])

        assert first == {("c1",)}
        assert await asyncio.wait_for(subscription.wait(), 5) == {("c1",)}


async def test_whoever_waits_is_woken_and_only_by_what_it_asked_for() -> None:
    hub = Hub()
    with hub.subscribe(TOPIC) as subscription:
        waiting = asyncio.create_task(subscription.wait())
        await asyncio.sleep(0)
        hub.publish([(("run", "p", "d", "other"), ("c1",))])
        for _ in range(3):
            await asyncio.sleep(0)
        woken_by_others = waiting.done()
        hub.publish([(TOPIC, ("c1",))])

        assert not woken_by_others
        assert await asyncio.wait_for(waiting, 5) == {("c1",)}


async def test_a_wait_that_is_cancelled_loses_no_change() -> None:
    hub = Hub()
    with hub.subscribe(TOPIC) as subscription:
        waiting = asyncio.create_task(subscription.wait())
        await asyncio.sleep(0)
        hub.publish([(TOPIC, ("c1",))])
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert subscription.take() == {("c1",)}


async def test_every_subscriber_hears_of_a_change_and_none_after_it_has_left() -> None:
    hub = Hub()
    with hub.subscribe(TOPIC) as first:
        with hub.subscribe(TOPIC) as second:
            hub.publish([(TOPIC, ("c1",))])
            assert (first.take(), second.take()) == ({("c1",)}, {("c1",)})
        hub.publish([(TOPIC, ("c2",))])

        assert (first.take(), second.take()) == ({("c2",)}, set())
    assert hub.subscribers(TOPIC) == 0
