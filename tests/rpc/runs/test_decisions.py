"""Abort and signal through RunService, down to the rows."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from flyteidl2.common import identity_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow import run_service_pb2 as pb

from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import action_id, run_id
from tests.rpc.runs.rows import add, run_of, started, stored, to
from tests.rpc.runs.test_create import refused


async def details(server: Server, name: str = "a0") -> run_definition_pb2.ActionDetails:
    request = pb.GetActionDetailsRequest(action_id=action_id("r1", name))
    return (await server.runs.get_action_details(request)).details


@pytest.mark.parametrize(("given", "kept"), [(None, "User requested abort"), ("", ""), ("enough", "enough")])
async def test_a_run_is_aborted_with_its_reason_and_by_whom(server: Server, given: str | None, kept: str) -> None:
    await started(server, "r1")
    await add(server, run_of("r1").action("b"), Phase.RUNNING)
    request = pb.AbortRunRequest(run_id=run_id("r1"), reason=given)
    await server.runs.abort_run(request, headers={"x-subject": "ann"})
    found = await details(server)

    assert found.status.phase == Phase.ABORTED
    assert found.abort_info.reason == kept
    assert found.abort_info.aborted_by.user.id.subject == "ann"
    assert (await details(server, "b")).status.phase == Phase.ABORTED


async def test_aborting_a_finished_run_changes_nothing(server: Server) -> None:
    root = await started(server, "r1")
    await to(server, root, Phase.SUCCEEDED, prefix="/store/r1/a0/1")
    await server.runs.abort_run(pb.AbortRunRequest(run_id=run_id("r1")))

    assert (await details(server)).status.phase == Phase.SUCCEEDED


async def test_one_action_is_aborted_without_its_siblings(server: Server) -> None:
    await started(server, "r1")
    for name in ("b", "c"):
        await add(server, run_of("r1").action(name), Phase.RUNNING)
    await server.runs.abort_action(pb.AbortActionRequest(action_id=action_id("r1", "b")))

    assert (await details(server, "b")).abort_info.reason == "User requested abort"
    assert (await details(server, "c")).status.phase == Phase.RUNNING


async def test_a_condition_gets_the_value_of_the_payload(server: Server) -> None:
    await started(server, "r1")
    condition = run_definition_pb2.ConditionAction(name="go?")
    condition.type.simple = 4
    waiting = run_of("r1").action("c")
    await add(server, waiting, Phase.PAUSED, action_type=CONDITION, detail=condition.SerializeToString())
    request = pb.SignalEventRequest(
        action_id=action_id("r1", "c"), parent_action_name="a0", payload=pb.EventPayload(bool_value=False)
    )
    await server.runs.signal_event(request, headers={"x-subject": "ann"})
    await server.runs.signal_event(request)

    row = await stored(server, waiting)
    assert row.phase == Phase.SUCCEEDED
    value = literals_pb2.Literal.FromString(row.value or b"")
    assert value.scalar.primitive.WhichOneof("value") == "boolean"
    assert value.scalar.primitive.boolean is False
    who = identity_pb2.EnrichedIdentity.FromString(row.signalled_by or b"")
    assert who.user.id.subject == "ann"
    request.payload.bool_value = True
    await refused(server.runs.signal_event(request), Code.FAILED_PRECONDITION)
    request.payload.int_value = 1
    await refused(server.runs.signal_event(request), Code.FAILED_PRECONDITION)


async def test_a_signal_without_a_value_is_refused(server: Server) -> None:
    request = pb.SignalEventRequest(action_id=action_id("r1", "c"))
    assert "payload.value" in await refused(server.runs.signal_event(request), Code.INVALID_ARGUMENT)


async def test_signals_for_what_is_no_condition_are_refused(server: Server) -> None:
    await started(server, "r1")
    request = pb.SignalEventRequest(action_id=action_id("r1"), payload=pb.EventPayload(string_value="x"))
    await refused(server.runs.signal_event(request), Code.FAILED_PRECONDITION)
    request.action_id.name = "nosuch"
    await refused(server.runs.signal_event(request), Code.NOT_FOUND)


async def test_a_reason_has_a_length(server: Server) -> None:
    call = server.runs.abort_run(pb.AbortRunRequest(run_id=run_id("r1"), reason="x" * 10_001))
    assert "reason" in await refused(call, Code.INVALID_ARGUMENT)
