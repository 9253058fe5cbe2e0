"""From a task template to the attempt that a backend can run. Pure.

The environment variables follow the precedence of the SDK runtime's contract: template, run,
reserved ones last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC

from flyteidl2.core import tasks_pb2
from google.protobuf.json_format import MessageToDict

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain import locations
from flyte_binary.domain.code_bundles import bundle_in_arguments
from flyte_binary.domain.placeholders import render
from flyte_binary.domain.timestamps import from_micros
from flyte_binary.executor.backend import AttemptSpec
from flyte_binary.executor.build_image import FORCE, is_build
from flyte_binary.executor.facts import RunFacts, TaskFacts, resources_for
from flyte_binary.executor.secrets import SecretRequest, problems_of, requested_secrets

DEFAULT_ORG = "default"
"""The runtime refuses an empty organisation; any text serves."""


class CannotRun(Exception):
    """The task can never run on this backend; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What all tasks together are given here."""

    cores: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict[str, str])
    image: str = ""


def make_attempt(
    row: ActionRow, task: TaskFacts, run: RunFacts, *, nonce: str, log_limit_bytes: int, machine: Machine
) -> AttemptSpec:
    """The attempt `row.attempts` of the action. Raises `CannotRun`."""
    template = task.spec.task_template
    command = _command_of(template)
    argv = render(command.argv, _placeholders(row, run))
    if is_build(argv) and run.overwrite_cache:
        argv = (*argv, FORCE)
    resources = resources_for(task, run)
    return AttemptSpec(
        id=row.id.attempt(row.attempts),
        nonce=nonce,
        argv=argv,
        env={**command.env, **_run_env(run), **_reserved_env(row)},
        image=command.image,
        secrets=_secrets(row, template, run),
        bundle_uri=bundle_in_arguments(argv),
        cores=min(resources.cores, machine.cores),
        memory_limit_bytes=resources.memory_limit_bytes,
        log_limit_bytes=log_limit_bytes,
        notices=tuple(_notices(row, task, run, machine)) if row.attempts == 1 else (),
    )


def _command_of(template: tasks_pb2.TaskTemplate) -> _Command:
    match template.WhichOneof("target"):
        case "container":
            command = _container_command(template.container)
        case "k8s_pod":
            command = _pod_command(template)
        case _:
            raise CannotRun(f"a task of type {template.type!r} has no container and cannot run on this server")
    if not command.argv:
        raise CannotRun("the task's container has neither a command nor arguments")
    return command


def image_of(template: tasks_pb2.TaskTemplate) -> str:
    """Empty for a task without a container. Raises `CannotRun` for a pod without one for the task."""
    match template.WhichOneof("target"):
        case "container":
            return template.container.image
        case "k8s_pod":
            return _pod_command(template).image
        case _:
            return ""


def _container_command(container: tasks_pb2.Container) -> _Command:
    if container.data_config.enabled:
        raise CannotRun(
            "a raw container task needs its data copied in and out of the container by a sidecar; "
            "local processes have none: run it on Kubernetes"
        )
    return _Command(
        argv=[*container.command, *container.args],
        env={pair.key: pair.value for pair in container.env},
        image=container.image,
    )


def _pod_command(template: tasks_pb2.TaskTemplate) -> _Command:
    """The primary container of a pod template; the rest of the pod has no meaning for a process."""
    spec = MessageToDict(template.k8s_pod.pod_spec)
    wanted = template.k8s_pod.primary_container_name or template.config.get("primary_container_name", "primary")
    containers = spec.get("containers", [])
    primary = next((one for one in containers if one.get("name") == wanted), None)
    if primary is None:
        raise CannotRun(f"the pod template has no container named {wanted!r}")
    env = {pair["name"]: str(pair["value"]) for pair in primary.get("env", []) if "value" in pair and "name" in pair}
    argv = [str(part) for part in [*primary.get("command", []), *primary.get("args", [])]]
    return _Command(argv=argv, env=env, image=str(primary.get("image", "")))


def _placeholders(row: ActionRow, run: RunFacts) -> dict[str, str]:
    base, action, attempt = row.run_output_base, row.id.name, row.attempts
    inputs = locations.inputs_uri(row.input_uri)
    # The SDK strips the quotes: an empty argument would be lost by nobody but reads as a mistake.
    previous = locations.checkpoint_prefix(base, action, attempt - 1) if attempt > 1 else '""'
    return {
        "input": inputs,
        "inputprefix": inputs.removesuffix(f"/{locations.INPUTS}"),
        "outputprefix": locations.attempt_prefix(base, action, attempt),
        "rawoutputdataprefix": _raw_data_prefix(row, run),
        "checkpointoutputprefix": locations.checkpoint_prefix(base, action, attempt),
        "prevcheckpointprefix": previous,
        "perretryuniquekey": f"{row.id.run}_{action}_{attempt}".replace("-", "_"),
        "runname": row.id.run,
        "actionname": action,
        "runstarttime": run_start_time(run),
        "executionproject": row.id.project,
        "executiondomain": row.id.domain,
        "executionorg": DEFAULT_ORG,
        "podname": f"{row.id.run}-{action}-{attempt - 1}",
        "tasktemplatepath": "inline://taskTemplate",
    }


def _raw_data_prefix(row: ActionRow, run: RunFacts) -> str:
    chosen = run.run_spec.raw_data_storage.raw_data_prefix
    if chosen:
        return locations.join(chosen, row.id.run, row.id.name, str(row.attempts))
    return locations.raw_data_prefix(row.run_output_base, row.id.name, row.attempts)


def run_start_time(run: RunFacts) -> str:
    stamp = run.run_spec.run_start_time
    if run.run_spec.HasField("run_start_time"):
        return stamp.ToDatetime(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return from_micros(run.created_at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _run_env(run: RunFacts) -> dict[str, str]:
    return {pair.key: pair.value for pair in run.run_spec.envs.values}


def _secrets(row: ActionRow, template: tasks_pb2.TaskTemplate, run: RunFacts) -> tuple[SecretRequest, ...]:
    """The task's own and those of its run. They are above other variables of that name, but for the reserved ones."""
    requests = requested_secrets(template.security_context, run.run_spec.security_context)
    for problem in problems_of(requests, _reserved_env(row)):
        raise CannotRun(problem)
    return requests


def _reserved_env(row: ActionRow) -> dict[str, str]:
    return {
        "ACTION_NAME": row.id.name,
        "RUN_NAME": row.id.run,
        "FLYTE_INTERNAL_EXECUTION_PROJECT": row.id.project,
        "FLYTE_INTERNAL_EXECUTION_DOMAIN": row.id.domain,
        "FLYTE_ATTEMPT_NUMBER": str(row.attempts - 1),
        "_U_ORG_NAME": DEFAULT_ORG,
        "_U_RUN_BASE": row.run_output_base,
        "_U_USE_ACTIONS": "1",
    }


def _notices(row: ActionRow, task: TaskFacts, run: RunFacts, machine: Machine) -> Iterator[str]:
    """What was asked for and has no effect here, each said once."""
    asked, resources = task.resources, resources_for(task, run)
    if asked.cores > resources.cores:
        yield f"the task asks for {asked.cores:g} cores; the settings of its project allow {resources.cores:g}"
    if asked.memory_bytes > resources.memory_bytes:
        yield (
            f"the task asks for {asked.memory_bytes / 2**30:.4g} GiB of memory; the settings of its project allow "
            f"{resources.memory_bytes / 2**30:.4g} GiB"
        )
    if resources.cores > machine.cores:
        yield f"the task asks for {resources.cores:g} cores; this machine gives tasks {machine.cores:g}"
    if resources.memory_bytes > machine.memory_bytes:
        wanted, given = resources.memory_bytes / 2**30, machine.memory_bytes / 2**30
        yield f"the task asks for {wanted:.4g} GiB of memory; this machine gives tasks {given:.4g} GiB"
    if resources.gpus:
        yield f"the task asks for {resources.gpus} GPU(s); local processes are not given GPUs of their own"
    template = task.spec.task_template
    if template.HasField("k8s_pod"):
        yield "the task has a pod template; only its primary container's command and variables count here"
    if row.id.is_root:
        yield from _run_notices(run)


def _run_notices(run: RunFacts) -> Iterator[str]:
    spec = run.run_spec
    if spec.HasField("interruptible"):
        yield "interruptible has no effect on local processes"
    if spec.queue:
        yield f"queue {spec.queue!r} has no effect: this server has one queue"
    if spec.cluster_pool:
        yield f"cluster pool {spec.cluster_pool!r} has no effect: this server is one machine"
    if spec.security_context.run_as.k8s_service_account:
        yield "the service account has no effect on local processes"
    if spec.WhichOneof("notification_settings"):
        yield "notifications are stored, and not sent by this server"
