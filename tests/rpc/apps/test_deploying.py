"""Create, Update, Delete and Get: what is wanted, what becomes of it, what is seen."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from flyteidl2.app import app_payload_pb2 as pb

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import AppId
from tests.rpc.apps.conftest import Status, World, refused
from tests.rpc.apps.messages import APP, STARTED, STOPPED, app_message
from tests.waiting import until


async def test_a_created_app_is_pending_then_deploying_then_active_with_its_address(world: World) -> None:
    world.start_passes()
    created = await world.create(app_message())
    assert created.status.conditions[-1].deployment_status == Status.DEPLOYMENT_STATUS_PENDING
    assert created.status.ingress.public_url == "http://apps.test/flytesnacks/development/my-app"
    assert created.metadata.revision == 1
    assert created.metadata.id.org == "127"
    await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
    world.backend.becomes(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    active = await world.until(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    assert active.status.current_replicas == 1
    assert active.status.k8s_metadata.namespace == "apps"
    assert active.spec == app_message().spec


async def test_creating_an_unchanged_app_again_writes_nothing_and_shows_it_as_it_is(world: World) -> None:
    world.start_passes()
    await world.create(app_message())
    await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
    world.backend.becomes(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    await world.until(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    before, writes = await world.row(APP), world.backend.writes
    world.clock.advance(seconds=10)
    again = await world.create(app_message())
    assert again.status.conditions[-1].deployment_status == Status.DEPLOYMENT_STATUS_ACTIVE
    assert await world.row(APP) == before
    assert world.backend.writes == writes


async def test_a_changed_app_is_a_new_revision_and_nobody_takes_the_old_status_for_the_new(world: World) -> None:
    world.start_passes()
    await world.create(app_message())
    await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
    world.backend.becomes(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    await world.until(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
    changed = await world.create(app_message(greeting="bye"))
    assert changed.metadata.revision == 2
    assert changed.status.conditions[-1].deployment_status == Status.DEPLOYMENT_STATUS_PENDING
    await until(lambda: world.backend.deployed[APP].revision == 2)


async def test_an_app_that_is_created_as_stopped_is_not_started(world: World) -> None:
    world.start_passes()
    await world.create(app_message(desired_state=STOPPED))
    stopped = await world.until(APP, Status.DEPLOYMENT_STATUS_STOPPED)
    assert stopped.spec.desired_state == STOPPED
    assert APP not in world.backend.deployed


async def test_an_app_is_stopped_and_started_with_the_same_spec(world: World) -> None:
    world.start_passes()
    created = await world.create(app_message())
    created.spec.desired_state = STOPPED
    update = pb.UpdateRequest(app=created, reason="User requested to deactivate app from flyte-sdk")
    stopping = (await world.apps.update(update)).app
    assert stopping.status.conditions[-1].deployment_status != Status.DEPLOYMENT_STATUS_STOPPED
    stopped = await world.until(APP, Status.DEPLOYMENT_STATUS_STOPPED)
    stopped.spec.desired_state = STARTED
    started = (await world.apps.update(pb.UpdateRequest(app=stopped))).app
    assert started.metadata.revision == 1
    assert started.status.conditions[-1].deployment_status == Status.DEPLOYMENT_STATUS_PENDING
    shown = await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
    assert shown.spec.desired_state == STARTED


async def test_stopping_an_app_that_does_not_exist_is_not_found_and_makes_none(world: World) -> None:
    await refused(world.apps.update(pb.UpdateRequest(app=app_message(desired_state=STOPPED))), Code.NOT_FOUND)
    assert await world.row(APP) is None


async def test_an_update_of_a_revision_that_is_past_is_aborted_and_changes_nothing(world: World) -> None:
    read = await world.create(app_message())
    await world.create(app_message(greeting="bye"))
    before = await world.row(APP)
    message = await refused(world.apps.update(pb.UpdateRequest(app=read)), Code.ABORTED)
    assert "revision 2" in message
    assert await world.row(APP) == before


async def test_a_deleted_app_is_gone_at_once_and_its_row_when_nothing_is_left(world: World) -> None:
    world.start_passes()
    await world.create(app_message())
    await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
    world.backend.held.clear()
    await world.apps.delete(pb.DeleteRequest(app_id=APP.to_proto()))
    await refused(world.apps.get(pb.GetRequest(app_id=APP.to_proto())), Code.NOT_FOUND)
    assert not (await world.apps.list(pb.ListRequest())).apps
    assert await world.row(APP) is not None
    world.backend.held.set()
    await world.until_gone(APP)
    assert APP not in world.backend.deployed


async def test_deleting_an_app_that_does_not_exist_is_success(world: World) -> None:
    await world.apps.delete(pb.DeleteRequest(app_id=APP.to_proto()))


async def test_an_app_created_again_while_it_is_being_deleted_runs_in_a_revision_of_its_own(world: World) -> None:
    await world.create(app_message())
    await world.apps.delete(pb.DeleteRequest(app_id=APP.to_proto()))
    again = await world.create(app_message())
    assert again.metadata.revision == 2
    world.start_passes()
    await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)


async def test_what_was_wanted_before_the_server_started_is_done(world: World) -> None:
    await world.create(app_message())
    world.start_passes()
    await until(lambda: APP in world.backend.deployed)


async def test_an_app_that_the_backend_refuses_has_failed_with_the_reason(world: World) -> None:
    world.start_passes()
    world.backend.refusal = InvalidArgument("app.spec.container.ports: denied by the admission webhook")
    await world.create(app_message())
    failed = await world.until(APP, Status.DEPLOYMENT_STATUS_FAILED)
    assert "denied by the admission webhook" in failed.status.conditions[-1].message


async def test_two_apps_cannot_have_one_name_on_the_network(world: World) -> None:
    first = AppId("flytesnacks", "development", "a-other")
    await world.create(app_message(AppId("other", "development", "a")))
    clash = AppId("flytesnacks", "development", "x")
    await world.create(app_message(clash))
    await world.create(app_message(first))
    message = await refused(
        world.apps.create(pb.CreateRequest(app=app_message(AppId("flytesnacks", "development", "X")))),
        Code.ALREADY_EXISTS,
    )
    assert "flytesnacks/development/x" in message


@pytest.mark.parametrize(
    ("app", "code"),
    [
        (AppId("nowhere", "development", "my-app"), Code.NOT_FOUND),
        (AppId("flytesnacks", "nowhere", "my-app"), Code.NOT_FOUND),
        (AppId("flytesnacks", "development", "my_app"), Code.INVALID_ARGUMENT),
        (AppId("flytesnacks", "development", "-app"), Code.INVALID_ARGUMENT),
        (AppId("flytesnacks", "development", "a" * 64), Code.INVALID_ARGUMENT),
        (AppId("flytesnacks", "development", ""), Code.INVALID_ARGUMENT),
        (AppId("", "development", "my-app"), Code.INVALID_ARGUMENT),
        (AppId("flytesnacks", "", "my-app"), Code.INVALID_ARGUMENT),
    ],
)
async def test_an_app_of_a_wrong_name_or_in_no_project_is_refused(world: World, app: AppId, code: Code) -> None:
    await refused(world.create(app_message(app)), code)
    assert not await world.database.read(lambda tx: tx.apps.all())


async def test_the_calls_of_operators_are_unimplemented_with_a_sentence(world: World) -> None:
    message = await refused(world.apps.update_status(pb.UpdateStatusRequest()), Code.UNIMPLEMENTED)
    assert "operators" in message

    async def lease() -> None:
        async for _ in world.apps.lease(pb.LeaseRequest()):
            raise AssertionError("a lease came")

    await refused(lease(), Code.UNIMPLEMENTED)
