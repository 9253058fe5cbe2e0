"""CreateRun by the name of a trigger: what the run takes from it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from connectrpc.code import Code
from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.dataproxy import dataproxy_service_pb2
from flyteidl2.task import common_pb2, task_service_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.dataproxy.inputs import InputUploads
from flyte_binary.dataproxy.lookups import ProjectLookup, RunBaseLookup, TaskLookup
from flyte_binary.dataproxy.require import KnownProjects
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.cache_keys import cache_key
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.inputs_hash import inputs_hash
from flyte_binary.runs.triggers.inputs import KICKOFF_CONTEXT_KEY
from tests.rpc.runs.messages import PROJECT, inputs, run_id, task_id
from tests.rpc.triggers.conftest import DOMAINS, World, refused
from tests.rpc.triggers.messages import cron, delete, deploy, deploy_task, deployment, details, named, spec_with_time

FOLDER = "/store/uploads/inputs/abc"


def order(name: str, trigger: identifier_pb2.TriggerName | None = None) -> run_service_pb2.CreateRunRequest:
    return run_service_pb2.CreateRunRequest(run_id=run_id(name), trigger_name=trigger or named())


async def root(world: World, name: str) -> ActionRow:
    row = await world.database.read(lambda tx: tx.actions.get(RunId("flytesnacks", "development", name).root()))
    assert row is not None
    return row


async def stored(world: World, row: ActionRow) -> tuple[dict[str, object], Mapping[str, str]]:
    """The inputs of a run by name, numbers and times as they are, and their context."""
    found = common_pb2.Inputs.FromString(await world.store.get(row.input_uri, limit_bytes=10**6))
    values: dict[str, object] = {}
    for literal in found.literals:
        primitive = literal.value.scalar.primitive
        is_time = primitive.HasField("datetime")
        values[literal.name] = primitive.datetime.ToJsonString() if is_time else primitive.integer
    assert len(values) == len(found.literals)
    return values, {pair.key: pair.value for pair in found.context}


def with_marker(given: common_pb2.Inputs) -> common_pb2.Inputs:
    given.context.append(literals_pb2.KeyValuePair(key=KICKOFF_CONTEXT_KEY, value="t"))
    return given


async def upload(world: World, given: common_pb2.Inputs) -> run_pb2.OffloadedInputData:
    await world.store.put(f"{FOLDER}/inputs.pb", given.SerializeToString())
    return run_pb2.OffloadedInputData(uri=FOLDER, inputs_hash=inputs_hash(given))


async def test_a_run_is_made_as_the_trigger(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(inputs=inputs(x=5)))
    run = (await world.runs.create_run(order("rone"))).run

    metadata = run.action.metadata
    assert (metadata.trigger_name, metadata.trigger_id.name.task_name, metadata.trigger_id.revision) == (
        "daily",
        "env.hello",
        1,
    )
    assert (metadata.task.id.name, metadata.task.id.version) == ("env.hello", "v1")
    row = await root(world, "rone")
    assert await stored(world, row) == ({"x": 5}, {})
    spec = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
    assert spec.task_spec_source == task_run_pb2.TASK_SPEC_SOURCE_DEPLOYED
    triggered = (await details(world)).status.triggered_at
    assert triggered.ToMicroseconds() == world.clock.now()


async def test_uploaded_inputs_of_the_trigger_are_used_where_they_are(world: World) -> None:
    await deploy_task(world, cached=True)
    offloaded = await upload(world, inputs(x=5))
    await deploy(world, deployment(offloaded=offloaded))
    await world.runs.create_run(order("rone"))
    row = await root(world, "rone")
    assert row.input_uri == f"{FOLDER}/inputs.pb"
    assert row.cache_key == cache_key(spec_with_time(cached=True).task_template, offloaded.inputs_hash)


@pytest.mark.parametrize("uploaded", [True, False])
async def test_the_kickoff_time_joins_the_triggers_own_inputs(world: World, uploaded: bool) -> None:
    await deploy_task(world, cached=True)
    given = with_marker(inputs(x=5))
    automation = cron("@daily", kickoff="t")
    if uploaded:
        await deploy(world, deployment(automation=automation, offloaded=await upload(world, given)))
    else:
        await deploy(world, deployment(automation=automation, inputs=given))
    request = order("rone")
    request.run_start_time.FromJsonString("2026-11-30T23:00:00Z")
    await world.runs.create_run(request)

    row = await root(world, "rone")
    assert await stored(world, row) == ({"x": 5, "t": "2026-11-30T23:00:00Z"}, {KICKOFF_CONTEXT_KEY: "t"})
    spec = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
    assert spec.run_start_time == request.run_start_time

    later = order("rtwo")
    later.run_start_time.FromJsonString("2026-12-01T23:00:00Z")
    await world.runs.create_run(later)
    assert (await root(world, "rtwo")).cache_key != row.cache_key


async def test_without_a_start_time_the_kickoff_time_is_now(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@daily", kickoff="t")))
    await world.runs.create_run(order("rone"))
    values, context = await stored(world, await root(world, "rone"))
    now = Timestamp()
    now.FromMicroseconds(world.clock.now())
    assert values == {"t": now.ToJsonString()}
    # A trigger that was not made by the SDK has no mark in its inputs; the SDK's runtime looks for it.
    assert context == {KICKOFF_CONTEXT_KEY: "t"}


async def test_a_kickoff_time_for_an_input_of_another_type_is_left_to_the_runtime(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@daily", kickoff="x")))
    await world.runs.create_run(order("rone"))
    assert await stored(world, await root(world, "rone")) == ({}, {KICKOFF_CONTEXT_KEY: "x"})


async def test_inputs_of_the_request_win_and_are_cached_by_the_time(world: World) -> None:
    await deploy_task(world, cached=True)
    await deploy(world, deployment(automation=cron("@daily", kickoff="t"), inputs=inputs(x=5)))
    inline = order("rinline")
    inline.inputs.CopyFrom(inputs(x=8))
    await world.runs.create_run(inline)
    assert await stored(world, await root(world, "rinline")) == ({"x": 8}, {})

    offloaded = await upload(world, with_marker(inputs(x=9)))
    keys: set[str] = set()
    for name, time in (
        ("ra", "2026-11-30T23:00:00Z"),
        ("rb", "2026-11-30T23:00:00.5Z"),
        ("rc", "2026-11-30T23:00:00Z"),
    ):
        request = order(name)
        request.offloaded_input_data.CopyFrom(offloaded)
        request.run_start_time.FromJsonString(time)
        await world.runs.create_run(request)
        row = await root(world, name)
        assert row.input_uri == f"{FOLDER}/inputs.pb"
        keys.add(row.cache_key)
    assert len(keys) == 2


async def test_the_triggers_run_spec_counts_unless_the_request_has_one(world: World) -> None:
    await deploy_task(world)
    request = deployment()
    request.spec.run_spec.labels.values["team"] = "night"
    await deploy(world, request)
    run = (await world.runs.create_run(order("rone"))).run
    assert dict(run.labels) == {"team": "night"}
    own = order("rtwo")
    own.run_spec.labels.values["team"] = "day"
    assert dict((await world.runs.create_run(own)).run.labels) == {"team": "day"}


async def test_a_trigger_that_is_not_active_still_runs_on_demand(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(active=False))
    await world.runs.create_run(order("rone"))
    await world.runs.create_run(order("rtwo", named(task="")))
    assert (await root(world, "rtwo")).trigger_task_name == "env.hello"


async def test_runs_of_a_trigger_are_listed_by_it(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    await deploy(world, deployment("other"))
    await world.runs.create_run(order("rone"))
    await world.runs.create_run(order("rtwo", named("other")))
    response = await world.runs.list_runs(run_service_pb2.ListRunsRequest(trigger_name=named()))
    assert [run.action.id.run.name for run in response.runs] == ["rone"]


async def test_what_does_not_exist_makes_no_run(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    await deploy(world, deployment("gone"))
    await delete(world, "gone")
    never = order("rx")
    never.run_start_time.seconds = 2**62
    elsewhere = order("rx")
    elsewhere.run_id.domain = "production"
    for request, code, words in (
        (order("rx", named("nosuch")), Code.NOT_FOUND, "nosuch"),
        (order("rx", named("gone")), Code.NOT_FOUND, "gone"),
        (order("rx", named("daily", task="nosuch")), Code.NOT_FOUND, "nosuch"),
        (order("rx", named("")), Code.INVALID_ARGUMENT, "trigger_name.name"),
        (order("rx", named("a\0b")), Code.INVALID_ARGUMENT, "NUL"),
        (elsewhere, Code.INVALID_ARGUMENT, "another project or domain"),
        (never, Code.INVALID_ARGUMENT, "run_start_time is no time"),
    ):
        assert words in await refused(world.runs.create_run(request), code)
    assert await world.fired() == []


async def test_a_taken_name_leaves_the_trigger_as_it_was(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    await world.runs.create_run(order("rone"))
    world.clock.advance(seconds=5)
    await refused(world.runs.create_run(order("rone")), Code.ALREADY_EXISTS)
    row = await root(world, "rone")
    triggered = await world.database.read(
        lambda tx: [row.triggered_at for row in tx.triggers.due(2**62, after=None, limit=9)]
    )
    assert triggered == [row.created_at]
    assert row.run_source == run_definition_pb2.RUN_SOURCE_UNSPECIFIED


async def test_inputs_are_uploaded_for_the_task_of_a_trigger(world: World) -> None:
    ignoring = spec_with_time(cached=True)
    ignoring.task_template.metadata.cache_ignore_input_vars.append("x")
    await world.tasks.deploy_task(task_service_pb2.DeployTaskRequest(task_id=task_id(), spec=ignoring))
    await deploy(world, deployment())
    uploads = InputUploads(
        world.store,
        KnownProjects(ProjectLookup(world.database), DOMAINS),
        TaskLookup(world.database),
        RunBaseLookup(world.database),
    )
    request = dataproxy_service_pb2.UploadInputsRequest(
        project_id=PROJECT, trigger_name=named(task=""), inputs=inputs(x=1, y=2)
    )
    answer = await uploads.upload(request)
    assert answer.offloaded_input_data.inputs_hash == inputs_hash(inputs(y=2))
    for name, error in (("nosuch", NotFound), ("a\0b", InvalidArgument)):
        request.trigger_name.name = name
        with pytest.raises(error):
            await uploads.upload(request)
