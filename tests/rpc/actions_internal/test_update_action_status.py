"""InternalRunService.UpdateActionStatus: an executor outside tells how an action fares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from flyteidl2.common import identity_pb2, phase_pb2
from flyteidl2.core import catalog_pb2, execution_pb2
from flyteidl2.task import common_pb2
from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow.internal_run_service_connect import InternalRunServiceClient
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import code_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.moves import reservation_owner
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.live.hub import Hub
from tests.fakes.manual_clock import ManualClock
from tests.rpc.actions_internal.world import CHILD, ROOT, RUN, World, condition, literal


def update(phase: Phase, action: ActionId = CHILD, **fields: Any) -> internal_pb2.UpdateActionStatusRequest:
    status_fields = {name: fields.pop(name) for name in list(fields) if name in _STATUS_FIELDS}
    status = run_definition_pb2.ActionStatus(phase=phase_pb2.ActionPhase.Name(int(phase)), **status_fields)
    return internal_pb2.UpdateActionStatusRequest(action_id=action.to_proto(), status=status, **fields)


_STATUS_FIELDS = frozenset(run_definition_pb2.ActionStatus.DESCRIPTOR.fields_by_name)


async def test_phases_move_on_and_the_parent_hears_of_it(
    internal: InternalRunServiceClient, world: World, hub: Hub
) -> None:
    await world.insert(CHILD, phase=Phase.QUEUED)
    with hub.subscribe(topics.children(RUN, "a0")) as subscription:
        answer = await internal.update_action_status(update(Phase.RUNNING, attempts=1))
        assert subscription.take() == {("child",)}

    assert answer.status.code == code_pb2.OK
    assert answer.action_id == CHILD.to_proto()
    assert (await world.row()).phase is Phase.RUNNING


async def test_a_late_running_report_does_not_reopen_a_succeeded_action(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(CHILD, phase=Phase.SUCCEEDED, ended_at=5)

    answer = await internal.update_action_status(update(Phase.RUNNING, attempts=2))

    assert answer.status.code == code_pb2.OK
    row = await world.row()
    assert (row.phase, row.attempts, row.ended_at) == (Phase.SUCCEEDED, 1, 5)


async def test_a_failed_parent_is_not_dragged_back_by_a_late_sighting_of_a_child(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(CHILD, phase=Phase.FAILED)

    await internal.update_action_status(update(Phase.RUNNING))

    assert (await world.row()).phase is Phase.FAILED


async def test_zero_attempts_and_cache_status_say_nothing(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD, phase=Phase.QUEUED, attempts=2, cache_status=catalog_pb2.CACHE_MISS)

    await internal.update_action_status(update(Phase.RUNNING))

    row = await world.row()
    assert (row.phase, row.attempts, row.cache_status) == (Phase.RUNNING, 2, catalog_pb2.CACHE_MISS)


async def test_a_repeated_phase_refreshes_attempts_and_cache_status(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(CHILD)

    await internal.update_action_status(update(Phase.RUNNING, attempts=2, cache_status=catalog_pb2.CACHE_POPULATED))

    row = await world.row()
    assert (row.attempts, row.cache_status) == (2, catalog_pb2.CACHE_POPULATED)


async def test_the_report_of_an_earlier_attempt_is_dropped(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD, attempts=2)

    await internal.update_action_status(update(Phase.FAILED, attempts=1))

    row = await world.row()
    assert (row.phase, row.attempts) == (Phase.RUNNING, 2)


async def test_the_next_attempt_starts_over_although_its_first_report_went_missing(
    internal: InternalRunServiceClient, world: World, clock: ManualClock
) -> None:
    await world.insert(CHILD)
    clock.advance(seconds=9)

    await internal.update_action_status(update(Phase.INITIALIZING, attempts=2))

    row = await world.row()
    assert (row.phase, row.attempts, row.queued_at) == (Phase.INITIALIZING, 2, clock.now())


async def test_the_end_of_a_retried_action_is_that_of_its_last_attempt(
    internal: InternalRunServiceClient, world: World, clock: ManualClock
) -> None:
    await world.insert(CHILD, phase=Phase.QUEUED)
    for phase, attempt in [(Phase.RUNNING, 1), (Phase.QUEUED, 2), (Phase.RUNNING, 2), (Phase.SUCCEEDED, 2)]:
        clock.advance(seconds=1)
        await internal.update_action_status(update(phase, attempts=attempt))

    assert (await world.row()).ended_at == clock.now()


async def test_times_from_outside_stay_in_order(
    internal: InternalRunServiceClient, world: World, clock: ManualClock
) -> None:
    clock.advance(seconds=10)
    await world.insert(CHILD, phase=Phase.QUEUED)
    root = await world.row(ROOT)

    await internal.update_action_status(update(Phase.RUNNING, start_time=Timestamp(seconds=1)))
    started = (await world.row()).created_at
    await internal.update_action_status(update(Phase.SUCCEEDED, end_time=Timestamp(seconds=2)))

    row = await world.row()
    assert root.created_at < started < clock.now()
    assert row.ended_at == row.created_at == started


async def test_an_end_releases_reservations_and_takes_unfinished_children_with_it(
    internal: InternalRunServiceClient, world: World, database: Database, clock: ManualClock
) -> None:
    await world.insert(CHILD)
    await world.insert(RUN.action("below"), CHILD)
    await database.write(lambda tx: tx.cache.reserve("p/d/k", reservation_owner(CHILD), at=clock.now()))

    await internal.update_action_status(update(Phase.SUCCEEDED))

    assert (await world.row()).phase is Phase.SUCCEEDED
    assert (await world.row(RUN.action("below"))).phase is Phase.ABORTED
    assert await database.read(lambda tx: tx.cache.reservation("p/d/k")) is None


async def test_an_abort_keeps_its_reason_and_who_asked(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD)
    await world.insert(RUN.action("below"), CHILD)
    somebody = identity_pb2.EnrichedIdentity(user=identity_pb2.User(spec=identity_pb2.UserSpec(email="a@b.c")))

    await internal.update_action_status(update(Phase.ABORTED, abort_reason="node drained", principal=somebody))

    row = await world.row()
    assert (row.phase, row.abort_reason) == (Phase.ABORTED, "node drained")
    assert row.aborted_by == somebody.SerializeToString()
    assert (await world.row(RUN.action("below"))).phase is Phase.ABORTED


async def test_an_abort_does_not_overwrite_what_has_ended(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD, phase=Phase.SUCCEEDED)

    await internal.update_action_status(update(Phase.ABORTED, abort_reason="too late"))

    row = await world.row()
    assert (row.phase, row.abort_reason) == (Phase.SUCCEEDED, None)


async def test_a_signalled_condition_has_its_value_when_its_watcher_wakes(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(
        CHILD,
        phase=Phase.PAUSED,
        action_type=run_definition_pb2.ACTION_TYPE_CONDITION,
        detail=condition().SerializeToString(),
    )
    somebody = identity_pb2.EnrichedIdentity(user=identity_pb2.User(spec=identity_pb2.UserSpec(email="a@b.c")))

    await internal.update_action_status(update(Phase.SUCCEEDED, output=literal(True), principal=somebody))

    row = await world.row()
    assert (row.phase, row.value) == (Phase.SUCCEEDED, literal(True).SerializeToString(deterministic=True))
    assert row.signalled_by == somebody.SerializeToString()


async def test_a_failure_carries_the_error_that_its_event_reported(
    internal: InternalRunServiceClient, world: World
) -> None:
    await world.insert(CHILD)
    info = run_definition_pb2.ErrorInfo(message="boom", code="ValueError", kind=run_definition_pb2.ErrorInfo.KIND_USER)
    event = run_definition_pb2.ActionEvent(
        id=CHILD.to_proto(), attempt=1, phase=phase_pb2.ACTION_PHASE_FAILED, error_info=info
    )
    await internal.record_action_events(internal_pb2.RecordActionEventsRequest(events=[event]))

    await internal.update_action_status(update(Phase.FAILED, attempts=1))

    error = execution_pb2.ExecutionError.FromString((await world.row()).error or b"")
    assert (error.code, error.message, error.kind) == ("ValueError", "boom", execution_pb2.ExecutionError.USER)


@pytest.mark.parametrize("reported", [True, False])
async def test_a_success_tells_where_its_outputs_are(
    internal: InternalRunServiceClient, world: World, reported: bool
) -> None:
    await world.insert(CHILD)
    if reported:
        outputs = common_pb2.OutputReferences(output_uri="/elsewhere/1/outputs.pb")
        event = run_definition_pb2.ActionEvent(
            id=CHILD.to_proto(), attempt=1, phase=phase_pb2.ACTION_PHASE_SUCCEEDED, outputs=outputs
        )
        await internal.record_action_events(internal_pb2.RecordActionEventsRequest(events=[event]))

    await internal.update_action_status(update(Phase.SUCCEEDED, attempts=1))

    assert (await world.row()).output_uri == ("/elsewhere/1" if reported else "/store/r1/child/1")


@pytest.mark.parametrize(
    ("request_", "code", "field"),
    [
        (internal_pb2.UpdateActionStatusRequest(), code_pb2.INVALID_ARGUMENT, "action_id"),
        (internal_pb2.UpdateActionStatusRequest(action_id=CHILD.to_proto()), code_pb2.INVALID_ARGUMENT, "status"),
        (update(Phase.RUNNING, attempts=2**31), code_pb2.INVALID_ARGUMENT, "status.attempts"),
        (
            update(Phase.SUCCEEDED, end_time=Timestamp(seconds=2**60)),
            code_pb2.INVALID_ARGUMENT,
            "status.end_time",
        ),
        (update(Phase.RUNNING, RUN.action("nobody")), code_pb2.NOT_FOUND, "action_id"),
    ],
)
async def test_a_report_that_cannot_be_taken_is_told_inside_the_answer(
    internal: InternalRunServiceClient,
    world: World,
    request_: internal_pb2.UpdateActionStatusRequest,
    code: int,
    field: str,
) -> None:
    await world.insert(CHILD)

    answer = await internal.update_action_status(request_)

    assert answer.status.code == code
    assert field in answer.status.message
    assert (await world.row()).phase is Phase.RUNNING


async def test_a_phase_that_is_not_in_the_contract_is_refused(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD)
    request = update(Phase.RUNNING)
    request.status.phase = 77  # type: ignore[assignment]  # protobuf's enums are open

    assert (await internal.update_action_status(request)).status.code == code_pb2.INVALID_ARGUMENT


async def test_a_stream_echoes_the_nonce_of_each_request(internal: InternalRunServiceClient, world: World) -> None:
    await world.insert(CHILD, phase=Phase.QUEUED)

    async def requests() -> AsyncIterator[internal_pb2.UpdateActionStatusStreamRequest]:
        yield internal_pb2.UpdateActionStatusStreamRequest(request=update(Phase.RUNNING), nonce=7)
        yield internal_pb2.UpdateActionStatusStreamRequest(nonce=8)
        yield internal_pb2.UpdateActionStatusStreamRequest(request=update(Phase.SUCCEEDED), nonce=9)

    answers = [answer async for answer in internal.update_action_status_stream(requests())]

    assert [(answer.nonce, answer.response.status.code) for answer in answers] == [(7, 0), (8, 3), (9, 0)]
    assert (await world.row()).phase is Phase.SUCCEEDED
