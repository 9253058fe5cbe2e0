"""CreateRun: what is stored, what is refused, and that nothing is left behind by what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import interface_pb2, literals_pb2
from flyteidl2.task import common_pb2, task_definition_pb2, task_service_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ProjectId, RunId
from flyte_binary.domain.inputs_hash import inputs_hash
from flyte_binary.domain.phases import Phase
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import OFFLOADED, PROJECT, create, inputs, integer, run_id, task_id, task_spec


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message


async def root_of(server: Server, name: str) -> ActionRow:
    row = await server.database.read(lambda tx: tx.actions.get(RunId("flytesnacks", "development", name).root()))
    assert row is not None
    return row


async def count_actions(server: Server) -> int:
    return len(await server.database.read(lambda tx: tx.actions.unfinished()))


async def test_a_run_is_answered_as_queued_at_its_first_attempt(server: Server) -> None:
    run = (await server.runs.create_run(create("rone"))).run

    assert run.action.id == identifier_pb2.ActionIdentifier(
        run=identifier_pb2.RunIdentifier(project="flytesnacks", domain="development", name="rone"), name="a0"
    )
    assert run.action.status.phase == Phase.QUEUED
    assert run.action.status.attempts == 1
    assert run.action.status.start_time.ToMicroseconds() == server.clock.now()
    metadata = run.action.metadata
    assert metadata.action_type == run_definition_pb2.ACTION_TYPE_TASK
    assert (metadata.task.id.org, metadata.task.id.name, metadata.task.id.version) == ("", "env.hello", "v1")
    assert (metadata.task.task_type, metadata.task.short_name) == ("python", "hello")
    assert (metadata.environment_name, metadata.funtion_name) == ("env", "env.hello")


async def test_without_a_name_the_server_makes_one(server: Server) -> None:
    first = (await server.runs.create_run(create())).run.action.id.run.name
    second = (await server.runs.create_run(create())).run.action.id.run.name

    assert first != second
    assert len(first) == 20
    assert first.startswith("r")


async def test_offloaded_inputs_are_named_by_their_folder_or_by_the_file(server: Server) -> None:
    for name, uri in (
        ("rdir", "/store/x/y"),
        ("rfile", "/store/x/y/inputs.pb"),
        ("rtwice", "/store/x/y/inputs.pb/inputs.pb"),
    ):
        request = create(name)
        request.offloaded_input_data.uri = uri
        await server.runs.create_run(request)
        assert (await root_of(server, name)).input_uri == "/store/x/y/inputs.pb"

    assert not server.store.objects


async def test_inline_inputs_are_stored_with_the_tasks_defaults(server: Server) -> None:
    spec = task_spec()
    spec.default_inputs.add(name="x", parameter=interface_pb2.Parameter(default=integer(1)))
    spec.default_inputs.add(name="y", parameter=interface_pb2.Parameter(default=integer(2)))
    spec.default_inputs.add(name="z", parameter=interface_pb2.Parameter(required=True))
    request = create("rinline", spec=spec)
    given = inputs(x=7)
    given.context.add(key="k", value="v")
    request.inputs.CopyFrom(given)

    await server.runs.create_run(request)

    row = await root_of(server, "rinline")
    stored = common_pb2.Inputs.FromString(server.store.objects[row.input_uri])
    assert [(item.name, item.value.scalar.primitive.integer) for item in stored.literals] == [("x", 7), ("y", 2)]
    assert stored.context == given.context
    assert row.input_uri.endswith("/inputs.pb")


async def test_a_taken_name_is_refused_and_the_old_runs_inputs_stay(server: Server) -> None:
    request = create("rtaken")
    request.inputs.CopyFrom(inputs(x=1))
    await server.runs.create_run(request)
    before = dict(server.store.objects)

    request.inputs.CopyFrom(inputs(x=2))
    message = await refused(server.runs.create_run(request), Code.ALREADY_EXISTS)
    await refused(server.runs.create_run(create("rtaken")), Code.ALREADY_EXISTS)

    assert "rtaken" in message
    assert server.store.objects == before
    assert await count_actions(server) == 1


async def test_of_many_with_one_name_only_one_is_created(server: Server) -> None:
    calls = [server.runs.create_run(create("rrace")) for _ in range(10)]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    created = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(created) == 1
    assert {answer.code for answer in answers if isinstance(answer, ConnectError)} == {Code.ALREADY_EXISTS}


async def test_a_deployed_task_is_run_by_its_id(server: Server) -> None:
    await server.tasks.deploy_task(task_service_pb2.DeployTaskRequest(task_id=task_id(), spec=task_spec()))
    request = create("rdeployed")
    request.task_id.CopyFrom(task_id())

    await server.runs.create_run(request)

    row = await root_of(server, "rdeployed")
    assert row.task is not None
    assert row.task.name == "env.hello"
    assert await server.database.read(lambda tx: tx.specs.get(row.spec_digest or ""))
    run_spec = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
    assert run_spec.task_spec_source == task_run_pb2.TASK_SPEC_SOURCE_DEPLOYED


async def test_a_deployed_task_takes_inline_inputs_too(server: Server) -> None:
    spec = task_spec()
    spec.default_inputs.add(name="y", parameter=interface_pb2.Parameter(default=integer(5)))
    await server.tasks.deploy_task(task_service_pb2.DeployTaskRequest(task_id=task_id(), spec=spec))
    request = run_service_pb2.CreateRunRequest(run_id=run_id("rd"), task_id=task_id())

    await server.runs.create_run(request)

    stored = common_pb2.Inputs.FromString(server.store.objects[(await root_of(server, "rd")).input_uri])
    assert [item.name for item in stored.literals] == ["y"]


def _no_task() -> run_service_pb2.CreateRunRequest:
    return run_service_pb2.CreateRunRequest(project_id=PROJECT, offloaded_input_data=OFFLOADED)


def _no_id() -> run_service_pb2.CreateRunRequest:
    return run_service_pb2.CreateRunRequest(task_spec=task_spec(), offloaded_input_data=OFFLOADED)


def _no_template() -> run_service_pb2.CreateRunRequest:
    return create("rx", spec=task_definition_pb2.TaskSpec(short_name="x"))


def _related_to_nothing() -> run_service_pb2.CreateRunRequest:
    return create("rx", run_spec=task_run_pb2.RunSpec(relation=run_pb2.Relation(relation_type=1)))


def _without_relation_type() -> run_service_pb2.CreateRunRequest:
    relation = run_pb2.Relation(related_to=run_id("rother"))
    return create("rx", run_spec=task_run_pb2.RunSpec(relation=relation))


def _with_uri(uri: str) -> run_service_pb2.CreateRunRequest:
    request = create("rx")
    request.offloaded_input_data.uri = uri
    return request


@pytest.mark.parametrize(
    ("request_made", "named"),
    [
        (_no_task(), "task"),
        (_no_id(), "run_id"),
        (_no_template(), "task_spec.task_template"),
        (create("Bad_Name"), "run_id.name"),
        (create("r" * 31), "run_id.name"),
        (create(""), "run_id.name"),
        (create("r-"), "run_id.name"),
        (create("rx", spec=task_spec(name="")), "task_spec.task_template.id.name"),
        (create("rx", spec=task_spec(name="env.\0")), "task_spec.task_template.id.name"),
        (create("rx", spec=task_spec(version="v" * 256)), "task_spec.task_template.id.version"),
        (create("rx", run_spec=task_run_pb2.RunSpec(labels=task_run_pb2.Labels(values={"k": "\0"}))), "labels"),
        (create("rx", run_spec=task_run_pb2.RunSpec(run_base_dir="relative")), "run_spec.run_base_dir"),
        (create("rx", run_spec=task_run_pb2.RunSpec(run_base_dir="/elsewhere")), "run_spec.run_base_dir"),
        (create("rx", run_spec=task_run_pb2.RunSpec(max_action_concurrency=1)), "run_spec.max_action_concurrency"),
        (_related_to_nothing(), "run_spec.relation.related_to.name"),
        (_without_relation_type(), "run_spec.relation.relation_type"),
        (_with_uri(""), "offloaded_input_data.uri"),
        (_with_uri("/etc"), "offloaded_input_data.uri"),
        (_with_uri("/store/../etc"), "offloaded_input_data.uri"),
    ],
)
async def test_a_wrong_request_is_refused_with_the_name_of_the_field(
    server: Server, request_made: run_service_pb2.CreateRunRequest, named: str
) -> None:
    assert named in await refused(server.runs.create_run(request_made), Code.INVALID_ARGUMENT)
    assert await count_actions(server) == 0
    assert not server.store.objects


async def test_what_does_not_exist_is_not_found_and_nothing_is_written(server: Server) -> None:
    in_project = create("rx")
    in_project.run_id.project = "nosuch"
    inline = run_service_pb2.CreateRunRequest(run_id=in_project.run_id, task_spec=task_spec(), inputs=inputs(x=1))
    in_domain = create("rx")
    in_domain.run_id.domain = "nosuch"
    with_task = create("rx")
    with_task.task_id.CopyFrom(task_id("env.nosuch"))
    with_trigger = create("rx")
    with_trigger.trigger_name.CopyFrom(
        identifier_pb2.TriggerName(project="flytesnacks", domain="development", name="nosuch", task_name="env.hello")
    )
    recovered = run_pb2.Relation(related_to=run_id("rnosuch"), relation_type=run_pb2.RELATION_TYPE_RECOVER)
    with_relation = create("rx", run_spec=task_run_pb2.RunSpec(relation=recovered))

    for request in (in_project, inline, in_domain, with_task, with_trigger, with_relation):
        assert "nosuch" in await refused(server.runs.create_run(request), Code.NOT_FOUND)
    assert await count_actions(server) == 0
    assert not server.store.objects


async def test_the_run_spec_is_completed_and_kept(server: Server) -> None:
    asked = task_run_pb2.RunSpec(
        labels=task_run_pb2.Labels(values={"team": "ml"}),
        max_action_concurrency=4,
        queue="q",
        relation=run_pb2.Relation(
            related_to=identifier_pb2.RunIdentifier(org="127", name="rbefore"),
            relation_type=run_pb2.RELATION_TYPE_RERUN,
        ),
    )
    run = (await server.runs.create_run(create("rspec", run_spec=asked))).run
    details = (await server.runs.get_run_details(run_service_pb2.GetRunDetailsRequest(run_id=run_id("rspec")))).details

    assert run.labels == {"team": "ml"}
    spec = details.run_spec
    assert (spec.max_action_concurrency, spec.queue) == (4, "q")
    assert spec.raw_data_storage.raw_data_prefix == "/store"
    assert spec.run_start_time.ToMicroseconds() == server.clock.now()
    assert spec.task_spec_source == task_run_pb2.TASK_SPEC_SOURCE_EPHEMERAL
    expected = identifier_pb2.RunIdentifier(project="flytesnacks", domain="development", name="rbefore")
    assert details.action.metadata.relation.related_to == expected
    row = await root_of(server, "rspec")
    assert row.run_output_base == "/store/flytesnacks/development/rspec"


async def test_a_base_folder_of_its_own_moves_the_runs_files_only(server: Server) -> None:
    spec = task_run_pb2.RunSpec(run_base_dir="/store/mine/")
    await server.runs.create_run(create("rbase", run_spec=spec))

    row = await root_of(server, "rbase")
    assert row.run_output_base == "/store/mine/flytesnacks/development/rbase"
    stored = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
    assert stored.raw_data_storage.raw_data_prefix == "/store"


async def test_a_spec_that_was_deployed_before_says_so(server: Server) -> None:
    spec = task_spec()
    spec.task_template.container.env.append(literals_pb2.KeyValuePair(key="_F_SYS_PATH", value="."))
    await server.runs.create_run(create("rbaked", spec=spec))

    stored = task_run_pb2.RunSpec.FromString((await root_of(server, "rbaked")).run_spec or b"")
    assert stored.task_spec_source == task_run_pb2.TASK_SPEC_SOURCE_DEPLOYED


async def test_runtimes_before_2_3_6_get_no_start_time(server: Server) -> None:
    for name, version, expected in (("rold", "2.3.5", False), ("rnew", "v2.3.6-rc1", True), ("rnone", "", False)):
        await server.runs.create_run(create(name, spec=task_spec(sdk=version)))
        stored = task_run_pb2.RunSpec.FromString((await root_of(server, name)).run_spec or b"")
        assert stored.HasField("run_start_time") is expected


async def test_root_and_child_share_a_cache_entry(server: Server) -> None:
    """The key is the one that the SDK sends for a child of the same task and inputs."""
    from flyte._internal.runtime.convert import generate_cache_key_hash  # noqa: PLC0415 - slow, and only here

    spec = task_spec(cached=True)
    request = create("rinline", spec=spec)
    request.inputs.CopyFrom(inputs(x=7))
    await server.runs.create_run(request)
    request = create("roffloaded", spec=spec)
    request.offloaded_input_data.inputs_hash = inputs_hash(inputs(x=7))
    await server.runs.create_run(request)

    expected = generate_cache_key_hash(
        "env.hello", inputs_hash(inputs(x=7)), spec.task_template.interface, "d1", [], inputs(x=7)
    )
    assert (await root_of(server, "rinline")).cache_key == expected
    assert (await root_of(server, "roffloaded")).cache_key == expected
    await server.runs.create_run(create("runcached"))
    assert (await root_of(server, "runcached")).cache_key == ""


async def test_the_caller_is_kept_with_the_run(server: Server) -> None:
    run = (await server.runs.create_run(create("rmine"), headers={"x-subject": "ann", "x-email": "a@x"})).run
    anonymous = (await server.runs.create_run(create("rnobodys"))).run

    assert run.action.metadata.executed_by.user.id.subject == "ann"
    assert run.action.metadata.executed_by.user.spec.email == "a@x"
    assert not anonymous.action.metadata.HasField("executed_by")


async def test_a_new_run_is_announced(server: Server) -> None:
    project = topics.runs(ProjectId("flytesnacks", "development"))
    with server.hub.subscribe(project) as runs, server.hub.subscribe(topics.WORK) as work:
        await server.runs.create_run(create("rnews"))
        assert runs.take() == {("rnews",)}
        assert work.take() == {("flytesnacks", "development", "rnews", "a0")}
