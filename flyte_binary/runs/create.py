"""CreateRun: one write transaction, after all checks; acknowledged means committed.

With inputs in the store already, which is what the SDK sends, nothing else is read or written. Inline inputs are put
into the store before the transaction, in a folder named by their content, so that nothing of another run is touched
if the name turns out to be taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import replace

from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_service_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.run_labels import insert_labels
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.errors import AlreadyExists, InvalidArgument, NotFound
from flyte_binary.domain.ids import RunId, TaskId
from flyte_binary.rpc.identity import Caller
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.order import RunOrder, order_from
from flyte_binary.runs.plan import (
    RunPlan,
    StoredInputs,
    completed_inputs,
    hash_of,
    offloaded_inputs,
    plan_run,
    recovered_run,
    run_output_base,
)
from flyte_binary.runs.projects.scope import require_domain, require_project
from flyte_binary.runs.settings.effects import with_settings
from flyte_binary.runs.triggers.orders import TriggerOrders
from flyte_binary.runs.view.action import run_of
from flyte_binary.storage.store import ObjectStore


class RunCreator:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock, domains: Collection[str]) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._domains = domains
        self._trigger_orders = TriggerOrders(database, store, clock)

    async def create(
        self, request: run_service_pb2.CreateRunRequest, caller: Caller
    ) -> run_service_pb2.CreateRunResponse:
        """Raises `InvalidArgument` naming the field, `NotFound` for an unknown project, domain, task or trigger, and
        `AlreadyExists` if the name is taken."""
        plan = await self.start(order_from(request), stored_identity_of(caller), caller.subject)
        return run_service_pb2.CreateRunResponse(run=run_of(plan.row, plan.run_spec))

    async def start(
        self,
        order: RunOrder,
        created_by: bytes | None,
        created_by_subject: str,
        *,
        before: Callable[[Transaction], None] | None = None,
    ) -> RunPlan:
        """`create` for an order that has been checked. `before` is part of the transaction that makes the run, and
        keeps it from being made by raising."""
        require_domain(order.run.domain, self._domains)
        if order.trigger is not None:
            order = await self._trigger_orders.completed(order)
        order = await self._with_settings(order)
        self._require_in_store("run_spec.run_base_dir", order.run_spec.run_base_dir)
        if order.offloaded is not None:
            self._require_in_store("offloaded_input_data.uri", order.offloaded.uri)
        spec = order.spec
        if order.offloaded is not None:
            inputs = offloaded_inputs(order)
        else:
            spec = await self._database.point(lambda tx: _admitted(tx, order))
            inputs = await self._put_inputs(order, spec)

        def planned(found: task_definition_pb2.TaskSpec) -> RunPlan:
            return plan_run(
                order,
                found,
                inputs,
                base_uri=self._store.base_uri,
                created_by=created_by,
                created_by_subject=created_by_subject,
                now=self._clock.now(),
            )

        ready = None if spec is None else planned(spec)

        def write(tx: Transaction) -> RunPlan:
            if before is not None:
                before(tx)
            admitted = _admitted(tx, order, check_name=False)
            plan = ready or planned(admitted)
            _insert(tx, plan)
            if order.fired_by is not None:
                tx.triggers.fired(order.fired_by.trigger, at=plan.row.created_at)
            return plan

        return await self._database.write(write, run=order.run)

    async def _with_settings(self, order: RunOrder) -> RunOrder:
        """What neither the request nor its trigger says comes from the project, its domain, the organization."""
        run = order.run
        settings = await self._database.point(lambda tx: tx.settings.resolved(run.domain, run.project))
        return order if settings is None else replace(order, run_spec=with_settings(order.run_spec, settings))

    def _require_in_store(self, field: str, uri: str) -> None:
        """What the server is to read later must be where it may read."""
        if uri and not self._store.covers(uri):
            raise InvalidArgument(f"{field} {uri!r} is outside the object store, {self._store.base_uri}")

    async def _put_inputs(self, order: RunOrder, spec: task_definition_pb2.TaskSpec) -> StoredInputs:
        inputs = completed_inputs(order, spec)
        body = inputs.SerializeToString(deterministic=True)
        content = hashlib.sha256(body).hexdigest()[:16]
        base = run_output_base(order, self._store.base_uri)
        uri = locations.join(base, "inputs", content, locations.INPUTS)
        await self._store.put(uri, body)
        return StoredInputs(uri=uri, hash=hash_of(inputs, spec))


def _admitted(tx: Transaction, order: RunOrder, *, check_name: bool = True) -> task_definition_pb2.TaskSpec:
    """The spec to run, if everything that the order refers to exists and, with `check_name`, its name is free."""
    require_project(tx, order.run.project)
    if check_name and tx.actions.get(order.run.root()) is not None:
        raise AlreadyExists(f"run {order.run} already exists")
    if check_name:
        _refuse_name_in_removal(tx, order.run)
    recovered = recovered_run(order)
    if recovered is not None and tx.actions.get(recovered.root()) is None:
        raise NotFound(f"run_spec.relation.related_to: run {recovered} not found")
    return order.spec if order.spec is not None else _deployed_spec(tx, order.task)


def _deployed_spec(tx: Transaction, task: TaskId | None) -> task_definition_pb2.TaskSpec:
    row = None if task is None else tx.tasks.get(task)
    body = None if row is None else tx.specs.get(row.spec_digest)
    if body is None:
        raise NotFound(f"task {task} not found")
    return task_definition_pb2.TaskSpec.FromString(body)


def _insert(tx: Transaction, plan: RunPlan) -> None:
    row = plan.row
    if not tx.actions.insert(row):
        raise AlreadyExists(f"run {row.run_id} already exists")
    # After the insert: whoever removes the run of that name has committed by then.
    _refuse_name_in_removal(tx, row.run_id)
    if row.spec_digest is not None:
        tx.specs.put(row.spec_digest, plan.spec_body, at=row.created_at)
    insert_labels(tx.connection, row.run_id, plan.labels)
    tx.changed_action(row.id, None)


def _refuse_name_in_removal(tx: Transaction, run: RunId) -> None:
    """The new run's files would go with those of the old one (`retention` in the configuration)."""
    if tx.retention.is_being_removed(run):
        raise AlreadyExists(f"run {run} was removed, and its files are still being removed: choose another name")
