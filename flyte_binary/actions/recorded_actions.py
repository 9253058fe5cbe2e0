"""Actions that an executor outside this server runs and tells us about.

Such an action has no `run_output_base`: that is how our own executor knows that it is not its to launch.
"""

from __future__ import annotations

from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2

from flyte_binary.actions.new_rows import Spec, condition_row, task_row, trace_row
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import Aborted, InvalidArgument, NotFound
from flyte_binary.domain.phases import Phase
from flyte_binary.rpc.require import require_action_id


def row_from_request(request: internal_pb2.RecordActionRequest, now: int) -> tuple[ActionRow, Spec | None]:
    """The row to insert and the spec to store with it. Raises `InvalidArgument`."""
    action = require_action_id(request.action_id, "action_id")
    parent = request.parent or None
    if (parent is None) != action.is_root:
        raise InvalidArgument(
            f"parent: the root action of a run, and it alone, has none; action {action.name!r} "
            f"came with {request.parent!r}"
        )
    row = ActionRow(
        id=action,
        parent=parent,
        phase=Phase.QUEUED,
        action_type=0,
        action_group=request.group,
        input_uri=request.input_uri,
        recovered_from=request.recovered_from.SerializeToString() if request.HasField("recovered_from") else None,
        created_at=now,
        updated_at=now,
        queued_at=now,
    )
    match request.WhichOneof("spec"):
        case "task":
            return task_row(row, request.task)
        case "trace":
            return trace_row(row, request.trace, None)
        case "condition":
            return condition_row(row, request.condition), None
        case _:
            raise InvalidArgument("spec is required: one of task, trace or condition")


def record_action(tx: Transaction, row: ActionRow) -> None:
    """Insert below a living parent; an action that is there already is left as it is.

    What has ended already (a trace) is taken late as well: nothing is left unfinished by it. Raises `NotFound` and
    `Aborted`.
    """
    root = tx.actions.lock_shared(row.run_id.root())
    if root is None:
        raise NotFound(f"action_id: run {row.run_id} does not exist; it begins with CreateRun")
    if tx.actions.get(row.id) is not None:
        return
    parent = None if row.parent_id is None else tx.actions.lock_shared(row.parent_id)
    if parent is None:
        raise NotFound(f"parent: action {row.parent!r} of run {row.run_id} does not exist")
    if parent.terminal and not row.terminal:
        raise Aborted(f"parent: action {parent.id} has ended ({parent.phase.name})")
    if tx.actions.insert(row):
        tx.changed_action(row.id, row.parent)
