"""Reads of one action: details, where its data lies, the context of its logs."""

from __future__ import annotations

from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import SUCCESSFUL
from flyte_binary.runs.requests import action_id_from, run_id_from
from flyte_binary.runs.view.action import CONDITION, TRACE
from flyte_binary.runs.view.attempts import attempts_of
from flyte_binary.runs.view.details import ActionFacts, action_details_of, run_details_of


class RunReads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def run_details(self, request: run_service_pb2.GetRunDetailsRequest) -> run_service_pb2.GetRunDetailsResponse:
        run = run_id_from(request)
        facts = await self._database.point(lambda tx: facts_of(tx, run.root()))
        if facts is None:
            raise run_not_found(run)
        details = run_details_of(facts)
        # The caller's organisation comes back in the id, and only there (reference backend behaviour).
        details.action.id.run.org = request.run_id.org
        return run_service_pb2.GetRunDetailsResponse(details=details)

    async def action_details(
        self, request: run_service_pb2.GetActionDetailsRequest
    ) -> run_service_pb2.GetActionDetailsResponse:
        facts = await self._require(action_id_from(request))
        details = action_details_of(facts)
        details.id.run.org = request.action_id.run.org
        return run_service_pb2.GetActionDetailsResponse(details=details)

    async def data_uris(
        self, request: run_service_pb2.GetActionDataURIsRequest
    ) -> run_service_pb2.GetActionDataURIsResponse:
        """Outputs of what succeeded only; a condition has its value in the details and no file."""
        facts = await self._require(action_id_from(request))
        outputs = outputs_uri_of(facts) if facts.row.phase in SUCCESSFUL else ""
        return run_service_pb2.GetActionDataURIsResponse(inputs_uri=facts.row.input_uri, outputs_uri=outputs)

    async def log_context(
        self, request: run_service_pb2.GetActionLogContextRequest
    ) -> run_service_pb2.GetActionLogContextResponse:
        """Of the newest event of the attempt that has one; attempt 0 is the current one."""
        action = action_id_from(request)
        facts = await self._require(action)
        number = request.attempt or max(1, facts.row.attempts)
        for attempt in attempts_of(facts.row, facts.events):
            if attempt.attempt == number and attempt.HasField("log_context"):
                return _log_context(attempt)
        raise NotFound(f"attempt {number} of action {action} has no log yet")

    async def _require(self, action: ActionId) -> ActionFacts:
        facts = await self._database.point(lambda tx: facts_of(tx, action))
        if facts is None:
            raise action_not_found(action)
        return facts


def facts_of(tx: Transaction, action: ActionId) -> ActionFacts | None:
    row = tx.actions.get(action)
    if row is None:
        return None
    events = tuple(run_definition_pb2.ActionEvent.FromString(event.info) for event in tx.events.of_action(action))
    spec = None if row.spec_digest is None else tx.specs.get(row.spec_digest)
    return ActionFacts(row=row, events=events, spec=spec)


def outputs_uri_of(facts: ActionFacts) -> str:
    """The file with the outputs of a successful action. Raises `NotFound` if none is known."""
    row = facts.row
    if row.action_type == TRACE:
        return row.output_uri
    if row.action_type == CONDITION:
        return ""
    uri = _task_outputs(row) or next(
        (attempt.outputs.output_uri for attempt in reversed(attempts_of(row, facts.events))), ""
    )
    if not uri:
        raise NotFound(f"outputs of action {row.id} are not known")
    return uri


def run_not_found(run: RunId) -> NotFound:
    return NotFound(f"run not found: {run}")


def action_not_found(action: ActionId) -> NotFound:
    return NotFound(f"action not found: {action}")


def _task_outputs(row: ActionRow) -> str:
    """`output_uri` of a task is the folder; reports from outside may name the file."""
    if not row.output_uri or row.output_uri.endswith(f"/{locations.OUTPUTS}"):
        return row.output_uri
    return locations.join(row.output_uri, locations.OUTPUTS)


def _log_context(attempt: run_definition_pb2.ActionAttempt) -> run_service_pb2.GetActionLogContextResponse:
    response = run_service_pb2.GetActionLogContextResponse(
        log_context=attempt.log_context, cluster=attempt.cluster, start_time=attempt.start_time
    )
    if attempt.HasField("end_time"):
        response.end_time.CopyFrom(attempt.end_time)
    return response
