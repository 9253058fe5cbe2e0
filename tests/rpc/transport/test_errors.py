from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.workflow import run_service_pb2
from flyteidl2.workflow.run_service_connect import RunServiceClient
from structlog.testing import capture_logs

from flyte_binary.domain import errors
from flyte_binary.rpc.errors import HTTP_STATUS, wire_error
from tests.rpc.transport.conftest import World
from tests.rpc.transport.probe import Probe, request_for, watch_for


def test_every_error_of_the_domain_keeps_its_code_and_none_is_unknown() -> None:
    classes = errors.FlyteError.__subclasses__()
    assert classes
    for kind in classes:
        told = wire_error(kind("why"), "m")
        assert (told.code, told.message) == (kind.code, "why")
        assert told.code in HTTP_STATUS and told.code != "unknown"


async def test_a_domain_error_reaches_the_caller_with_its_sentence(client: RunServiceClient) -> None:
    with capture_logs() as logs, pytest.raises(ConnectError) as caught:
        await client.get_run_details(request_for("missing"))
    assert (caught.value.code, caught.value.message) == (Code.NOT_FOUND, "run p/d/missing does not exist")
    assert [line["event"] for line in logs] == ["rpc"]
    assert "exc_info" not in logs[0]


async def test_a_bug_is_internal_with_an_id_and_its_traceback_only_in_the_log(client: RunServiceClient) -> None:
    with capture_logs() as logs, pytest.raises(ConnectError) as caught:
        await client.get_run_details(request_for("bug"))
    assert caught.value.code is Code.INTERNAL
    assert "secret" not in caught.value.message
    (line,) = [line for line in logs if line["event"] == "request failed by a bug"]
    assert line["error_id"] in caught.value.message
    assert isinstance(line["exc_info"], RuntimeError)


async def test_a_bug_in_a_stream_ends_it_with_internal(client: RunServiceClient, probe: Probe) -> None:
    stream = client.watch_runs(watch_for("bug"))
    await anext(stream)
    with capture_logs() as logs, pytest.raises(ConnectError) as caught:
        await anext(stream)
    assert caught.value.code is Code.INTERNAL
    assert [line for line in logs if line["event"] == "request failed by a bug"]
    assert probe.watching == 0


async def test_a_cancellation_of_something_else_is_unavailable_so_that_clients_retry(client: RunServiceClient) -> None:
    with pytest.raises(ConnectError) as caught:
        await client.get_run_details(request_for("foreign-cancel"))
    assert caught.value.code is Code.UNAVAILABLE


def test_a_timeout_inside_is_deadline_exceeded() -> None:
    assert wire_error(TimeoutError(), "m").code == "deadline_exceeded"


async def test_a_handler_is_ended_at_the_clients_deadline(world: World, client: RunServiceClient) -> None:
    with pytest.raises(ConnectError) as caught:
        async with asyncio.timeout(5):
            await client.get_run_details(request_for("slow"), timeout_ms=50)
    assert caught.value.code is Code.DEADLINE_EXCEEDED
    assert world.probe.contexts[0].seconds_left() is not None


async def test_a_malformed_request_is_one_line_in_the_log_without_traceback(
    world: World, client: RunServiceClient
) -> None:
    with capture_logs() as logs, pytest.raises(ConnectError):
        await client.get_action_details(run_service_pb2.GetActionDetailsRequest())
    assert len(logs) == 1
    line = logs[0]
    assert (line["method"], line["code"]) == ("flyteidl2.workflow.RunService/GetActionDetails", "unimplemented")
    assert line["request_id"] and line["ms"] >= 0


async def test_calls_are_counted_by_method_and_code(world: World, client: RunServiceClient) -> None:
    await client.get_run_details(request_for("r1"))
    with pytest.raises(ConnectError):
        await client.get_run_details(request_for("missing"))
    method = "flyteidl2.workflow.RunService/GetRunDetails"
    sample = world.registry.get_sample_value
    assert sample("flyte_rpc_requests_total", {"method": method, "code": "ok"}) == 1
    assert sample("flyte_rpc_requests_total", {"method": method, "code": "not_found"}) == 1
    assert sample("flyte_rpc_seconds_count", {"method": method}) == 2
