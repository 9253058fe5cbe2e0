"""Details of runs and actions, where their data lies, the context of their logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.workflow import run_service_pb2 as pb
from google.protobuf.message import Message

from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION, TRACE
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import action_id, run_id, task_spec
from tests.rpc.runs.rows import add, run_of, started, to
from tests.rpc.runs.test_create import refused


async def uris(server: Server, name: str) -> tuple[str, str]:
    response = await server.runs.get_action_data_u_r_is(pb.GetActionDataURIsRequest(action_id=action_id("r1", name)))
    return response.inputs_uri, response.outputs_uri


async def test_a_queued_run_shows_its_task_and_one_attempt_that_waits(server: Server) -> None:
    await started(server, "r1")
    details = (await server.runs.get_run_details(pb.GetRunDetailsRequest(run_id=run_id("r1")))).details

    assert details.action.task == task_spec()
    assert details.action.id.run.org == "127", "the caller's organisation comes back in the id"
    assert [(attempt.attempt, attempt.phase) for attempt in details.action.attempts] == [(1, Phase.QUEUED)]
    action = (await server.runs.get_action_details(pb.GetActionDetailsRequest(action_id=action_id("r1")))).details
    assert action == details.action


async def test_a_failed_run_shows_its_error_and_when_it_ended(server: Server) -> None:
    root = await started(server, "r1")
    await to(server, root, Phase.RUNNING)
    server.clock.advance(seconds=2)
    await to(server, root, Phase.FAILED, error="division by zero")
    details = (await server.runs.get_action_details(pb.GetActionDetailsRequest(action_id=action_id("r1")))).details

    assert details.status.phase == Phase.FAILED
    assert details.status.duration_ms == 2000
    assert details.error_info.message == "division by zero"
    assert details.attempts[0].error_info == details.error_info


async def test_only_what_succeeded_has_outputs(server: Server) -> None:
    run = run_of("r1")
    await started(server, "r1")
    await add(
        server, run.action("ok"), Phase.SUCCEEDED, output_uri="/store/r1/ok/1", input_uri="/store/r1/ok/inputs.pb"
    )
    await add(server, run.action("again"), Phase.RECOVERED, output_uri="/store/r0/again/1")
    await add(server, run.action("trace"), Phase.SUCCEEDED, action_type=TRACE, output_uri="/store/r1/trace/outputs.pb")
    await add(server, run.action("cond"), Phase.SUCCEEDED, action_type=CONDITION, input_uri="/dummy")
    await add(server, run.action("gone"), Phase.ABORTED, output_uri="/store/r1/gone/1")

    assert await uris(server, "a0") == ("/store/uploads/inputs/abc/inputs.pb", "")
    assert await uris(server, "ok") == ("/store/r1/ok/inputs.pb", "/store/r1/ok/1/outputs.pb")
    assert await uris(server, "again") == ("", "/store/r0/again/1/outputs.pb")
    assert await uris(server, "trace") == ("", "/store/r1/trace/outputs.pb")
    assert await uris(server, "cond") == ("/dummy", "")
    assert await uris(server, "gone") == ("", "")


async def test_outputs_are_found_in_the_events_if_the_row_has_none(server: Server) -> None:
    root = await started(server, "r1")
    await to(server, root, Phase.SUCCEEDED, prefix="/store/r1/a0/1")
    assert (await uris(server, "a0"))[1] == "/store/r1/a0/1/outputs.pb"

    await add(server, run_of("r1").action("lost"), Phase.SUCCEEDED)
    await refused(uris(server, "lost"), Code.NOT_FOUND)


async def test_the_log_context_is_the_newest_that_an_event_of_the_attempt_has(server: Server) -> None:
    root = await started(server, "r1")
    await to(server, root, Phase.RUNNING, has_logs=True)
    server.clock.advance(seconds=1)
    await to(server, root, Phase.SUCCEEDED, prefix="/store/r1/a0/1")
    request = pb.GetActionLogContextRequest(action_id=action_id("r1"), attempt=1)

    found = await server.runs.get_action_log_context(request)
    assert found.log_context.primary_pod_name == "r1-a0-0"
    assert found.HasField("start_time")
    assert found.end_time.ToMicroseconds() == server.clock.now()
    current = await server.runs.get_action_log_context(pb.GetActionLogContextRequest(action_id=action_id("r1")))
    assert current == found
    request.attempt = 7
    assert "attempt 7" in await refused(server.runs.get_action_log_context(request), Code.NOT_FOUND)


async def test_data_of_actions_is_served_by_the_data_proxy(server: Server) -> None:
    call = server.runs.get_action_data(pb.GetActionDataRequest(action_id=action_id("r1")))
    assert "DataProxyService.GetActionData" in await refused(call, Code.UNIMPLEMENTED)


Call = Callable[[Server, Message], Awaitable[object]]

BY_ACTION: list[tuple[str, type[Message], str]] = [
    ("get_action_details", pb.GetActionDetailsRequest, "action_id"),
    ("get_action_data_u_r_is", pb.GetActionDataURIsRequest, "action_id"),
    ("get_action_log_context", pb.GetActionLogContextRequest, "action_id"),
    ("abort_action", pb.AbortActionRequest, "action_id"),
]
BY_RUN: list[tuple[str, type[Message], str]] = [
    ("get_run_details", pb.GetRunDetailsRequest, "run_id"),
    ("abort_run", pb.AbortRunRequest, "run_id"),
]
STREAMS: list[tuple[str, type[Message], str]] = [
    ("watch_action_details", pb.WatchActionDetailsRequest, "action_id"),
    ("watch_run_details", pb.WatchRunDetailsRequest, "run_id"),
    ("watch_cluster_events", pb.WatchClusterEventsRequest, "id"),
]


async def answered(server: Server, method: str, request: Message) -> None:
    """Whether it is one message or a stream."""
    call = getattr(server.runs, method)(request)
    if hasattr(call, "__aiter__"):
        async for _ in call:
            return
        return
    await call


@pytest.mark.parametrize(("method", "kind", "field"), BY_ACTION + BY_RUN + STREAMS)
async def test_what_does_not_exist_is_not_found(server: Server, method: str, kind: type[Message], field: str) -> None:
    missing = run_id("rnosuch") if field == "run_id" else action_id("rnosuch")
    await refused(answered(server, method, kind(**{field: missing})), Code.NOT_FOUND)


@pytest.mark.parametrize(
    ("method", "kind", "field"),
    [
        *BY_ACTION,
        *BY_RUN,
        *STREAMS,
        ("list_actions", pb.ListActionsRequest, "run_id"),
        ("watch_actions", pb.WatchActionsRequest, "run_id"),
        ("signal_event", pb.SignalEventRequest, "action_id"),
    ],
)
async def test_an_id_that_is_missing_is_named(server: Server, method: str, kind: type[Message], field: str) -> None:
    assert field in await refused(answered(server, method, kind()), Code.INVALID_ARGUMENT)
    part = run_id("") if field == "run_id" else action_id("r1", "")
    assert "name" in await refused(answered(server, method, kind(**{field: part})), Code.INVALID_ARGUMENT)


async def test_errors_are_connect_errors(server: Server) -> None:
    with pytest.raises(ConnectError, match="run not found: flytesnacks/development/rnosuch"):
        await server.runs.get_run_details(pb.GetRunDetailsRequest(run_id=run_id("rnosuch")))
