"""The row of a new run's root action, and what is stored beside it: a pure function of order, spec and time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from flyteidl2.common import run_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.domain import locations
from flyte_binary.domain.cache_keys import cache_key
from flyte_binary.domain.ids import ProjectId, RunId
from flyte_binary.domain.inputs_hash import inputs_hash
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.runs.order import RunOrder, task_id_of
from flyte_binary.runs.view.action import TASK

SYS_PATH_VARIABLE = "_F_SYS_PATH"
"""`flyte deploy` puts it into the template; ephemeral specs get it from the run instead."""

_SETS_START_TIME = (2, 3, 6)
"""The first SDK version whose runtime takes the start time from the run."""

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInputs:
    uri: str
    """The file."""

    hash: str
    """Of what counts for the cache; `domain/inputs_hash.py`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    row: ActionRow
    run_spec: task_run_pb2.RunSpec
    spec_body: bytes
    """Stored under `row.spec_digest`."""

    @property
    def labels(self) -> Mapping[str, str]:
        return self.run_spec.labels.values


def plan_run(
    order: RunOrder,
    spec: task_definition_pb2.TaskSpec,
    inputs: StoredInputs,
    *,
    base_uri: str,
    created_by: bytes | None,
    created_by_subject: str,
    now: int,
) -> RunPlan:
    """`base_uri` is the store's; `now` in microseconds."""
    run_spec = _completed_run_spec(order, spec, base_uri, now)
    digest, body = digest_of(spec)
    fired_by = order.fired_by
    task = order.task or task_id_of(spec, ProjectId(order.run.project, order.run.domain))
    row = ActionRow(
        id=order.run.root(),
        parent=None,
        phase=Phase.QUEUED,
        action_type=TASK,
        task=task,
        task_type=spec.task_template.type,
        short_name=spec.short_name,
        function_name=task.name,
        search_name=task.name.casefold(),
        environment_name=spec.environment.name,
        spec_digest=digest,
        input_uri=inputs.uri,
        run_output_base=run_output_base(order, base_uri),
        cache_key=cache_key(spec.task_template, inputs.hash),
        run_spec=run_spec.SerializeToString(),
        run_source=order.source,
        relation=_stored_relation(run_spec),
        trigger_name=fired_by.trigger.name if fired_by else "",
        trigger_task_name=fired_by.trigger.task_name if fired_by else "",
        trigger_revision=fired_by.revision if fired_by else 0,
        created_by=created_by,
        created_by_subject=created_by_subject,
        created_at=now,
        updated_at=now,
        queued_at=now,
    )
    return RunPlan(row=row, run_spec=run_spec, spec_body=body)


def run_output_base(order: RunOrder, base_uri: str) -> str:
    base = (order.run_spec.run_base_dir or base_uri).rstrip("/")
    return locations.join(base, order.run.project, order.run.domain, order.run.name)


def offloaded_inputs(order: RunOrder) -> StoredInputs:
    """Inputs that were uploaded before: callers name the folder, or the file itself."""
    assert order.offloaded is not None
    return StoredInputs(uri=locations.inputs_uri(order.offloaded.uri), hash=order.offloaded.inputs_hash)


def completed_inputs(order: RunOrder, spec: task_definition_pb2.TaskSpec) -> common_pb2.Inputs:
    """Inputs of the request, with the task's defaults for those that it leaves out."""
    inputs = common_pb2.Inputs()
    if order.inputs is not None:
        inputs.CopyFrom(order.inputs)
    given = {literal.name for literal in inputs.literals}
    for default in spec.default_inputs:
        if default.name not in given and default.parameter.HasField("default"):
            inputs.literals.add(name=default.name, value=default.parameter.default)
    return inputs


def hash_of(inputs: common_pb2.Inputs, spec: task_definition_pb2.TaskSpec) -> str:
    """Empty for a task that is not cached: nobody asks for it."""
    metadata = spec.task_template.metadata
    if not metadata.discoverable:
        return ""
    return inputs_hash(inputs, ignored=frozenset(metadata.cache_ignore_input_vars))


def recovered_run(order: RunOrder) -> RunId | None:
    """The run that is recovered, which must exist."""
    relation = order.run_spec.relation
    if relation.relation_type != run_pb2.RELATION_TYPE_RECOVER:
        return None
    return RunId.from_proto(relation.related_to)


def _stored_relation(run_spec: task_run_pb2.RunSpec) -> bytes | None:
    """Without the organisation, which the run's spec keeps as it came."""
    if not run_spec.HasField("relation"):
        return None
    related_to = RunId.from_proto(run_spec.relation.related_to).to_proto()
    return run_pb2.Relation(related_to=related_to, relation_type=run_spec.relation.relation_type).SerializeToString()


def _completed_run_spec(
    order: RunOrder, spec: task_definition_pb2.TaskSpec, base_uri: str, now: int
) -> task_run_pb2.RunSpec:
    run_spec = task_run_pb2.RunSpec()
    run_spec.CopyFrom(order.run_spec)
    if not run_spec.raw_data_storage.raw_data_prefix:
        # The server's own place, also for a run with a base folder of its own (reference backend behaviour).
        run_spec.raw_data_storage.raw_data_prefix = base_uri
    if not run_spec.HasField("run_start_time") and _takes_start_time(spec):
        run_spec.run_start_time.CopyFrom(_start_time(order, now))
    if run_spec.task_spec_source == task_run_pb2.TASK_SPEC_SOURCE_UNSPECIFIED:
        run_spec.task_spec_source = _source_of(order, spec)
    return run_spec


def _start_time(order: RunOrder, now: int) -> Timestamp:
    return order.start_time if order.start_time is not None else micros_to_proto(now)


def _takes_start_time(spec: task_definition_pb2.TaskSpec) -> bool:
    found = _VERSION.search(spec.task_template.metadata.runtime.version)
    return found is not None and tuple(int(part) for part in found.groups()) >= _SETS_START_TIME


def _source_of(order: RunOrder, spec: task_definition_pb2.TaskSpec) -> task_run_pb2.TaskSpecSource:
    """What `rerun` asks for to know whose environment the code was bundled in."""
    baked_in = any(variable.key == SYS_PATH_VARIABLE for variable in spec.task_template.container.env)
    if order.task is not None or order.trigger is not None or baked_in:
        return task_run_pb2.TASK_SPEC_SOURCE_DEPLOYED
    return task_run_pb2.TASK_SPEC_SOURCE_EPHEMERAL
