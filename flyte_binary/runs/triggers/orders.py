"""A run that is asked for by the name of a trigger: its task, its inputs and its settings."""

from __future__ import annotations

from dataclasses import replace

from flyteidl2.task import run_pb2, task_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerRow
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import TriggerId
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.runs.order import FiredBy, RunOrder
from flyte_binary.runs.triggers.artifact_inputs import with_artifact
from flyte_binary.runs.triggers.fit import task_spec
from flyte_binary.runs.triggers.inputs import with_trigger_inputs
from flyte_binary.runs.triggers.view import automation_of, spec_of
from flyte_binary.storage.store import ObjectStore


class TriggerOrders:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock) -> None:
        self._database = database
        self._store = store
        self._clock = clock

    async def completed(self, order: RunOrder) -> RunOrder:
        """The order with whatever it leaves to its trigger; also if the trigger is not active.

        Raises `NotFound` for a trigger, or the version of its task, that does not exist.
        """
        assert order.trigger is not None
        wanted = TriggerId.from_proto(order.trigger)
        row, spec = await self._database.point(lambda tx: _found(tx, wanted))
        if (row.id.project, row.id.domain) != (order.run.project, order.run.domain):
            raise InvalidArgument(
                f"trigger_name: trigger {row.id} belongs to another project or domain than the run, {order.run}"
            )
        trigger = spec_of(row)
        run_spec = order.run_spec
        if not run_spec.ByteSize():
            run_spec = run_pb2.RunSpec()
            run_spec.CopyFrom(trigger.run_spec)
        completed = replace(
            order,
            task=row.task,
            run_spec=run_spec,
            start_time=run_spec.run_start_time
            if run_spec.HasField("run_start_time")
            else order.start_time or micros_to_proto(self._clock.now()),
            fired_by=FiredBy(row.id, row.revision),
        )
        automation = automation_of(row)
        if completed.artifact is not None:
            return await with_artifact(completed, completed.artifact, trigger, automation.artifact, spec, self._store)
        kickoff_arg = automation.schedule.kickoff_time_input_arg
        return await with_trigger_inputs(completed, trigger, kickoff_arg, spec, self._store)


def _found(tx: Transaction, wanted: TriggerId) -> tuple[TriggerRow, task_definition_pb2.TaskSpec]:
    row = tx.triggers.find(wanted)
    if row is None:
        raise NotFound(f"trigger {wanted} not found")
    return row, task_spec(tx, row.task)
