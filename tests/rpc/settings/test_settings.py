"""Settings by scope: stored with versions, shown for editing, resolved."""

from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.settings import settings_definition_pb2 as pb
from flyteidl2.settings import settings_service_pb2 as service_pb

from tests.rpc.settings.conftest import World, refused

VALUE, UNSET = pb.SETTING_STATE_VALUE, pb.SETTING_STATE_UNSET
ORG = pb.SettingsKey(org="10")
DOMAIN = pb.SettingsKey(org="10", domain="development")
PROJECT = pb.SettingsKey(org="10", domain="development", project="flytesnacks")


def queue(name: str) -> pb.Settings:
    return pb.Settings(run=pb.RunSettings(default_queue=pb.StringSetting(state=VALUE, string_value=name)))


def labels(**entries: str) -> pb.Settings:
    setting = pb.StringMapSetting(state=VALUE, map_value=pb.StringMap(entries=entries))
    return pb.Settings(labels=setting)


async def create(world: World, key: pb.SettingsKey, settings: pb.Settings) -> service_pb.SettingsRecord:
    request = service_pb.CreateSettingsRequest(key=key, settings=settings)
    return (await world.settings.create_settings(request)).settingsRecord


async def update(world: World, key: pb.SettingsKey, settings: pb.Settings, version: int) -> service_pb.SettingsRecord:
    request = service_pb.UpdateSettingsRequest(key=key, settings=settings, version=version)
    return (await world.settings.update_settings(request)).settingsRecord


async def get(world: World, key: pb.SettingsKey) -> service_pb.SettingsRecord:
    return (await world.settings.get_settings(service_pb.GetSettingsRequest(key=key))).settingsRecord


async def test_levels_are_shown_broadest_first_with_what_was_stored(world: World) -> None:
    await create(world, DOMAIN, queue("cpu"))
    found = await world.settings.get_settings_for_edit(service_pb.GetSettingsForEditRequest(key=PROJECT))
    assert found.requestedKey == PROJECT
    assert list(found.levels) == [
        service_pb.SettingsRecord(key=ORG, settings=pb.Settings()),
        service_pb.SettingsRecord(key=DOMAIN, settings=queue("cpu"), version=1),
        service_pb.SettingsRecord(key=PROJECT, settings=pb.Settings()),
    ]
    of_org = await world.settings.get_settings_for_edit(service_pb.GetSettingsForEditRequest(key=ORG))
    assert [level.key for level in of_org.levels] == [ORG]


async def test_settings_are_created_once_and_updated_with_their_version(world: World) -> None:
    assert await create(world, PROJECT, queue("a")) == service_pb.SettingsRecord(
        key=PROJECT, settings=queue("a"), version=1
    )
    assert "update them" in await refused(create(world, PROJECT, queue("b")), Code.ALREADY_EXISTS)
    assert (await update(world, PROJECT, queue("c"), 1)).version == 2
    assert "at 2, not 1" in await refused(update(world, PROJECT, queue("d"), 1), Code.FAILED_PRECONDITION)
    assert "create them" in await refused(update(world, DOMAIN, queue("d"), 1), Code.NOT_FOUND)
    assert (await get(world, PROJECT)).settings.run.default_queue.string_value == "c"


async def test_the_organization_is_never_part_of_the_key(world: World) -> None:
    await create(world, ORG, queue("a"))
    await refused(create(world, pb.SettingsKey(org="another"), queue("b")), Code.ALREADY_EXISTS)
    assert (await get(world, pb.SettingsKey(domain="production"))).settings.run.default_queue.string_value == "a"


async def test_of_several_updates_of_one_version_one_wins(world: World) -> None:
    await create(world, PROJECT, queue("a"))
    outcomes = await asyncio.gather(
        *(update(world, PROJECT, queue(f"q{number}"), 1) for number in range(8)), return_exceptions=True
    )
    won = [outcome for outcome in outcomes if isinstance(outcome, service_pb.SettingsRecord)]
    lost = [outcome.code for outcome in outcomes if isinstance(outcome, ConnectError)]
    assert len(won) == 1 and lost == [Code.FAILED_PRECONDITION] * 7
    assert (await get(world, PROJECT)).settings.run.default_queue.string_value == (
        won[0].settings.run.default_queue.string_value
    )


async def test_the_narrowest_scope_wins_and_says_which_it_is(world: World) -> None:
    await create(world, ORG, queue("of-org"))
    await create(world, DOMAIN, queue("of-domain"))
    elsewhere = (await get(world, pb.SettingsKey(domain="production", project="flytesnacks"))).settings
    assert elsewhere.run.default_queue.string_value == "of-org"
    assert elsewhere.run.default_queue.scope_level == pb.SCOPE_LEVEL_ORG
    record = await get(world, PROJECT)
    assert record.settings.run.default_queue.string_value == "of-domain"
    assert record.settings.run.default_queue.scope_level == pb.SCOPE_LEVEL_DOMAIN
    assert record.version == 0


async def test_maps_are_merged_until_a_scope_unsets_them(world: World) -> None:
    await create(world, ORG, labels(team="a", cost="1"))
    await create(world, DOMAIN, labels(team="b"))
    resolved = (await get(world, PROJECT)).settings.labels
    assert dict(resolved.map_value.entries) == {"team": "b", "cost": "1"}
    assert resolved.scope_level == pb.SCOPE_LEVEL_DOMAIN
    await update(world, DOMAIN, pb.Settings(labels=pb.StringMapSetting(state=UNSET)), 1)
    await create(world, PROJECT, labels(own="yes"))
    assert dict((await get(world, PROJECT)).settings.labels.map_value.entries) == {"own": "yes"}
    assert (await get(world, DOMAIN)).settings.labels.state == UNSET


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (pb.Settings(run=pb.RunSettings(max_action_concurrency=pb.Int64Setting(state=VALUE, int_value=1))), "at least"),
        (
            pb.Settings(run=pb.RunSettings(max_action_concurrency=pb.Int64Setting(state=VALUE, int_value=-2))),
            "at least",
        ),
        (
            pb.Settings(run=pb.RunSettings(run_base_dir=pb.StringSetting(state=VALUE, string_value="s3://elsewhere"))),
            "outside the object store",
        ),
        (
            pb.Settings(
                task_resource=pb.TaskResourceSettings(
                    min=pb.TaskResourceDefaults(cpu=pb.QuantitySetting(state=VALUE, quantity_value="two"))
                )
            ),
            "settings.task_resource.min.cpu: 'two' is no quantity",
        ),
        (
            pb.Settings(
                task_resource=pb.TaskResourceSettings(
                    min=pb.TaskResourceDefaults(memory=pb.QuantitySetting(state=VALUE, quantity_value="2Gi")),
                    max=pb.TaskResourceDefaults(memory=pb.QuantitySetting(state=VALUE, quantity_value="1500Mi")),
                )
            ),
            "settings.task_resource.min.memory is 2Gi, more than the maximum, 1500Mi",
        ),
        (labels(**{"": "x"}), "settings.labels: a key is required"),
        (labels(**{"k" * 256: "x"}), "settings.labels: a key is too long"),
        (labels(k="v" * 4097), "settings.labels['k'] is too long"),
        (queue("a\0b"), "NUL"),
        (queue("q" * 256), "settings.run.default_queue is too long"),
        (
            pb.Settings(
                storage=pb.StorageSettings(
                    raw_data_path=pb.StringSetting(state=VALUE, string_value=f"s3://raw/{'x' * 4096}")
                )
            ),
            "settings.storage.raw_data_path is too long",
        ),
    ],
)
async def test_settings_that_no_run_could_follow_are_refused(world: World, settings: pb.Settings, message: str) -> None:
    assert message in await refused(create(world, ORG, settings), Code.INVALID_ARGUMENT)
    assert (await get(world, ORG)).settings == pb.Settings()


async def test_requests_without_what_they_need_are_refused(world: World) -> None:
    service = world.settings
    no_domain = pb.SettingsKey(project="flytesnacks")
    for call in (
        service.get_settings(service_pb.GetSettingsRequest()),
        service.get_settings_for_edit(service_pb.GetSettingsForEditRequest()),
        service.create_settings(service_pb.CreateSettingsRequest()),
        service.create_settings(service_pb.CreateSettingsRequest(key=ORG)),
        service.update_settings(service_pb.UpdateSettingsRequest()),
        service.update_settings(service_pb.UpdateSettingsRequest(key=ORG, settings=queue("a"))),
        service.get_settings(service_pb.GetSettingsRequest(key=no_domain)),
    ):
        assert "required" in await refused(call, Code.INVALID_ARGUMENT)
