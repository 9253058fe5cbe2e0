"""Requests about triggers as the SDK sends them."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import interface_pb2, types_pb2
from flyteidl2.task import common_pb2, task_definition_pb2, task_service_pb2
from flyteidl2.trigger import trigger_definition_pb2, trigger_service_pb2

from tests.rpc.runs.messages import task_id, task_spec
from tests.rpc.triggers.conftest import World

TASK = "env.hello"


def named(name: str = "daily", task: str = TASK, project: str = "flytesnacks") -> identifier_pb2.TriggerName:
    return identifier_pb2.TriggerName(org="127", project=project, domain="development", name=name, task_name=task)


def cron(expression: str, zone: str = "UTC", kickoff: str = "") -> common_pb2.TriggerAutomationSpec:
    schedule = common_pb2.Schedule(
        cron=common_pb2.Cron(expression=expression, timezone=zone), kickoff_time_input_arg=kickoff
    )
    return common_pb2.TriggerAutomationSpec(type=common_pb2.TYPE_SCHEDULE, schedule=schedule)


def deployment(
    name: str = "daily",
    automation: common_pb2.TriggerAutomationSpec | None = None,
    *,
    task: str = TASK,
    version: str = "v1",
    active: bool = True,
    revision: int = 0,
    inputs: common_pb2.Inputs | None = None,
    offloaded: run_pb2.OffloadedInputData | None = None,
) -> trigger_service_pb2.DeployTriggerRequest:
    return trigger_service_pb2.DeployTriggerRequest(
        name=named(name, task),
        revision=revision,
        spec=trigger_definition_pb2.TriggerSpec(
            active=active, task_version=version, inputs=inputs, offloaded_input_data=offloaded
        ),
        automation_spec=automation or cron("0 0 * * *"),
    )


def spec_with_time(name: str = TASK, version: str = "v1", *, cached: bool = False) -> task_definition_pb2.TaskSpec:
    """A task with the inputs `x`, a number, and `t`, a time."""
    spec = task_spec(name, version, cached=cached)
    time = interface_pb2.Variable(type=types_pb2.LiteralType(simple=types_pb2.DATETIME))
    spec.task_template.interface.inputs.variables.append(interface_pb2.VariableEntry(key="t", value=time))
    return spec


def task_trigger(
    name: str, automation: common_pb2.TriggerAutomationSpec | None = None, *, active: bool = True
) -> task_definition_pb2.TaskTrigger:
    return task_definition_pb2.TaskTrigger(
        name=name,
        spec=task_definition_pb2.TaskTriggerSpec(active=active),
        automation_spec=automation or cron("0 0 * * *"),
    )


async def deploy_task(
    world: World,
    *triggers: task_definition_pb2.TaskTrigger,
    name: str = TASK,
    version: str = "v1",
    cached: bool = False,
) -> None:
    request = task_service_pb2.DeployTaskRequest(
        task_id=task_id(name, version), spec=spec_with_time(name, version, cached=cached), triggers=triggers
    )
    await world.tasks.deploy_task(request)


async def deploy(
    world: World, request: trigger_service_pb2.DeployTriggerRequest
) -> trigger_definition_pb2.TriggerDetails:
    return (await world.triggers.deploy_trigger(request)).trigger


async def details(world: World, name: str = "daily", task: str = TASK) -> trigger_definition_pb2.TriggerDetails:
    request = trigger_service_pb2.GetTriggerDetailsRequest(name=named(name, task))
    return (await world.triggers.get_trigger_details(request)).trigger


async def set_active(world: World, active: bool, *names: str) -> None:
    request = trigger_service_pb2.UpdateTriggersRequest(names=[named(name) for name in names], active=active)
    await world.triggers.update_triggers(request)


async def delete(world: World, *names: str) -> None:
    await world.triggers.delete_triggers(
        trigger_service_pb2.DeleteTriggersRequest(names=[named(name) for name in names])
    )


async def listed(world: World, task: str | None = None) -> list[tuple[str, bool]]:
    request = trigger_service_pb2.ListTriggersRequest()
    if task is None:
        request.project_id.CopyFrom(identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="development"))
    else:
        request.task_name.CopyFrom(task_definition_pb2.TaskName(project="flytesnacks", domain="development", name=task))
    response = await world.triggers.list_triggers(request)
    return [(trigger.id.name.name, trigger.active) for trigger in response.triggers]
