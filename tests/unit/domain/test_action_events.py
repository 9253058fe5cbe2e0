"""Events of attempts as the executor writes them."""

from __future__ import annotations

import pytest
from flyteidl2.core import catalog_pb2, execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain.action_events import CONTAINER, make_event
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase

ACTION = RunId("p", "d", "r1").action("c1")


def test_an_event_says_who_when_and_what() -> None:
    event = make_event(ACTION, 2, Phase.RUNNING, at=1_500_000, version=7, message="there it goes")

    assert event.id == ACTION.to_proto()
    assert (event.attempt, event.phase, event.version) == (2, Phase.RUNNING, 7)
    assert event.updated_time == event.reported_time
    assert event.updated_time.ToMicroseconds() == 1_500_000
    assert [told.message for told in event.cluster_events] == ["there it goes"]
    assert not event.HasField("outputs") and not event.HasField("error_info")


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.FAILED, Phase.SUCCEEDED])
def test_outputs_are_named_only_where_there_are_some(phase: Phase) -> None:
    event = make_event(ACTION, 1, phase, at=0, prefix="/out")

    assert event.outputs.output_uri == ("/out/outputs.pb" if phase == Phase.SUCCEEDED else "")
    assert event.outputs.report_uri == ""
    assert make_event(ACTION, 1, phase, at=0, prefix="/out", has_report=True).outputs.report_uri == "/out/report.html"


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (execution_pb2.ExecutionError.USER, run_definition_pb2.ErrorInfo.KIND_USER),
        (execution_pb2.ExecutionError.SYSTEM, run_definition_pb2.ErrorInfo.KIND_SYSTEM),
        (execution_pb2.ExecutionError.UNKNOWN, run_definition_pb2.ErrorInfo.KIND_UNSPECIFIED),
    ],
)
def test_an_error_keeps_its_code_message_and_kind(
    kind: execution_pb2.ExecutionError.ErrorKind, shown: run_definition_pb2.ErrorInfo.Kind
) -> None:
    error = execution_pb2.ExecutionError(code="ValueError", message="no", kind=kind)
    info = make_event(ACTION, 1, Phase.FAILED, at=0, error=error).error_info

    assert (info.code, info.message, info.kind) == ("ValueError", "no", shown)


def test_logs_look_like_those_of_a_pod_of_one_container() -> None:
    context = make_event(ACTION, 3, Phase.RUNNING, at=0, has_logs=True).log_context

    assert context.primary_pod_name == context.pods[0].pod_name == "r1-c1-2"
    assert context.pods[0].primary_container_name == CONTAINER
    assert [container.container_name for container in context.pods[0].containers] == [CONTAINER]


def test_the_cache_status_is_told() -> None:
    event = make_event(ACTION, 1, Phase.SUCCEEDED, at=0, cache_status=catalog_pb2.CACHE_HIT)

    assert event.cache_status == catalog_pb2.CACHE_HIT
