"""`ActionAttempt` messages from the events of an action.

The row is the truth about the action, events tell how its attempts went. Where the two were written apart (an abort
marks the row before the process is gone; an attempt waits and has no event yet) the attempt shown agrees with the row.
"""

from __future__ import annotations

from collections.abc import Iterable

from flyteidl2.workflow import run_definition_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.phases import Phase, is_terminal
from flyte_binary.domain.timestamps import micros_to_proto, proto_to_micros
from flyte_binary.domain.wire_enums import cache_status_to_wire, phase_to_wire
from flyte_binary.runs.view.action import TASK

Event = run_definition_pb2.ActionEvent
Attempt = run_definition_pb2.ActionAttempt


def attempts_of(row: ActionRow, events: Iterable[Event]) -> list[Attempt]:
    """By number. `events` come as the database has them: by attempt, phase and version."""
    by_number: dict[int, list[Event]] = {}
    for event in events:
        by_number.setdefault(max(1, event.attempt), []).append(event)
    attempts = [_merged(number, by_number[number]) for number in sorted(by_number)]
    current = max(1, row.attempts)
    if row.action_type == TASK and current not in by_number:
        attempts.append(_without_events(row, current))
        attempts.sort(key=lambda attempt: attempt.attempt)
    for attempt in attempts:
        if attempt.attempt == current and row.terminal and not is_terminal(attempt.phase):
            _end(attempt, row)
    return attempts


def _merged(number: int, events: list[Event]) -> Attempt:
    events = sorted(events, key=_moment)
    ends = [event for event in events if is_terminal(event.phase)]
    # The last word counts: an executor may correct what it reported first.
    final = ends[-1] if ends else events[-1]
    attempt = Attempt(
        attempt=number,
        phase=final.phase,
        start_time=events[0].updated_time,
        cache_status=final.cache_status,
        cluster=final.cluster,
        phase_transitions=_transitions(events, final),
    )
    if final.HasField("outputs"):
        attempt.outputs.CopyFrom(final.outputs)
    if final.HasField("error_info"):
        attempt.error_info.CopyFrom(final.error_info)
    if final.HasField("cache_metadata"):
        attempt.cache_metadata.CopyFrom(final.cache_metadata)
    if ends:
        attempt.end_time.CopyFrom(_later(final.updated_time, attempt.start_time))
    for event in events:
        attempt.cluster_events.extend(event.cluster_events)
        if event.HasField("log_context"):
            attempt.log_context.CopyFrom(event.log_context)
            attempt.logs_available = True
        if event.outputs.report_uri:
            attempt.outputs.report_uri = event.outputs.report_uri
    logs = {log.name: log for event in events for log in event.log_info}
    attempt.log_info.extend(logs[name] for name in sorted(logs))
    return attempt


def _transitions(events: list[Event], final: Event) -> list[run_definition_pb2.PhaseTransition]:
    """First appearance of each phase, in order; each ends the one before."""
    transitions: list[run_definition_pb2.PhaseTransition] = []
    seen: set[int] = set()
    for event in events:
        if event.phase in seen or (is_terminal(event.phase) and event is not final):
            continue
        seen.add(event.phase)
        if transitions:
            transitions[-1].end_time.CopyFrom(event.updated_time)
        transitions.append(run_definition_pb2.PhaseTransition(phase=event.phase, start_time=event.updated_time))
        if event is final and is_terminal(event.phase):
            transitions[-1].end_time.CopyFrom(event.updated_time)
            break
    return transitions


def _without_events(row: ActionRow, number: int) -> Attempt:
    """An attempt that nothing was recorded of yet: it waits, or its action ended before it began."""
    started = micros_to_proto(row.queued_at if number > 1 else row.created_at)
    phase = phase_to_wire(Phase.QUEUED if row.terminal else row.phase)
    attempt = Attempt(
        attempt=number,
        phase=phase,
        start_time=started,
        cache_status=cache_status_to_wire(row.cache_status),
    )
    attempt.phase_transitions.add(phase=phase, start_time=started)
    return attempt


def _end(attempt: Attempt, row: ActionRow) -> None:
    """The action has ended and the attempt's own last event is still to come: end it as the action did."""
    ended = _later(micros_to_proto(row.ended_at or row.updated_at), attempt.start_time)
    phase = phase_to_wire(row.phase)
    attempt.phase = phase
    attempt.end_time.CopyFrom(ended)
    if attempt.phase_transitions:
        attempt.phase_transitions[-1].end_time.CopyFrom(ended)
    attempt.phase_transitions.add(phase=phase, start_time=ended, end_time=ended)


def _moment(event: Event) -> tuple[int, int]:
    stamp = event.reported_time if event.HasField("reported_time") else event.updated_time
    return proto_to_micros(stamp), stamp.nanos


def _later(moment: Timestamp, other: Timestamp) -> Timestamp:
    return moment if (moment.seconds, moment.nanos) >= (other.seconds, other.nanos) else other
