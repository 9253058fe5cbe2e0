"""Deploying, activating and deleting triggers, and the revisions that are left."""

from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.common import run_pb2
from flyteidl2.task import common_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.trigger import trigger_definition_pb2
from flyteidl2.trigger import trigger_service_pb2 as pb

from tests.rpc.runs.messages import inputs
from tests.rpc.triggers.conftest import World, refused
from tests.rpc.triggers.messages import (
    cron,
    delete,
    deploy,
    deploy_task,
    deployment,
    details,
    listed,
    named,
    set_active,
)

DEPLOY, ACTIVATE, DEACTIVATE, DELETE = (
    trigger_definition_pb2.TRIGGER_REVISION_ACTION_DEPLOY,
    trigger_definition_pb2.TRIGGER_REVISION_ACTION_ACTIVATE,
    trigger_definition_pb2.TRIGGER_REVISION_ACTION_DEACTIVATE,
    trigger_definition_pb2.TRIGGER_REVISION_ACTION_DELETE,
)


async def history(world: World, name: str = "daily") -> list[trigger_definition_pb2.TriggerRevision]:
    request = pb.GetTriggerRevisionHistoryRequest(name=named(name))
    return list((await world.triggers.get_trigger_revision_history(request)).triggers)


async def next_due(world: World, name: str = "daily") -> int | None:
    rows = await world.database.read(lambda tx: tx.triggers.due(2**62, after=None, limit=100))
    return next((row.next_due for row in rows if row.id.name == name), None)


async def test_a_deployed_trigger_comes_back_as_it_was_sent(world: World) -> None:
    await deploy_task(world)
    request = deployment(inputs=inputs(x=5))
    request.spec.description = "every night"
    request.spec.run_spec.queue = "gpu"
    deployed = await deploy(world, request)

    assert deployed.spec == request.spec
    assert (deployed.id.revision, deployed.id.name.org, deployed.id.name.name) == (1, "", "daily")
    assert deployed.automation_spec == cron("0 0 * * *")
    assert deployed.status.deployed_at.ToMicroseconds() == world.clock.now()
    assert deployed.status.updated_at == deployed.status.deployed_at
    assert not deployed.status.HasField("triggered_at") and not deployed.status.HasField("deleted_at")
    assert not deployed.HasField("metadata")
    assert await details(world) == deployed


async def test_uploaded_inputs_are_named_by_their_file_as_the_sdk_reads_it(world: World) -> None:
    await deploy_task(world)
    offloaded = run_pb2.OffloadedInputData(uri="/store/inputs/abc", inputs_hash="h")
    deployed = await deploy(world, deployment(offloaded=offloaded))
    assert deployed.spec.offloaded_input_data.uri == "/store/inputs/abc/inputs.pb"
    assert deployed.spec.offloaded_input_data.inputs_hash == "h"


async def test_without_the_tasks_name_the_first_of_that_name_is_found(world: World) -> None:
    for task in ("env.b", "env.a"):
        await deploy_task(world, name=task)
        await deploy(world, deployment(task=task))
    request = pb.GetTriggerDetailsRequest(name=named(task=""))
    assert (await world.triggers.get_trigger_details(request)).trigger.id.name.task_name == "env.a"


async def test_the_type_follows_from_what_automates_it(world: World) -> None:
    await deploy_task(world)
    schedule = cron("@daily")
    schedule.type = common_pb2.TYPE_NONE
    artifact = common_pb2.TriggerAutomationSpec(artifact=common_pb2.ArtifactTrigger(artifact_name="model"))
    kinds = [
        (await deploy(world, deployment(name, automation))).automation_spec.type
        for name, automation in (("a", schedule), ("b", artifact), ("c", common_pb2.TriggerAutomationSpec(type=1)))
    ]
    assert kinds == [common_pb2.TYPE_SCHEDULE, common_pb2.TYPE_ARTIFACT, common_pb2.TYPE_NONE]


async def test_every_change_is_a_revision(world: World) -> None:
    await deploy_task(world)
    steps = (
        lambda: deploy(world, deployment(automation=cron("0 1 * * *"))),
        lambda: deploy(world, deployment(automation=cron("0 2 * * *"), revision=1)),
        lambda: set_active(world, False, "daily"),
        lambda: set_active(world, True, "daily"),
        lambda: delete(world, "daily"),
    )
    moments: list[int] = []
    for step in steps:
        world.clock.advance(seconds=1)
        moments.append(world.clock.now())
        await step()

    found = await history(world)
    assert [(item.id.revision, item.action) for item in found] == [
        (5, DELETE),
        (4, ACTIVATE),
        (3, DEACTIVATE),
        (2, DEPLOY),
        (1, DEPLOY),
    ]
    assert [item.created_at.ToMicroseconds() for item in reversed(found)] == moments
    gone = found[0].status
    assert [stamp.ToMicroseconds() for stamp in (gone.deployed_at, gone.updated_at, gone.deleted_at)] == [
        moments[1],
        moments[3],
        moments[4],
    ]
    await refused(details(world), Code.NOT_FOUND)
    assert await listed(world) == []


async def test_a_revision_shows_the_trigger_as_it_was(world: World) -> None:
    await deploy_task(world)
    first = await deploy(world, deployment(automation=cron("0 1 * * *")))
    world.clock.advance(seconds=1)
    await deploy(world, deployment(automation=cron("0 2 * * *"), active=False))
    await delete(world, "daily")

    request = pb.GetTriggerRevisionDetailsRequest()
    request.id.name.CopyFrom(named())
    request.id.revision = 1
    assert (await world.triggers.get_trigger_revision_details(request)).trigger == first
    for revision in (0, 4, 2**64 - 1):
        request.id.revision = revision
        message = await refused(world.triggers.get_trigger_revision_details(request), Code.NOT_FOUND)
        assert f"@{revision}" in message


async def test_whoever_knows_an_older_revision_changes_nothing(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    before = await deploy(world, deployment(revision=1))

    for revision in (1, 3, 2**64 - 1):
        message = await refused(
            deploy(world, deployment(automation=cron("@hourly"), revision=revision)), Code.FAILED_PRECONDITION
        )
        assert "is at revision 2" in message
    assert await details(world) == before
    assert len(await history(world)) == 2


async def test_of_two_who_know_the_same_revision_one_wins(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    both = [deploy(world, deployment(automation=cron(f"{minute} * * * *"), revision=1)) for minute in (1, 2)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    (failed,) = [outcome for outcome in outcomes if isinstance(outcome, ConnectError)]
    assert failed.code in (Code.FAILED_PRECONDITION, Code.ABORTED)
    assert [item.id.revision for item in await history(world)] == [2, 1]


async def test_many_at_once_all_become_revisions(world: World) -> None:
    await deploy_task(world)
    others = [world.storage.open(world.hub.publish) for _ in range(2)]
    try:
        await asyncio.gather(*(deploy(world, deployment()) for _ in range(20)))
    finally:
        for other in others:
            await other.close()
    assert [item.id.revision for item in await history(world)] == list(range(20, 0, -1))


async def test_a_deleted_trigger_is_deployed_anew_where_its_revisions_ended(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    await delete(world, "daily")
    world.clock.advance(seconds=60)
    again = await deploy(world, deployment())

    assert again.id.revision == 3
    assert not again.status.HasField("deleted_at")
    assert again.status.updated_at == again.status.deployed_at
    assert await listed(world) == [("daily", True)]


async def test_activating_what_is_active_and_what_is_not_there_changes_nothing(world: World) -> None:
    await deploy_task(world)
    before = await deploy(world, deployment())
    await set_active(world, True, "daily", "nosuch")
    await delete(world, "nosuch")
    await set_active(world, True)
    await delete(world)
    assert await details(world) == before


async def test_a_deactivated_trigger_is_not_scheduled_until_it_is_activated(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 1h")))
    assert await next_due(world) == world.clock.now() + 3_600_000_000
    await set_active(world, False, "daily")
    assert await next_due(world) is None
    world.clock.advance(seconds=100_000)
    await set_active(world, True, "daily")
    assert await next_due(world) == world.clock.now() + 3_600_000_000
    await delete(world, "daily")
    assert await next_due(world) is None
    assert await next_due(world) is None


async def test_deploying_the_same_schedule_again_does_not_shift_it(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 1h")))
    due = await next_due(world)
    world.clock.advance(seconds=600)
    await deploy(world, deployment(automation=cron("@every 1h"), inputs=inputs(x=7)))
    assert await next_due(world) == due
    await deploy(world, deployment(automation=cron("@every 2h")))
    assert await next_due(world) == world.clock.now() + 7_200_000_000


async def test_what_cannot_be_a_trigger_is_refused_and_leaves_nothing(world: World) -> None:
    await deploy_task(world)

    def changed(field: str, value: str) -> pb.DeployTriggerRequest:
        request = deployment()
        setattr(request.name, field, value)
        return request

    no_spec = deployment()
    no_spec.ClearField("spec")
    no_version = deployment(version="")
    outside = deployment(offloaded=run_pb2.OffloadedInputData(uri="/etc/passwd"))
    alone = deployment()
    alone.spec.run_spec.max_action_concurrency = 1
    elsewhere = deployment()
    elsewhere.spec.run_spec.CopyFrom(task_run_pb2.RunSpec(run_base_dir="relative"))
    typed = deployment(automation=common_pb2.TriggerAutomationSpec(type=common_pb2.TYPE_SCHEDULE))
    for request, code, words in (
        (pb.DeployTriggerRequest(), Code.INVALID_ARGUMENT, "name.project is required"),
        (changed("name", ""), Code.INVALID_ARGUMENT, "name.name is required"),
        (changed("task_name", ""), Code.INVALID_ARGUMENT, "name.task_name is required"),
        (changed("name", "a\0b"), Code.INVALID_ARGUMENT, "NUL"),
        (changed("name", "x" * 300), Code.INVALID_ARGUMENT, "too long"),
        (changed("project", "nosuch"), Code.NOT_FOUND, "nosuch"),
        (changed("domain", "nosuch"), Code.NOT_FOUND, "nosuch"),
        (changed("task_name", "nosuch"), Code.NOT_FOUND, "nosuch"),
        (deployment(version="v9"), Code.NOT_FOUND, "v9"),
        (no_spec, Code.INVALID_ARGUMENT, "spec is required"),
        (no_version, Code.INVALID_ARGUMENT, "spec.task_version is required"),
        (outside, Code.INVALID_ARGUMENT, "outside the object store"),
        (alone, Code.INVALID_ARGUMENT, "max_action_concurrency"),
        (elsewhere, Code.INVALID_ARGUMENT, "run_base_dir"),
        (typed, Code.INVALID_ARGUMENT, "automation_spec"),
        (deployment(automation=cron("0 0 30 2 *")), Code.INVALID_ARGUMENT, "never run"),
        (deployment(automation=cron("x")), Code.INVALID_ARGUMENT, "5 fields"),
        (deployment(automation=cron("@daily", "Nowhere/City")), Code.INVALID_ARGUMENT, "Nowhere/City"),
        (deployment(automation=cron("@daily", kickoff="when")), Code.INVALID_ARGUMENT, "no input 'when'"),
    ):
        assert words in await refused(world.triggers.deploy_trigger(request), code)
    assert await listed(world) == []
    assert await history(world) == []


@pytest.mark.parametrize("field", ["project", "domain", "name", "task_name"])
async def test_one_incomplete_name_keeps_the_others_as_they_are(world: World, field: str) -> None:
    await deploy_task(world)
    before = await deploy(world, deployment())
    wrong = named()
    wrong.ClearField(field)  # type: ignore[arg-type]  # one of its fields
    update = pb.UpdateTriggersRequest(names=[named(), wrong], active=False)
    assert f"names[1].{field}" in await refused(world.triggers.update_triggers(update), Code.INVALID_ARGUMENT)
    deletion = pb.DeleteTriggersRequest(names=[named(), wrong])
    assert f"names[1].{field}" in await refused(world.triggers.delete_triggers(deletion), Code.INVALID_ARGUMENT)
    assert await details(world) == before
