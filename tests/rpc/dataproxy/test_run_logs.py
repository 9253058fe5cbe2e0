"""RunLogsService shows the same logs as the data proxy."""

from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.workflow.run_logs_service_connect import RunLogsServiceClient
from flyteidl2.workflow.run_logs_service_pb2 import TailLogsRequest
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.dataproxy.run_logs_service import RunLogsService
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.rpc.dataproxy.conftest import World
from tests.rpc.dataproxy.test_tail_logs import FIRST, archive, lines, messages, wire_lines


@pytest.fixture
def run_logs(world: World) -> RunLogsServiceClient:
    app = mount([ServiceMount("flyteidl2.workflow.RunLogsService", RunLogsService(world.tails))])
    return RunLogsServiceClient("http://flyte", http_client=Client(ASGITransport(app)))


async def test_the_log_of_an_attempt_is_that_of_the_data_proxy(run_logs: RunLogsServiceClient, world: World) -> None:
    await archive(world, lines(3))
    request = TailLogsRequest(action_id=FIRST.action.to_proto(), attempt=1)
    async with asyncio.timeout(10):
        answers = [answer async for answer in run_logs.tail_logs(request)]
    shown = [line for answer in answers for logs in answer.logs for line in logs.lines]
    assert len(shown) == 3
    assert shown == wire_lines(await messages(world))


async def test_an_attempt_has_to_be_named(run_logs: RunLogsServiceClient) -> None:
    with pytest.raises(ConnectError, match="counted from 1") as refused:
        async for _ in run_logs.tail_logs(TailLogsRequest(action_id=FIRST.action.to_proto())):
            pass
    assert refused.value.code is Code.INVALID_ARGUMENT
