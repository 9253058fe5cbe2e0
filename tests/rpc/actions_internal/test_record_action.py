"""InternalRunService.RecordAction: an executor outside tells of an action."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from flyteidl2.common import phase_pb2
from flyteidl2.task import common_pb2
from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow.internal_run_service_connect import InternalRunServiceClient
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import code_pb2

from flyte_binary.domain import topics
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.live.hub import Hub
from tests.rpc.actions_internal.world import CHILD, ROOT, RUN, World, condition, task


def record(**fields: Any) -> internal_pb2.RecordActionRequest:
    fields = {"action_id": CHILD.to_proto(), "parent": "a0", "input_uri": "/in", "group": "g", **fields}
    return internal_pb2.RecordActionRequest(**fields)


async def test_a_recorded_task_is_queued_below_its_parent_and_not_ours_to_launch(
    internal: InternalRunServiceClient, world: World, hub: Hub
) -> None:
    with hub.subscribe(topics.children(RUN, "a0")) as subscription:
        answer = await internal.record_action(record(task=task()))
        assert subscription.take() == {("child",)}

    assert answer.status.code == code_pb2.OK
    assert answer.action_id == CHILD.to_proto()
    row = await world.row()
    assert (row.phase, row.parent, row.attempts, row.action_group) == (Phase.QUEUED, "a0", 1, "g")
    assert (row.function_name, row.short_name, row.task_type) == ("env.leaf", "leaf", "python")
    assert (row.input_uri, row.run_output_base) == ("/in", "")
    assert row.spec_digest is not None


async def test_an_action_that_is_there_is_left_as_it_is(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD, phase=Phase.SUCCEEDED, attempts=3)

    answer = await internal.record_action(record(task=task()))

    assert answer.status.code == code_pb2.OK
    row = await world.row()
    assert (row.phase, row.attempts) == (Phase.SUCCEEDED, 3)


@pytest.mark.parametrize(
    ("reported", "stored"),
    [
        (phase_pb2.ACTION_PHASE_SUCCEEDED, Phase.SUCCEEDED),
        (phase_pb2.ACTION_PHASE_FAILED, Phase.FAILED),
        (phase_pb2.ACTION_PHASE_UNSPECIFIED, Phase.SUCCEEDED),
    ],
)
async def test_a_trace_is_recorded_with_its_own_phase_times_and_outputs(
    internal: InternalRunServiceClient, world: World, reported: Any, stored: Phase
) -> None:
    trace = run_definition_pb2.TraceAction(
        name="step",
        phase=reported,
        start_time=Timestamp(seconds=1_700_000_001),
        end_time=Timestamp(seconds=1_700_000_003),
        outputs=common_pb2.OutputReferences(output_uri="/out/outputs.pb"),
    )

    await internal.record_action(record(trace=trace))

    row = await world.row()
    assert (row.phase, row.action_type) == (stored, run_definition_pb2.ACTION_TYPE_TRACE)
    assert (row.created_at, row.ended_at) == (1_700_000_001_000_000, 1_700_000_003_000_000)
    assert (row.output_uri, row.function_name) == ("/out/outputs.pb", "step")


async def test_a_condition_waits_for_its_signal(internal: InternalRunServiceClient, world: World) -> None:
    await internal.record_action(record(condition=condition()))

    row = await world.row()
    assert (row.phase, row.action_type) == (Phase.PAUSED, run_definition_pb2.ACTION_TYPE_CONDITION)


@pytest.mark.parametrize(
    ("request_", "code", "field"),
    [
        (internal_pb2.RecordActionRequest(), code_pb2.INVALID_ARGUMENT, "action_id"),
        (record(), code_pb2.INVALID_ARGUMENT, "spec is required"),
        (record(parent="", task=task()), code_pb2.INVALID_ARGUMENT, "parent"),
        (record(action_id=ROOT.to_proto(), task=task()), code_pb2.INVALID_ARGUMENT, "parent"),
        (record(parent="nobody", task=task()), code_pb2.NOT_FOUND, "parent"),
        (
            record(action_id=RunId("flytesnacks", "development", "no").action("x").to_proto(), task=task()),
            code_pb2.NOT_FOUND,
            "action_id",
        ),
    ],
)
async def test_what_cannot_be_recorded_is_told_inside_the_answer(
    internal: InternalRunServiceClient,
    world: World,
    request_: internal_pb2.RecordActionRequest,
    code: int,
    field: str,
) -> None:
    answer = await internal.record_action(request_)

    assert answer.status.code == code
    assert field in answer.status.message
    assert await world.find(CHILD) is None


async def test_nothing_unfinished_is_recorded_below_a_parent_that_has_ended(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(RUN.action("done"), phase=Phase.SUCCEEDED)
    trace = run_definition_pb2.TraceAction(name="step", phase=phase_pb2.ACTION_PHASE_SUCCEEDED)

    late_task = await internal.record_action(record(parent="done", task=task()))
    late_trace = await internal.record_action(
        record(action_id=RUN.action("trace").to_proto(), parent="done", trace=trace)
    )

    assert (late_task.status.code, late_trace.status.code) == (code_pb2.ABORTED, code_pb2.OK)
    assert await world.find(CHILD) is None
    assert (await world.row(RUN.action("trace"))).phase is Phase.SUCCEEDED


async def test_a_stream_answers_each_request_in_order_and_outlives_a_bad_one(
    internal: InternalRunServiceClient, world: World
) -> None:
    async def requests() -> AsyncIterator[internal_pb2.RecordActionStreamRequest]:
        for name in ("x1", "", "x2"):
            request = record(action_id=RUN.action(name).to_proto(), task=task())
            yield internal_pb2.RecordActionStreamRequest(request=request)

    answers = [answer.response async for answer in internal.record_action_stream(requests())]

    assert [(answer.action_id.name, answer.status.code) for answer in answers] == [("x1", 0), ("", 3), ("x2", 0)]
    assert (await world.row(RUN.action("x2"))).phase is Phase.QUEUED
