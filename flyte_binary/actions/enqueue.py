"""Enqueue: a parent asks for a child task, records a trace, or opens a condition.

Idempotent by action id: the second time is `already_exists`, which the SDK takes for success. The
root row is held against a concurrent abort, so that nothing starts below an ending ancestor
(source: reference backend behaviour, with the lost and unguarded cases closed).
"""

from __future__ import annotations

from collections import OrderedDict

from flyteidl2.actions import actions_service_pb2
from flyteidl2.core import execution_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2
from google.protobuf.message import DecodeError

from flyte_binary.actions.new_rows import CONDITION, TASK, Spec, condition_row, task_row, trace_row
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.moves import record
from flyte_binary.db.recovery import as_recovered, recovered_run
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.action_events import make_event
from flyte_binary.domain.errors import Aborted, AlreadyExists, InvalidArgument, NotFound
from flyte_binary.domain.ids import ROOT_ACTION
from flyte_binary.domain.phases import SUCCESSFUL, Phase
from flyte_binary.rpc.require import require_action_id
from flyte_binary.storage.store import ObjectStore

ERROR_LIMIT_BYTES = 10 * 1024 * 1024
KNOWN_SPECS = 4096


class Enqueuer:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._known_specs: OrderedDict[str, None] = OrderedDict()

    async def enqueue(self, action: actions_service_pb2.Action, run_spec: task_run_pb2.RunSpec | None = None) -> None:
        """Answers once the row is committed.

        Raises `InvalidArgument` for a wrong request, `NotFound` for a missing run or parent,
        `Aborted` when the run or an ancestor has ended, `AlreadyExists` for the second time.
        """
        now = self._clock.now()
        row, spec = await self._row_of(action, run_spec, now)

        def operation(tx: Transaction) -> None:
            if spec is not None and spec.digest not in self._known_specs:
                tx.specs.put(spec.digest, spec.body, at=now)
            insert_action(tx, row, at=now)

        await self._database.write(operation, run=row.run_id)
        if spec is not None:
            self._remember(spec.digest)

    async def _row_of(
        self, action: actions_service_pb2.Action, run_spec: task_run_pb2.RunSpec | None, now: int
    ) -> tuple[ActionRow, Spec | None]:
        action_id = require_action_id(action.action_id, "action.action_id")
        parent = action.parent_action_name or None
        if (parent is None) != action_id.is_root:
            raise InvalidArgument(
                f"action.parent_action_name: only the root action {ROOT_ACTION} has no parent, got action "
                f"{action_id.name!r} with parent {parent!r}"
            )
        if not action.run_output_base:
            raise InvalidArgument("action.run_output_base is required: the folder that the run's outputs go to")
        if not self._store.covers(action.run_output_base):
            raise InvalidArgument(
                f"action.run_output_base {action.run_output_base!r} is outside the object store, {self._store.base_uri}"
            )
        row = ActionRow(
            id=action_id,
            parent=parent,
            phase=Phase.QUEUED,
            action_type=TASK,
            action_group=action.group,
            input_uri=action.input_uri,
            run_output_base=action.run_output_base,
            created_at=now,
            updated_at=now,
            queued_at=now,
            run_spec=run_spec.SerializeToString() if run_spec is not None and parent is None else None,
        )
        match action.WhichOneof("spec"):
            case "task":
                return task_row(row, action.task)
            case "trace":
                return await self._trace_row(row, action.trace)
            case "condition":
                return condition_row(row, action.condition), None
            case _:
                raise InvalidArgument(
                    "action.spec is required: one of task, trace or condition. A condition that arrives without "
                    "one was sent over the older queue; set _U_USE_ACTIONS=1 in the task's environment"
                )

    async def _trace_row(self, row: ActionRow, trace: run_definition_pb2.TraceAction) -> tuple[ActionRow, Spec | None]:
        """A trace has run inside its parent already; its error, if any, lies beside its inputs."""
        error = await self._trace_error(row) if trace.phase == Phase.FAILED else None
        return trace_row(row, trace, error)

    async def _trace_error(self, row: ActionRow) -> execution_pb2.ExecutionError:
        uri = locations.join(row.run_output_base, row.id.name, locations.ERROR)
        try:
            body = await self._store.get(uri, limit_bytes=ERROR_LIMIT_BYTES)
            document = execution_pb2.ErrorDocument.FromString(body)
        except (NotFound, DecodeError):
            return execution_pb2.ExecutionError(
                code="TraceFailed", message="the traced call failed", kind=execution_pb2.ExecutionError.USER
            )
        error = document.error
        return execution_pb2.ExecutionError(
            code=error.code, message=error.message, kind=error.origin, recoverability=error.kind, error_uri=uri
        )

    def _remember(self, digest: str) -> None:
        self._known_specs[digest] = None
        self._known_specs.move_to_end(digest)
        if len(self._known_specs) > KNOWN_SPECS:
            self._known_specs.popitem(last=False)


def insert_action(tx: Transaction, row: ActionRow, *, at: int) -> None:
    """Insert below a living parent, replaying what a recovered run has done before."""
    if row.parent is None:
        if not tx.actions.insert(row):
            raise AlreadyExists(f"run {row.run_id} exists")
        tx.changed_action(row.id, None)
        return
    # Held until the commit, so that whoever ends one of them sees the child that comes below it.
    root = tx.actions.lock_shared(row.run_id.root())
    if root is None:
        raise NotFound(f"run {row.run_id} does not exist")
    _require_living_parent(tx, row, root)
    made = _recovered(tx, row, root) or row
    if tx.actions.insert(made):
        tx.changed_action(row.id, row.parent)
        return
    _again(tx, made, at=at)


def _require_living_parent(tx: Transaction, row: ActionRow, root: ActionRow) -> None:
    parent = root if row.parent == ROOT_ACTION else tx.actions.lock_shared(row.run_id.action(row.parent or ""))
    if parent is None:
        raise NotFound(f"parent action {row.parent!r} of run {row.run_id} does not exist")
    ended = next((above for above in (parent, root) if above.terminal), None)
    if ended is not None:
        raise Aborted(f"action {ended.id} has ended ({ended.phase.name}); nothing can be started below it")


def _again(tx: Transaction, row: ActionRow, *, at: int) -> None:
    """The id exists: a repetition, or a superseded child that a later attempt of its parent asks for."""
    existing = tx.actions.get(row.id)
    if existing is None or not existing.superseded:
        raise AlreadyExists(f"action {row.id} exists")
    changes = {
        "attempts": existing.attempts + 1,
        "phase": int(row.phase),
        "input_uri": row.input_uri,
        "output_uri": row.output_uri,
        "cache_key": row.cache_key,
        "spec_digest": row.spec_digest,
        "detail": row.detail,
        "error": row.error,
        "ended_at": row.ended_at,
        "not_before": row.not_before,
        "recovered_from": row.recovered_from,
    }
    if row.action_type != TASK:
        # Nothing hangs below it that would then be older than itself, so it may say when it was really made.
        changes["created_at"] = row.created_at
    if not tx.actions.reopen(row.id, at=at, **changes):
        raise AlreadyExists(f"action {row.id} exists")
    if row.action_type == TASK and not row.terminal:
        record(tx, make_event(row.id, existing.attempts + 1, row.phase, at=at, version=existing.version + 1))
    tx.changed_action(row.id, row.parent)


def _recovered(tx: Transaction, row: ActionRow, root: ActionRow) -> ActionRow | None:
    """In a run that recovers another, what succeeded there under the same name is not run again."""
    origin = recovered_run(root)
    if origin is None or row.action_type == CONDITION or row.phase != Phase.QUEUED:
        return None
    run, force_rerun = origin
    if row.id.name in force_rerun:
        return None
    before = tx.actions.get(run.action(row.id.name))
    if before is None or before.phase not in SUCCESSFUL:
        return None
    return as_recovered(row, before)
