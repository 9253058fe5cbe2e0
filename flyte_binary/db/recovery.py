"""Which run a run recovers, and how an outcome of it is taken over."""

from __future__ import annotations

from dataclasses import replace

from flyteidl2.common import run_pb2
from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase


def as_recovered(row: ActionRow, before: ActionRow) -> ActionRow:
    """`row` with the outcome of `before`; chains of recoveries lead to the first origin."""
    origin = before.recovered_from or before.id.to_proto().SerializeToString()
    return replace(
        row,
        phase=Phase.RECOVERED,
        output_uri=before.output_uri,
        recovered_from=origin,
        ended_at=row.created_at,
    )


def recovered_run(root: ActionRow) -> tuple[RunId, frozenset[str]] | None:
    """The run that `root`'s run recovers, and the actions that it runs again all the same."""
    if root.relation is None:
        return None
    relation = run_pb2.Relation.FromString(root.relation)
    if relation.relation_type != run_pb2.RELATION_TYPE_RECOVER:
        return None
    spec = task_run_pb2.RunSpec.FromString(root.run_spec or b"")
    return RunId.from_proto(relation.related_to), frozenset(spec.recover.force_rerun_actions)
