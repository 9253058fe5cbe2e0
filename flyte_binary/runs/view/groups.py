"""`TaskGroup` messages: the runs of a task in numbers, for the console's overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from flyteidl2.common import identity_pb2
from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2
from google.protobuf.duration_pb2 import Duration

from flyte_binary.db.run_listing import RunFacts
from flyte_binary.domain.ids import ROOT_ACTION
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.domain.wire_enums import phase_to_wire

TaskGroup = run_definition_pb2.TaskGroup

RECENT_LIMIT = 10
CREATORS_LIMIT = 10

_FAILURES = (Phase.FAILED, Phase.TIMED_OUT)


def group_name_of(facts: RunFacts) -> str:
    return facts.task_name or facts.short_name or ROOT_ACTION


def group_of(name: str, runs: Iterable[RunFacts]) -> TaskGroup:
    """`runs` is not empty; all are of the group."""
    newest = sorted(runs, key=lambda run: (-run.created_at, run.run))
    phases = Counter(run.phase for run in newest)
    failures = [run for run in newest if run.phase in _FAILURES]
    group = TaskGroup(
        task_name=name,
        environment_name=newest[0].environment_name,
        short_name=newest[0].short_name,
        total_runs=len(newest),
        latest_run_time=micros_to_proto(newest[0].created_at),
        average_failure_rate=len(failures) / len(newest),
        error_counts=_error_counts(failures),
        created_by=_creators(newest),
    )
    for phase in sorted(phases):
        group.phase_counts.add(phase=phase_to_wire(phase), count=phases[phase])
    for run in newest[:RECENT_LIMIT]:
        group.recent_statuses.add(run_name=run.run.name, phase=phase_to_wire(run.phase))
    _add_times(group, newest)
    return group


def _add_times(group: TaskGroup, runs: Sequence[RunFacts]) -> None:
    ended = [(run.created_at, run.ended_at) for run in runs if run.ended_at is not None]
    if ended:
        group.latest_finished_time.CopyFrom(micros_to_proto(max(end for _, end in ended)))
        group.average_duration.CopyFrom(_average(max(0, end - start) for start, end in ended))
    waits = [max(0, run.running_at - run.created_at) for run in runs if run.running_at is not None]
    if waits:
        group.average_time_to_running.CopyFrom(_average(waits))


def _average(micros: Iterable[int]) -> Duration:
    found = list(micros)
    average = Duration()
    average.FromTimedelta(timedelta(microseconds=sum(found) // len(found)))
    return average


def _error_counts(failures: Iterable[RunFacts]) -> TaskGroup.ErrorCounts:
    kinds = Counter(execution_pb2.ExecutionError.FromString(run.error or b"").kind for run in failures)
    return TaskGroup.ErrorCounts(
        user_error=kinds[execution_pb2.ExecutionError.USER],
        system_error=kinds[execution_pb2.ExecutionError.SYSTEM],
        unspecified_error=kinds[execution_pb2.ExecutionError.UNKNOWN],
    )


def _creators(newest: Iterable[RunFacts]) -> list[identity_pb2.EnrichedIdentity]:
    """Whoever created one of the runs, the latest first."""
    distinct = dict.fromkeys(run.created_by for run in newest if run.created_by is not None)
    return [identity_pb2.EnrichedIdentity.FromString(body) for body in list(distinct)[:CREATORS_LIMIT]]
