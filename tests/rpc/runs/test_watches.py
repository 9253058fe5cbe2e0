"""Watches through a real client: snapshot, then every change, and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from connectrpc.code import Code
from flyteidl2.common import identifier_pb2, list_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_service_pb2 as pb

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ActionId, ProjectId
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import PROJECT, action_id, create, run_id
from tests.rpc.runs.rows import add, run_of, started, stored, to
from tests.rpc.runs.test_create import refused
from tests.waiting import until

T = TypeVar("T")

RUNS = topics.runs(ProjectId("flytesnacks", "development"))


@asynccontextmanager
async def following(stream: AsyncIterator[T]) -> AsyncIterator[Callable[[], Coroutine[None, None, T]]]:
    """The next message of a stream, under a deadline."""

    async def following_message() -> T:
        async with asyncio.timeout(5):
            return await anext(stream)

    yield following_message
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator


async def rest(stream: AsyncIterator[T]) -> list[T]:
    async with asyncio.timeout(5):
        return [message async for message in stream]


async def test_an_action_is_followed_to_its_end_and_the_last_word_is_final(server: Server) -> None:
    root = await started(server, "r1")
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1")))
    async with following(stream) as following_message:
        assert (await following_message()).details.status.phase == Phase.QUEUED
        await to(server, root, Phase.RUNNING, has_logs=True)
        running = (await following_message()).details
        assert running.status.phase == Phase.RUNNING
        assert running.attempts[0].logs_available
        await to(server, root, Phase.SUCCEEDED, prefix="/store/r1/a0/1")
        (last,) = await rest(stream)

    assert last.details.status.phase == Phase.SUCCEEDED
    assert last.details.status.HasField("end_time")
    assert [attempt.phase for attempt in last.details.attempts] == [Phase.SUCCEEDED]
    assert server.hub.subscribers(topics.children(run_of("r1"), "a0")) == 0


async def test_a_watch_of_a_finished_action_is_one_message(server: Server) -> None:
    await to(server, await started(server, "r1"), Phase.FAILED, error="no")
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1")))

    (only,) = await rest(stream)
    assert only.details.error_info.message == "no"


@pytest.mark.parametrize("action_type", [CONDITION, 1])
async def test_an_action_that_ends_without_an_event_ends_its_watch(server: Server, action_type: int) -> None:
    await started(server, "r1")
    waiting = run_of("r1").action("waiting")
    await add(server, waiting, Phase.PAUSED, action_type=action_type)
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1", "waiting")))
    async with following(stream) as following_message:
        await following_message()

        def mark(tx: Transaction) -> None:
            tx.actions.mark_aborted(run_of("r1"), ["waiting"], at=server.clock.now(), reason="enough")
            tx.changed_action(waiting, "a0")

        await server.database.write(mark)
        (last,) = await rest(stream)

    assert last.details.abort_info.reason == "enough"
    assert all(attempt.phase == Phase.ABORTED for attempt in last.details.attempts)


async def test_run_wait_is_told_of_the_end_within_50_ms(server: Server) -> None:
    root = await started(server, "r1")
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1")))
    async with following(stream) as following_message:
        await following_message()
        loop = asyncio.get_running_loop()
        waited: list[float] = []
        waiting = asyncio.create_task(rest(stream))
        await to(server, root, Phase.SUCCEEDED)
        ended = loop.time()
        await waiting
        waited.append(loop.time() - ended)

    assert waited[0] < 0.05


async def test_a_hundred_watchers_of_an_action_cost_one_read_a_change(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await started(server, "r1")
    reads = 0
    read = server.database.read

    async def counted(operation: Callable[[Transaction], T]) -> T:
        nonlocal reads
        reads += 1
        return await read(operation)

    monkeypatch.setattr(server.database, "read", counted)
    streams = [
        server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1"))) for _ in range(100)
    ]
    first = await asyncio.gather(*(anext(stream) for stream in streams))
    assert {message.details.status.phase for message in first} == {Phase.QUEUED}
    reads = 0
    await to(server, root, Phase.RUNNING)
    await asyncio.gather(*(anext(stream) for stream in streams))
    await to(server, root, Phase.SUCCEEDED)
    ends = await asyncio.gather(*(rest(stream) for stream in streams))

    assert all(messages[-1].details.status.phase == Phase.SUCCEEDED for messages in ends)
    assert reads <= 4, "one a change, or two if the change is seen while the first is under way"


async def test_other_actions_of_the_run_send_nothing(server: Server) -> None:
    await started(server, "r1")
    await add(server, run_of("r1").action("b"))
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1")))
    async with following(stream) as following_message:
        await following_message()
        for phase in (Phase.INITIALIZING, Phase.RUNNING, Phase.SUCCEEDED):
            await to(server, run_of("r1").action("b"), phase)
        await to(server, run_of("r1").root(), Phase.RUNNING)

        assert (await following_message()).details.status.phase == Phase.RUNNING


async def test_a_run_is_followed_with_its_spec(server: Server) -> None:
    root = await started(server, "r1")
    stream = server.runs.watch_run_details(pb.WatchRunDetailsRequest(run_id=run_id("r1")))
    async with following(stream) as following_message:
        first = (await following_message()).details
        assert first.run_spec.raw_data_storage.raw_data_prefix == "/store"
        assert first.action.task.short_name == "hello"
        await to(server, root, Phase.FAILED, error="no")
        (last,) = await rest(stream)

    assert last.details.action.error_info.message == "no"


async def test_new_runs_are_shown_at_once(server: Server) -> None:
    await started(server, "r1")
    stream = server.runs.watch_runs(pb.WatchRunsRequest(project_id=PROJECT))
    async with following(stream) as following_message:
        assert [run.action.id.run.name for run in (await following_message()).runs] == ["r1"]
        await started(server, "r2")
        assert [run.action.id.run.name for run in (await following_message()).runs] == ["r2"]
        await to(server, run_of("r1").root(), Phase.RUNNING)
        (changed,) = (await following_message()).runs
        assert (changed.action.id.run.name, changed.action.status.phase) == ("r1", Phase.RUNNING)


async def test_without_runs_the_first_message_is_the_first_run(server: Server) -> None:
    stream = server.runs.watch_runs(pb.WatchRunsRequest(org="127"))
    async with following(stream) as following_message:
        waiting = asyncio.create_task(following_message())
        await until(lambda: server.hub.subscribers(topics.ALL_RUNS))
        await started(server, "r1")
        assert [run.action.id.run.name for run in (await waiting).runs] == ["r1"]


async def test_a_watch_of_a_project_or_a_task_shows_no_others(server: Server) -> None:
    task = task_definition_pb2.TaskIdentifier(
        project="flytesnacks", domain="development", name="env.other", version="v1"
    )
    by_task = server.runs.watch_runs(pb.WatchRunsRequest(task_id=task))
    by_project = server.runs.watch_runs(
        pb.WatchRunsRequest(project_id=identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="staging"))
    )
    other, elsewhere = create("rother"), create("relsewhere")
    other.task_spec.task_template.id.name = "env.other"
    elsewhere.run_id.domain = "staging"
    async with following(by_task) as of_task, following(by_project) as of_project:
        waiting = [asyncio.create_task(of_task()), asyncio.create_task(of_project())]
        await until(lambda: server.hub.subscribers(topics.ALL_RUNS))
        await until(lambda: server.hub.subscribers(topics.runs(ProjectId("flytesnacks", "staging"))))
        await started(server, "r1")
        await server.runs.create_run(other)
        await server.runs.create_run(elsewhere)
        found = await asyncio.gather(*waiting)

    assert [[run.action.id.run.name for run in message.runs] for message in found] == [["rother"], ["relsewhere"]]


async def test_the_snapshot_is_the_hundred_newest_runs(server: Server) -> None:
    for number in range(103):
        await add(server, run_of(f"r{number:03}").root())
        server.clock.advance(seconds=1)
    stream = server.runs.watch_runs(pb.WatchRunsRequest(project_id=PROJECT))
    async with following(stream) as following_message:
        names = [run.action.id.run.name for run in (await following_message()).runs]

    assert names == [f"r{number:03}" for number in range(102, 2, -1)]


async def test_actions_of_a_run_are_followed_as_a_tree(server: Server) -> None:
    await started(server, "r1")
    stream = server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1")))
    async with following(stream) as following_message:
        assert [item.action.id.name for item in (await following_message()).enriched_actions] == ["a0"]
        await add(server, run_of("r1").action("b"))
        news = (await following_message()).enriched_actions
        assert [(item.action.id.name, dict(item.children_phase_counts)) for item in news] == [("a0", {1: 1}), ("b", {})]
        await to(server, run_of("r1").action("b"), Phase.SUCCEEDED)
        news = (await following_message()).enriched_actions
        assert dict(news[0].children_phase_counts) == {1: 0, 5: 1}


async def test_a_watch_of_a_finished_run_with_children_of_the_same_moment_works(server: Server) -> None:
    """The reference backend ends such a stream with `unknown`, because the child's name sorts before the root's."""
    await started(server, "r1")
    for name in ("0", "1"):
        await add(server, run_of("r1").action(name), Phase.SUCCEEDED)
    await to(server, run_of("r1").root(), Phase.SUCCEEDED)
    stream = server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1")))
    async with following(stream) as following_message:
        assert [item.action.id.name for item in (await following_message()).enriched_actions] == ["a0", "0", "1"]


async def test_filters_of_the_tree_are_applied_and_checked(server: Server) -> None:
    await started(server, "r1")
    await add(server, run_of("r1").action("b"), Phase.FAILED)
    await add(server, run_of("r1").action("c"))
    failed = list_pb2.Filter(field="PHASE", function=list_pb2.Filter.VALUE_IN, values=["6"])
    stream = server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1"), filter=[failed]))
    async with following(stream) as following_message:
        assert [item.action.id.name for item in (await following_message()).enriched_actions] == ["a0", "b"]

    wrong = server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1"), filter=[list_pb2.Filter(field="x")]))
    await refused(rest(wrong), Code.INVALID_ARGUMENT)


async def test_a_run_of_thousands_comes_whole_and_a_burst_of_changes_ends_right(server: Server) -> None:
    await started(server, "r1")

    def fan_out(tx: Transaction) -> None:
        for number in range(1500):
            child = run_of("r1").action(f"c{number:04}")
            tx.actions.insert(plain(child, server.clock.now() + number))
            tx.changed_action(child, "a0")

    def finish(tx: Transaction) -> None:
        for number in range(1500):
            child = run_of("r1").action(f"c{number:04}")
            tx.actions.advance(child, Phase.SUCCEEDED, at=server.clock.now())
            tx.changed_action(child, "a0")

    await server.database.write(fan_out)
    stream = server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1")))
    phases: dict[str, int] = {}
    counts: dict[int, int] = {}
    await server.database.write(finish)
    async with following(stream) as following_message:
        while counts.get(5) != 1500:
            for item in (await following_message()).enriched_actions:
                phases[item.action.id.name] = item.action.status.phase
                if item.action.id.name == "a0":
                    counts = dict(item.children_phase_counts)

    assert len(phases) == 1501
    assert set(phases.values()) == {Phase.QUEUED, Phase.SUCCEEDED}


def plain(action: ActionId, moment: int) -> ActionRow:
    return ActionRow(
        id=action,
        parent="a0",
        phase=Phase.QUEUED,
        action_type=1,
        created_at=moment,
        updated_at=moment,
        queued_at=moment,
    )


async def test_groups_are_sent_whole_once_and_then_as_they_change(server: Server) -> None:
    await started(server, "r1")
    server.clock.advance(seconds=1)
    other = create("r2")
    other.task_spec.task_template.id.name = "env.other"
    await server.runs.create_run(other)
    stream = server.runs.watch_groups(pb.WatchGroupsRequest(project_id=PROJECT))
    async with following(stream) as following_message:
        first = await following_message()
        assert first.sentinel
        assert [(group.task_name, group.total_runs) for group in first.task_groups] == [
            ("env.other", 1),
            ("env.hello", 1),
        ]
        await to(server, run_of("r1").root(), Phase.FAILED, error="no")
        news = await following_message()
        assert not news.sentinel
        (group,) = news.task_groups
        assert (group.task_name, group.average_failure_rate, group.error_counts.user_error) == ("env.hello", 1.0, 1)


async def test_groups_of_a_closed_time_are_one_message(server: Server) -> None:
    await started(server, "r1")
    server.clock.advance(seconds=10)
    await started(server, "r2")
    request = pb.WatchGroupsRequest(project_id=PROJECT)
    request.end_date.FromMicroseconds(server.clock.now() - 1)

    (only,) = await rest(server.runs.watch_groups(request))
    assert [status.run_name for group in only.task_groups for status in group.recent_statuses] == ["r1"]
    assert only.sentinel


async def test_groups_of_nothing_say_so(server: Server) -> None:
    stream = server.runs.watch_groups(pb.WatchGroupsRequest(project_id=PROJECT))
    async with following(stream) as following_message:
        first = await following_message()
    assert (list(first.task_groups), first.sentinel) == ([], True)


async def test_cluster_events_of_an_attempt_come_once_each_until_it_ends(server: Server) -> None:
    root = await started(server, "r1")
    await to(server, root, Phase.INITIALIZING, message="starting")
    stream = server.runs.watch_cluster_events(pb.WatchClusterEventsRequest(id=action_id("r1"), attempt=1))
    async with following(stream) as following_message:
        assert [item.message for item in (await following_message()).cluster_events] == ["starting"]
        await to(server, root, Phase.RUNNING, message="running")
        assert [item.message for item in (await following_message()).cluster_events] == ["running"]
        await to(server, root, Phase.SUCCEEDED, message="done")
        (last,) = await rest(stream)

    assert [item.message for item in last.cluster_events] == ["done"]


async def test_a_client_that_leaves_leaves_nothing_behind(server: Server) -> None:
    await started(server, "r1")
    streams = [
        server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1"))),
        server.runs.watch_run_details(pb.WatchRunDetailsRequest(run_id=run_id("r1"))),
        server.runs.watch_runs(pb.WatchRunsRequest(project_id=PROJECT)),
        server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1"))),
        server.runs.watch_groups(pb.WatchGroupsRequest(project_id=PROJECT)),
    ]
    for stream in streams:
        await anext(stream)
    assert server.hub.subscribers(RUNS)
    for stream in streams:
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator

    for topic in (RUNS, topics.run(run_of("r1")), topics.children(run_of("r1"), "a0")):
        await until(lambda topic=topic: not server.hub.subscribers(topic))


async def test_a_server_that_stops_ends_its_watches_cleanly(server: Server) -> None:
    await started(server, "r1")
    streams = [
        server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1"))),
        server.runs.watch_runs(pb.WatchRunsRequest(project_id=PROJECT)),
        server.runs.watch_actions(pb.WatchActionsRequest(run_id=run_id("r1"))),
        server.runs.watch_groups(pb.WatchGroupsRequest(project_id=PROJECT)),
        server.runs.watch_cluster_events(pb.WatchClusterEventsRequest(id=action_id("r1", "b"))),
    ]
    await add(server, run_of("r1").action("b"))
    for stream in streams[:-1]:
        await anext(stream)
    waiting = asyncio.create_task(rest(streams[-1]))
    await until(lambda: server.hub.subscribers(topics.children(run_of("r1"), "b")))
    server.drain.begin()

    assert [await rest(stream) for stream in streams[:-1]] == [[]] * 4
    assert await waiting == []


async def test_states_between_two_messages_may_be_skipped_but_never_the_last(server: Server) -> None:
    root = await started(server, "r1")
    stream = server.runs.watch_action_details(pb.WatchActionDetailsRequest(action_id=action_id("r1")))
    async with following(stream) as following_message:
        await following_message()
        for phase in (Phase.WAITING_FOR_RESOURCES, Phase.INITIALIZING, Phase.RUNNING, Phase.SUCCEEDED):
            await to(server, root, phase)
        messages = await rest(stream)

    phases = [message.details.status.phase for message in messages]
    assert phases == sorted(phases)
    assert phases[-1] == Phase.SUCCEEDED
    assert (await stored(server, root)).phase == Phase.SUCCEEDED
