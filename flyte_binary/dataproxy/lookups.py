"""What the data proxy needs to know, read from the database."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.dataproxy.ports import ActionData, AttemptView
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.code_bundles import bundle_uri
from flyte_binary.domain.ids import ActionId, AttemptId, ProjectId, TaskId, TriggerId
from flyte_binary.domain.phases import SUCCESSFUL
from flyte_binary.domain.settings import VALUE

TASK = run_definition_pb2.ACTION_TYPE_TASK
CONDITION = run_definition_pb2.ACTION_TYPE_CONDITION
CONDITION_OUTPUT = "o0"
"""The SDK's name for the first output of anything."""


class ProjectLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def exists(self, project: str) -> bool:
        return await self._database.point(lambda tx: tx.projects.get(project)) is not None


class TaskLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def spec(self, task: TaskId) -> task_definition_pb2.TaskSpec | None:
        def operation(tx: Transaction) -> bytes | None:
            row = tx.tasks.get(task)
            return None if row is None else tx.specs.get(row.spec_digest)

        body = await self._database.point(operation)
        return None if body is None else task_definition_pb2.TaskSpec.FromString(body)

    async def of_trigger(self, trigger: identifier_pb2.TriggerName) -> TaskId | None:
        row = await self._database.point(lambda tx: tx.triggers.find(TriggerId.from_proto(trigger)))
        return None if row is None else row.task


class RunBaseLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, scope: ProjectId) -> str:
        settings = await self._database.point(lambda tx: tx.settings.resolved(scope.domain, scope.project))
        base = None if settings is None else settings.run.run_base_dir
        return base.string_value if base is not None and base.state == VALUE else ""


class TriggerLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def spec(self, trigger: TriggerId, revision: int) -> trigger_definition_pb2.TriggerSpec | None:
        def operation(tx: Transaction) -> bytes | None:
            row = tx.triggers.get_revision(trigger, revision) if revision else tx.triggers.find(trigger)
            return None if row is None else row.spec

        body = await self._database.point(operation)
        return None if body is None else trigger_definition_pb2.TriggerSpec.FromString(body)


class ActionLookup:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def data(self, action: ActionId) -> ActionData | None:
        row = await self._database.point(lambda tx: tx.actions.get(action))
        if row is None:
            return None
        if row.action_type == CONDITION:
            return ActionData(outputs=_signalled(row))
        return ActionData(
            inputs_uri=locations.inputs_uri(row.input_uri) if row.input_uri else "",
            outputs_uri=_outputs_uri(row) if row.phase in SUCCESSFUL else "",
        )

    async def attempt(self, attempt: AttemptId) -> AttemptView | None:
        return await self._database.point(lambda tx: _attempt_view(tx, attempt))


def _outputs_uri(row: ActionRow) -> str:
    if row.action_type != TASK or not row.output_uri:
        return row.output_uri
    return locations.join(row.output_uri, locations.OUTPUTS)


def _signalled(row: ActionRow) -> common_pb2.Outputs | None:
    if row.value is None:
        return None
    outputs = common_pb2.Outputs()
    outputs.literals.add(name=CONDITION_OUTPUT, value=literals_pb2.Literal.FromString(row.value))
    return outputs


def _attempt_view(tx: Transaction, attempt: AttemptId) -> AttemptView | None:
    row = tx.actions.get(attempt.action)
    if row is None or not 1 <= attempt.number <= row.attempts:
        return None
    launched = tx.attempts.get(attempt)
    bundle, report = "", ""
    if row.action_type == TASK and row.spec_digest is not None:
        body = tx.specs.get(row.spec_digest)
        if body is not None:
            spec = task_definition_pb2.TaskSpec.FromString(body)
            bundle = bundle_uri(spec.task_template)
            if spec.task_template.metadata.generates_deck.value:
                report = _report_uri(row, attempt, launched is not None)
    if launched is None:
        return AttemptView(over=row.terminal or attempt.number < row.attempts, bundle_uri=bundle, report_uri=report)
    return AttemptView(
        launched=True,
        over=row.terminal or attempt.number < row.attempts or launched.archived_at is not None,
        log_uri=launched.log_uri,
        report_uri=report,
        bundle_uri=bundle,
    )


def _report_uri(row: ActionRow, attempt: AttemptId, launched: bool) -> str:
    """An action that took over outputs (from the cache, or recovered) shows the report beside them."""
    if not launched and row.phase in SUCCESSFUL and row.output_uri:
        return locations.join(row.output_uri, locations.REPORT)
    if not row.run_output_base:
        # A client runs it (TrackedRunService), and uploads reports below the folder of the inputs.
        folder = row.input_uri.removesuffix(f"/{locations.INPUTS}")
        return locations.join(folder, str(attempt.number), locations.REPORT) if folder else ""
    prefix = locations.attempt_prefix(row.run_output_base, row.id.name, attempt.number)
    return locations.join(prefix, locations.REPORT)
