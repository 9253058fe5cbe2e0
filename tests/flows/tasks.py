"""Task templates and specs as the SDK makes them, with what a test asks for."""

from __future__ import annotations

from datetime import timedelta

from flyteidl2.core import tasks_pb2
from flyteidl2.task import task_definition_pb2

Names = tasks_pb2.Resources.ResourceName

ARGS = ("--inputs", "{{.input}}", "--outputs-path", "{{.outputPrefix}}", "--run-name", "{{.runName}}")


def task(
    name: str = "env.leaf",
    *,
    cores: str = "1",
    memory: str = "",
    retries: int = 0,
    backoff: timedelta | None = None,
    max_runtime: timedelta | None = None,
    queued_timeout: timedelta | None = None,
    deadline: timedelta | None = None,
    cached: bool = False,
    serializable: bool = False,
    max_age: timedelta | None = None,
    report: bool = False,
) -> task_definition_pb2.TaskSpec:
    container = tasks_pb2.Container(image="auto", command=["a0"], args=ARGS)
    for resource, value in ((Names.CPU, cores), (Names.MEMORY, memory)):
        if value:
            container.resources.requests.add(name=resource, value=value)
    template = tasks_pb2.TaskTemplate(type="python", container=container)
    template.id.name = name
    metadata = template.metadata
    metadata.discoverable = cached or serializable
    metadata.cache_serializable = serializable
    metadata.generates_deck.value = report
    metadata.retries.retries = retries
    for field, value in (
        (metadata.retries.backoff.base, backoff),
        (metadata.timeout, max_runtime),
        (metadata.timeouts.queued_timeout, queued_timeout),
        (metadata.timeouts.deadline, deadline),
        (metadata.cache_max_age, max_age),
    ):
        if value is not None:
            field.FromTimedelta(value)
    return task_definition_pb2.TaskSpec(task_template=template, short_name=name.rpartition(".")[2])
