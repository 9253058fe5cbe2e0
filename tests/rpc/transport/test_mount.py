from __future__ import annotations

import pytest
from flyteidl2.workflow import run_service_pb2

from flyte_binary.rpc.method import snake_case
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.rpc.transport.conftest import RUN_SERVICE
from tests.rpc.transport.probe import Probe


@pytest.mark.parametrize(
    ("rpc", "function"),
    [
        ("CreateRun", "create_run"),
        ("Enqueue", "enqueue"),
        ("GetActionDataURIs", "get_action_data_uris"),
        ("GetOAuth2Metadata", "get_oauth2_metadata"),
        ("UserInfo", "user_info"),
        ("LiteralsToLaunchFormJson", "literals_to_launch_form_json"),
        ("TailLogs", "tail_logs"),
    ],
)
def test_an_acronym_is_one_word_of_a_function_name(rpc: str, function: str) -> None:
    assert snake_case(rpc) == function


def test_a_service_that_the_contract_does_not_know_is_refused_at_start() -> None:
    with pytest.raises(LookupError, match=r"flyteidl2\.workflow\.NoService is not in the contract"):
        mount([ServiceMount("flyteidl2.workflow.NoService", Probe())])


def test_a_service_cannot_be_mounted_twice() -> None:
    with pytest.raises(ValueError, match="mounted twice"):
        mount([ServiceMount(RUN_SERVICE, Probe()), ServiceMount(RUN_SERVICE, Probe())])


def test_an_implementation_that_serves_nothing_is_refused_at_start() -> None:
    with pytest.raises(TypeError, match="object has no function for any RPC"):
        mount([ServiceMount(RUN_SERVICE, object())])


def test_a_unary_method_must_be_a_coroutine_function() -> None:
    class Wrong:
        def create_run(self, request, context):
            return run_service_pb2.CreateRunResponse()

    with pytest.raises(TypeError, match=r"create_run must be a coroutine function"):
        mount([ServiceMount(RUN_SERVICE, Wrong())])


def test_a_stream_must_be_an_async_generator() -> None:
    class Wrong:
        async def watch_runs(self, request, context):
            return None

    with pytest.raises(TypeError, match=r"watch_runs must be an async generator"):
        mount([ServiceMount(RUN_SERVICE, Wrong())])
