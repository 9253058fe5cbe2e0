"""QueueService and StateService: what a task without `_U_USE_ACTIONS=1` talks to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.common import phase_pb2
from flyteidl2.task import run_pb2
from flyteidl2.workflow import queue_service_pb2, run_definition_pb2, state_service_pb2
from flyteidl2.workflow.queue_service_connect import QueueServiceClient
from flyteidl2.workflow.state_service_connect import StateServiceClient
from google.rpc import code_pb2

from flyte_binary.domain.phases import Phase
from tests.fakes.manual_clock import ManualClock
from tests.rpc.actions_internal.world import CHILD, ROOT, RUN, World, condition, task


def enqueue(**fields: Any) -> queue_service_pb2.EnqueueActionRequest:
    fields = {
        "action_id": CHILD.to_proto(),
        "parent_action_name": "a0",
        "input_uri": "/store/r1/child/inputs.pb",
        "run_output_base": "/store/r1",
        "group": "g",
        **fields,
    }
    return queue_service_pb2.EnqueueActionRequest(**fields)


async def refused(call: Any, code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code
    return caught.value.message


async def test_a_task_is_enqueued_with_all_that_came_with_it(queue: QueueServiceClient, world: World) -> None:
    await queue.enqueue_action(enqueue(task=task()))

    row = await world.row()
    assert (row.phase, row.parent, row.action_group) == (Phase.QUEUED, "a0", "g")
    assert (row.input_uri, row.run_output_base) == ("/store/r1/child/inputs.pb", "/store/r1")
    assert row.function_name == "env.leaf"


async def test_the_same_action_twice_is_already_there(queue: QueueServiceClient) -> None:
    await queue.enqueue_action(enqueue(task=task()))

    await refused(queue.enqueue_action(enqueue(task=task())), Code.ALREADY_EXISTS)


async def test_a_trace_is_recorded(queue: QueueServiceClient, world: World) -> None:
    trace = run_definition_pb2.TraceAction(name="step", phase=phase_pb2.ACTION_PHASE_SUCCEEDED)

    await queue.enqueue_action(enqueue(trace=trace))

    assert (await world.row()).phase is Phase.SUCCEEDED


async def test_a_condition_that_carries_its_spec_is_opened(queue: QueueServiceClient, world: World) -> None:
    await queue.enqueue_action(enqueue(condition=condition()))

    assert (await world.row()).phase is Phase.PAUSED


async def test_a_condition_that_lost_its_spec_on_this_path_tells_the_user_what_to_set(
    queue: QueueServiceClient, world: World
) -> None:
    message = await refused(queue.enqueue_action(enqueue()), Code.INVALID_ARGUMENT)

    assert "_U_USE_ACTIONS=1" in message
    assert await world.find(CHILD) is None


async def test_an_action_without_a_place_for_its_outputs_is_refused(queue: QueueServiceClient, world: World) -> None:
    message = await refused(queue.enqueue_action(enqueue(task=task(), run_output_base="")), Code.INVALID_ARGUMENT)

    assert "run_output_base" in message
    assert await world.find(CHILD) is None


async def test_a_run_spec_of_a_root_is_kept(queue: QueueServiceClient, world: World) -> None:
    root = RUN.__class__(RUN.project, RUN.domain, "r2").root()
    spec = run_pb2.RunSpec(max_action_concurrency=3)

    await queue.enqueue_action(enqueue(action_id=root.to_proto(), parent_action_name="", task=task(), run_spec=spec))

    assert run_pb2.RunSpec.FromString((await world.row(root)).run_spec or b"") == spec


async def test_aborting_a_run_ends_all_of_it_with_the_reason(queue: QueueServiceClient, world: World) -> None:
    await world.insert(CHILD)

    await queue.abort_queued_run(queue_service_pb2.AbortQueuedRunRequest(run_id=RUN.to_proto(), reason="enough"))

    root = await world.row(ROOT)
    assert (root.phase, root.abort_reason) == (Phase.ABORTED, "enough")
    assert (await world.row(CHILD)).phase is Phase.ABORTED


async def test_aborting_an_action_leaves_its_parent(queue: QueueServiceClient, world: World) -> None:
    await world.insert(CHILD)
    request = queue_service_pb2.AbortQueuedActionRequest(action_id=CHILD.to_proto(), reason="enough")

    await queue.abort_queued_action(request)
    await queue.abort_queued_action(request)

    assert (await world.row(CHILD)).phase is Phase.ABORTED
    assert (await world.row(ROOT)).phase is Phase.RUNNING


async def test_what_does_not_exist_cannot_be_aborted(queue: QueueServiceClient) -> None:
    request = queue_service_pb2.AbortQueuedActionRequest(action_id=RUN.action("nobody").to_proto())
    await refused(queue.abort_queued_action(request), Code.NOT_FOUND)
    await refused(queue.abort_queued_run(queue_service_pb2.AbortQueuedRunRequest()), Code.INVALID_ARGUMENT)
    await refused(queue.abort_queued_action(queue_service_pb2.AbortQueuedActionRequest()), Code.INVALID_ARGUMENT)


async def test_a_watch_shows_what_is_then_a_sentinel_then_what_becomes(
    state: StateServiceClient, queue: QueueServiceClient, world: World
) -> None:
    await world.insert(CHILD)
    watch = state.watch(state_service_pb2.WatchRequest(parent_action_id=ROOT.to_proto()))

    snapshot = [await _next(watch), await _next(watch)]
    sentinel = await _next(watch)
    await queue.enqueue_action(enqueue(action_id=RUN.action("later").to_proto(), task=task()))
    change = await _next(watch)

    assert [update.action_update.action_id.name for update in snapshot] == ["a0", "child"]
    assert sentinel.control_message.sentinel
    assert change.action_update.action_id.name == "later"
    assert change.action_update.phase == phase_pb2.ACTION_PHASE_QUEUED


async def test_a_watch_of_nothing_names_the_field(state: StateServiceClient) -> None:
    watch = state.watch(state_service_pb2.WatchRequest())

    assert "parent_action_id" in await refused(_next(watch), Code.INVALID_ARGUMENT)


async def test_the_state_of_an_action_is_its_status_as_json(
    state: StateServiceClient, world: World, clock: ManualClock
) -> None:
    await world.insert(CHILD, phase=Phase.SUCCEEDED, attempts=2, ended_at=clock.now() + 1_500_000)

    answer = await state.get(state_service_pb2.GetRequest(action_id=CHILD.to_proto()))

    assert answer.status.code == code_pb2.OK
    assert answer.action_id == CHILD.to_proto()
    document = json.loads(answer.state)
    assert (document["phase"], document["attempts"]) == ("ACTION_PHASE_SUCCEEDED", 2)
    assert document["durationMs"] == "1500"


async def test_the_state_of_an_action_that_is_not_there_is_not_found_inside_the_answer(
    state: StateServiceClient,
) -> None:
    answer = await state.get(state_service_pb2.GetRequest(action_id=CHILD.to_proto()))

    assert (answer.status.code, answer.state) == (code_pb2.NOT_FOUND, "")


async def test_nobody_sets_the_state_of_an_action_from_outside(state: StateServiceClient) -> None:
    request = state_service_pb2.PutRequest(action_id=CHILD.to_proto(), state="{}")

    assert "UpdateActionStatus" in await refused(state.put(request), Code.UNIMPLEMENTED)


async def _next(watch: AsyncIterator[state_service_pb2.WatchResponse]) -> state_service_pb2.WatchResponse:
    async with asyncio.timeout(5):
        return await anext(watch)
