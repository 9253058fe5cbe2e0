from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.dataproxy.dataproxy_service_pb2 import TailLogsRequest, TailLogsResponse
from flyteidl2.logs.dataplane.payload_pb2 import LogLine as WireLine
from flyteidl2.logs.dataplane.payload_pb2 import LogLineOriginator

from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.domain.log_archive import encode
from flyte_binary.domain.logs import LogLine
from tests.rpc.dataproxy.conftest import World, until

ACTION = ActionId("flytesnacks", "development", "r1", "a0")
FIRST = ACTION.attempt(1)
START = datetime(2026, 11, 30, 22, 55, 32, 30002, tzinfo=UTC)


def line(number: int, text: str | None = None) -> LogLine:
    return LogLine(text if text is not None else f"line {number}\n", START + timedelta(milliseconds=number))


def lines(count: int, start: int = 0) -> list[LogLine]:
    return [line(number) for number in range(start, start + count)]


def tail(world: World, attempt: AttemptId = FIRST) -> AsyncIterator[TailLogsResponse]:
    return world.client.tail_logs(TailLogsRequest(action_id=attempt.action.to_proto(), attempt=attempt.number))


async def messages(world: World, attempt: AttemptId = FIRST) -> list[TailLogsResponse]:
    async with asyncio.timeout(10):
        return [message async for message in tail(world, attempt)]


def wire_lines(answers: list[TailLogsResponse]) -> list[WireLine]:
    return [entry for answer in answers for logs in answer.logs for entry in logs.lines]


async def texts(world: World, attempt: AttemptId = FIRST) -> list[str]:
    return [entry.message for entry in wire_lines(await messages(world, attempt))]


def following(world: World, attempt: AttemptId = FIRST) -> asyncio.Task[list[str]]:
    return asyncio.create_task(texts(world, attempt), name="tail")


async def archive(world: World, entries: list[LogLine], attempt: AttemptId = FIRST) -> None:
    """What the executor does at the end of an attempt."""
    uri = f"{world.store.base_uri}/{attempt}/log.gz"
    await world.store.put(uri, encode(entries))
    world.actions.update(attempt, launched=True, over=True, log_uri=uri)


async def waiting(world: World) -> None:
    async with asyncio.timeout(10):
        await world.live.waiting.wait()


async def test_lines_come_with_time_origin_and_newline(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, line(0, "hello\n"), line(1, "no newline"), line(2, "ü\ud800\n"))
    await world.live.end(FIRST)
    one, two, three = wire_lines(await messages(world))
    assert one.timestamp.ToDatetime(UTC) == START
    assert one.originator == LogLineOriginator.USER
    assert (one.message, two.message, three.message) == ("hello\n", "no newline\n", "ü?\n")


async def test_a_running_attempt_is_followed_to_its_end(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *lines(2))
    task = following(world)
    await waiting(world)
    await world.live.write(FIRST, *lines(1, 2))
    await waiting(world)
    assert not task.done()
    await world.live.end(FIRST)
    assert await task == ["line 0\n", "line 1\n", "line 2\n"]


async def test_live_and_archived_the_lines_are_the_same(world: World) -> None:
    entries = [*lines(150), line(200, "progress 1%\rprogress 2%\n"), line(201, "\n"), line(202, "数据\n")]
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *entries)
    await world.live.end(FIRST)
    live = wire_lines(await messages(world))
    await world.live.forget(FIRST)
    await archive(world, entries)
    assert wire_lines(await messages(world)) == live
    assert len(live) == len(entries)


async def test_at_most_a_thousand_lines_are_shown_from_the_start_in_batches_of_a_hundred(world: World) -> None:
    entries = lines(12_345)
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *entries)
    await world.live.end(FIRST)
    live = await messages(world)
    await archive(world, entries)
    archived = await messages(world)
    for answers in (live, archived):
        assert [entry.message for entry in wire_lines(answers)] == [entry.text for entry in entries[-1000:]]
        assert max(len(logs.lines) for answer in answers for logs in answer.logs) == 100


async def test_a_message_of_long_lines_stays_small(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *(line(n, "x" * 300_000 + "\n") for n in range(10)))
    await world.live.end(FIRST)
    answers = await messages(world)
    assert len(wire_lines(answers)) == 10
    assert max(answer.ByteSize() for answer in answers) <= 1024 * 1024 + 1024


async def test_the_tail_of_a_queued_attempt_waits_for_its_start(world: World) -> None:
    world.actions.update(FIRST)
    task = following(world)
    await until(lambda: world.tails.open_tails == 1)
    world.actions.update(ACTION.run_id.action("sibling").attempt(1), launched=True)
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, line(0))
    await world.live.end(FIRST)
    assert await task == ["line 0\n"]


async def test_an_action_that_ends_before_its_start_ends_the_tail(world: World) -> None:
    world.actions.update(FIRST)
    task = following(world)
    await until(lambda: world.tails.open_tails == 1)
    world.actions.update(FIRST, over=True)
    assert await task == []


async def test_a_hit_in_the_cache_has_no_log_and_ends_at_once(world: World) -> None:
    world.actions.update(FIRST, over=True)
    async with asyncio.timeout(1):
        assert await texts(world) == []


async def test_a_log_that_goes_silent_because_its_process_was_lost_ends(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *lines(3))
    task = following(world)
    await waiting(world)
    world.actions.update(FIRST, over=True)  # but the live log never says that it ended
    assert await task == ["line 0\n", "line 1\n", "line 2\n"]


async def test_a_reader_whose_log_is_archived_and_removed_meanwhile_goes_on_in_the_archive(world: World) -> None:
    same_time = [LogLine(f"same {n}\n", line(2).at) for n in range(3)]
    entries = [*lines(2), *same_time, *lines(2, 3)]
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *entries[:4])
    task = following(world)
    await waiting(world)
    await archive(world, entries)
    await world.live.forget(FIRST)
    assert await task == [entry.text for entry in entries]


async def test_a_log_removed_before_its_archive_is_announced_is_waited_for(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, *lines(2))
    task = following(world)
    await waiting(world)
    await world.live.forget(FIRST)
    await archive(world, lines(3))
    assert await task == ["line 0\n", "line 1\n", "line 2\n"]


async def test_each_attempt_has_its_own_log(world: World) -> None:
    await archive(world, [line(0, "first\n")], FIRST)
    await archive(world, [line(0, "second\n")], ACTION.attempt(2))
    assert await texts(world, FIRST) == ["first\n"]
    assert await texts(world, ACTION.attempt(2)) == ["second\n"]


async def test_unknown_attempts_are_not_found_and_attempt_zero_is_invalid(world: World) -> None:
    await archive(world, lines(1))
    for attempt in (ACTION.attempt(2), ActionId("flytesnacks", "development", "r2", "a0").attempt(1)):
        with pytest.raises(ConnectError, match="not found") as caught:
            await texts(world, attempt)
        assert caught.value.code == Code.NOT_FOUND
    with pytest.raises(ConnectError, match="counted from 1") as caught:
        await texts(world, ACTION.attempt(0))
    assert caught.value.code == Code.INVALID_ARGUMENT
    assert world.tails.open_tails == 0


async def test_a_log_that_is_gone_or_damaged_is_said_to_be_so_at_once(world: World) -> None:
    """Not as `not_found`, for which the SDK would try again for ten seconds."""
    await archive(world, lines(1))
    uri = world.actions.attempts[FIRST].log_uri
    await world.store.put(uri, b"not an archive, but long enough to hold a footer of one")
    with pytest.raises(ConnectError, match="footer") as caught:
        await texts(world)
    assert caught.value.code == Code.FAILED_PRECONDITION
    await asyncio.to_thread(Path(uri).unlink)
    with pytest.raises(ConnectError, match="no longer in storage") as caught:
        await texts(world)
    assert caught.value.code == Code.FAILED_PRECONDITION


async def test_too_many_followers_are_refused_and_a_place_is_free_again_when_one_leaves(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, line(0))
    tails = [world.tails.follow(FIRST) for _ in range(3)]
    for generator in tails:
        await anext(generator)
    with pytest.raises(ConnectError, match="3 logs are being followed") as caught:
        await texts(world)
    assert caught.value.code == Code.RESOURCE_EXHAUSTED
    await tails[0].aclose()
    await world.live.end(FIRST)
    assert await texts(world) == ["line 0\n"]
    for generator in tails:
        await generator.aclose()
    assert world.tails.open_tails == 0


async def test_a_client_that_leaves_a_silent_log_is_noticed(world: World) -> None:
    world.actions.update(FIRST, launched=True)
    await world.live.write(FIRST, line(0))
    task = following(world)
    await waiting(world)
    assert world.tails.open_tails == 1
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: world.tails.open_tails == 0)
