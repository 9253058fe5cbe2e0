"""Details of an action: how it ended, what it is, where it comes from."""

from __future__ import annotations

import pytest
from flyteidl2.common import identity_pb2, run_pb2
from flyteidl2.core import execution_pb2, literals_pb2, types_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import action_of, run_of
from flyte_binary.runs.view.details import ActionFacts, action_details_of
from tests.unit.runs.rows import CONDITION, RUN, SECOND, START, TRACE, event, row

ANN = identity_pb2.EnrichedIdentity(user=identity_pb2.User(id={"subject": "ann"}))


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.TIMED_OUT])
def test_the_final_error_is_the_rows_whatever_the_attempts_say(phase: Phase) -> None:
    error = execution_pb2.ExecutionError(code="C", message="final", kind=execution_pb2.ExecutionError.SYSTEM)
    failed = row(phase=phase, attempts=3, error=error.SerializeToString(), ended_at=START)
    details = action_details_of(ActionFacts(row=failed, events=(event(Phase.FAILED, error="first"),)))

    assert (details.error_info.code, details.error_info.message) == ("C", "final")
    assert details.error_info.kind == run_definition_pb2.ErrorInfo.KIND_SYSTEM


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.TIMED_OUT])
def test_without_an_error_of_its_own_the_last_attempts_is_shown(phase: Phase) -> None:
    failed = row(phase=phase, attempts=2, ended_at=START)
    details = action_details_of(ActionFacts(row=failed, events=(event(Phase.FAILED, error="only"),)))

    assert details.error_info.message == "only"
    assert details.error_info.kind == run_definition_pb2.ErrorInfo.KIND_USER


def test_a_failure_always_has_an_error_and_a_condition_that_timed_out_none() -> None:
    assert action_details_of(ActionFacts(row=row(phase=Phase.FAILED))).HasField("error_info")
    waited = row("c", Phase.TIMED_OUT, action_type=CONDITION)
    assert action_details_of(ActionFacts(row=waited)).WhichOneof("result") is None


def test_an_abort_tells_why_and_by_whom() -> None:
    aborted = row(phase=Phase.ABORTED, abort_reason="enough", aborted_by=ANN.SerializeToString(), ended_at=START)
    details = action_details_of(ActionFacts(row=aborted))

    assert details.abort_info.reason == "enough"
    assert details.abort_info.aborted_by == ANN


def test_a_child_that_was_aborted_with_its_parent_has_an_empty_abort_info() -> None:
    details = action_details_of(ActionFacts(row=row("c", Phase.ABORTED, ended_at=START)))
    assert details.WhichOneof("result") == "abort_info"


def test_a_signalled_condition_shows_its_value_and_who_gave_it() -> None:
    value = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(boolean=True)))
    condition = run_definition_pb2.ConditionAction(
        name="ok?", type=types_pb2.LiteralType(simple=types_pb2.BOOLEAN), prompt="go on?"
    )
    signalled = row(
        "c",
        Phase.SUCCEEDED,
        action_type=CONDITION,
        function_name="ok?",
        detail=condition.SerializeToString(),
        value=value.SerializeToString(),
        signalled_by=ANN.SerializeToString(),
        ended_at=START,
    )
    details = action_details_of(ActionFacts(row=signalled))

    assert details.signal_info.output == value
    assert details.signal_info.signalled_by == ANN
    assert details.condition == condition
    assert details.metadata.condition.name == "ok?"
    assert details.metadata.condition.type.simple == types_pb2.BOOLEAN
    assert details.status.attempts == 1


def test_a_trace_shows_its_interface_from_the_stored_spec_or_its_own() -> None:
    spec = task_definition_pb2.TraceSpec()
    spec.interface.inputs.variables.add(key="x")
    trace = run_definition_pb2.TraceAction(name="t", spec=spec)
    stored = row("t", Phase.SUCCEEDED, action_type=TRACE, function_name="t", ended_at=START)
    own = row("t", Phase.SUCCEEDED, action_type=TRACE, detail=trace.SerializeToString(), ended_at=START)

    assert action_details_of(ActionFacts(row=stored, spec=spec.SerializeToString())).trace == spec
    assert action_details_of(ActionFacts(row=own)).trace == spec
    assert action_of(stored).metadata.trace.name == "t"


def test_a_task_always_brings_its_spec() -> None:
    spec = task_definition_pb2.TaskSpec(short_name="hello")
    details = action_details_of(ActionFacts(row=row(), spec=spec.SerializeToString()))

    assert details.task == spec
    assert action_details_of(ActionFacts(row=row())).HasField("task")


def test_durations_are_rounded_and_never_negative() -> None:
    ended = action_of(row(phase=Phase.SUCCEEDED, ended_at=START + 1_499_600)).status
    backwards = action_of(row(phase=Phase.SUCCEEDED, ended_at=START - SECOND)).status

    assert ended.duration_ms == 1500
    assert backwards.duration_ms == 0
    assert backwards.end_time == backwards.start_time
    assert not action_of(row()).status.HasField("end_time")


def test_attempts_are_at_least_1() -> None:
    assert action_of(row(attempts=0)).status.attempts == 1


def test_where_a_run_comes_from_is_shown() -> None:
    relation = run_pb2.Relation(related_to=RUN.to_proto(), relation_type=run_pb2.RELATION_TYPE_RECOVER)
    recovered = row(
        phase=Phase.RECOVERED,
        relation=relation.SerializeToString(),
        recovered_from=RUN.action("before").to_proto().SerializeToString(),
        trigger_name="daily",
        trigger_task_name="env.hello",
        trigger_revision=3,
        run_source=run_definition_pb2.RUN_SOURCE_SCHEDULE_TRIGGER,
        created_by=ANN.SerializeToString(),
        ended_at=START,
    )
    metadata = run_of(recovered).action.metadata

    assert metadata.relation == relation
    assert metadata.recovered_from.name == "before"
    assert (metadata.trigger_name, metadata.trigger_id.name.task_name, metadata.trigger_id.revision) == (
        "daily",
        "env.hello",
        3,
    )
    assert metadata.source == run_definition_pb2.RUN_SOURCE_SCHEDULE_TRIGGER
    assert metadata.executed_by == ANN
