"""CreateRun of a tracked run: its root action, which only the client's reports will move.

The row has no `run_output_base`, which is how the executor knows that it is not its to launch, and the source
`RUN_SOURCE_TRACKED`, which is how this service knows its runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace

from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2
from flyteidl2.workflow import tracked_run_service_pb2 as pb

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.run_labels import insert_labels
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.errors import AlreadyExists, InvalidArgument
from flyte_binary.domain.timestamps import proto_to_micros
from flyte_binary.rpc.identity import Caller
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.order import RunOrder, order_from
from flyte_binary.runs.plan import RunPlan, StoredInputs, plan_run
from flyte_binary.runs.projects.scope import require_domain, require_project
from flyte_binary.runs.triggers.fit import task_spec
from flyte_binary.runs.view.action import run_of
from flyte_binary.storage.store import ObjectStore

RESERVED = ("r", "u")
"""Beginnings of the names that platforms give to runs themselves; the SDK refuses them too."""


class TrackedRunCreator:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock, domains: Collection[str]) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._domains = domains

    async def create(self, request: pb.CreateTrackedRunRequest, caller: Caller) -> run_service_pb2.CreateRunResponse:
        """Raises `InvalidArgument` naming the field, `NotFound` for an unknown project, domain or task, and
        `AlreadyExists` if the name is taken."""
        order = order_from(_run_request(request))
        require_domain(order.run.domain, self._domains)
        uri = "" if order.offloaded is None else order.offloaded.uri
        if uri and not self._store.covers(uri):
            raise InvalidArgument(
                f"offloaded_input_data.uri {uri!r} is outside the object store, {self._store.base_uri}"
            )
        now = self._clock.now()

        def write(tx: Transaction) -> RunPlan:
            require_project(tx, order.run.project)
            plan = self._plan(order, order.spec or _deployed(tx, order), caller, now)
            _insert(tx, plan)
            return plan

        plan = await self._database.write(write, run=order.run)
        return run_service_pb2.CreateRunResponse(run=run_of(plan.row, plan.run_spec))

    def _plan(self, order: RunOrder, spec: task_definition_pb2.TaskSpec, caller: Caller, now: int) -> RunPlan:
        offloaded = order.offloaded
        inputs = StoredInputs(uri="", hash="")
        if offloaded is not None:
            inputs = StoredInputs(uri=locations.inputs_uri(offloaded.uri), hash=offloaded.inputs_hash)
        plan = plan_run(
            order,
            spec,
            inputs,
            base_uri=self._store.base_uri,
            created_by=stored_identity_of(caller),
            created_by_subject=caller.subject,
            now=now,
        )
        started = now if order.start_time is None else min(now, max(0, proto_to_micros(order.start_time)))
        # What the client caches is its own affair: no key, so that no entry is made of it here.
        row = replace(plan.row, run_output_base="", cache_key="", created_at=started, queued_at=started)
        return replace(plan, row=row)


def _run_request(request: pb.CreateTrackedRunRequest) -> run_service_pb2.CreateRunRequest:
    """What RunService would be asked for the same run: its checks are ours."""
    if request.WhichOneof("task") is None:
        raise InvalidArgument("task is required: one of task_id or task_spec")
    run_spec = task_run_pb2.RunSpec()
    run_spec.CopyFrom(request.run_spec)
    if request.labels:
        run_spec.labels.values.update(request.labels)
    asked = run_service_pb2.CreateRunRequest(run_spec=run_spec, source=run_definition_pb2.RUN_SOURCE_TRACKED)
    for field in ("task_id", "task_spec", "offloaded_input_data", "run_start_time"):
        if request.HasField(field):
            getattr(asked, field).CopyFrom(getattr(request, field))
    _name(asked, request)
    return asked


def _name(asked: run_service_pb2.CreateRunRequest, request: pb.CreateTrackedRunRequest) -> None:
    match request.WhichOneof("id"):
        case "run_id":
            asked.run_id.CopyFrom(request.run_id)
            if request.run_id.name.startswith(RESERVED):
                raise InvalidArgument(
                    f"run_id.name {request.run_id.name!r}: names of tracked runs do not start with 'r' or 'u', "
                    "which are kept for runs that a platform names"
                )
        case "project_id":
            asked.run_id.project = request.project_id.name
            asked.run_id.domain = request.project_id.domain
            asked.run_id.name = f"local-{secrets.token_hex(8)}"
        case _:
            raise InvalidArgument("id is required: run_id, or project_id for a name of the server's choice")


def _deployed(tx: Transaction, order: RunOrder) -> task_definition_pb2.TaskSpec:
    assert order.task is not None
    return task_spec(tx, order.task)


def _insert(tx: Transaction, plan: RunPlan) -> None:
    row = plan.row
    if not tx.actions.insert(row):
        raise AlreadyExists(f"run {row.run_id} already exists")
    if row.spec_digest is not None:
        tx.specs.put(row.spec_digest, plan.spec_body, at=row.updated_at)
    insert_labels(tx.connection, row.run_id, plan.labels)
    tx.changed_action(row.id, None)
