from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyte._internal.runtime.convert import generate_filtered_inputs_hash, generate_inputs_hash_from_proto
from flyteidl2.common import identifier_pb2
from flyteidl2.core import literals_pb2, tasks_pb2
from flyteidl2.dataproxy.dataproxy_service_pb2 import GetActionDataRequest, GetActionDataResponse, UploadInputsRequest
from flyteidl2.task import common_pb2, task_definition_pb2

from flyte_binary.dataproxy.ports import ActionData
from flyte_binary.domain.ids import ActionId, ProjectId, TaskId
from tests.rpc.dataproxy.conftest import ACTION_DATA_LIMIT_BYTES, ORIGIN, World

ACTION = ActionId("flytesnacks", "development", "r1", "a0")
TASK = TaskId("flytesnacks", "development", "env.main", "v1")
PROJECT = identifier_pb2.ProjectIdentifier(organization="127", name="flytesnacks", domain="development")


def integer(value: int) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(integer=value)))


def text(value: str) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(string_value=value)))


def inputs(context: dict[str, str] | None = None, **values: literals_pb2.Literal) -> common_pb2.Inputs:
    literals = [common_pb2.NamedLiteral(name=name, value=value) for name, value in values.items()]
    pairs = [literals_pb2.KeyValuePair(key=key, value=value) for key, value in (context or {}).items()]
    return common_pb2.Inputs(literals=literals, context=pairs)


def spec(*ignored: str) -> task_definition_pb2.TaskSpec:
    metadata = tasks_pb2.TaskMetadata(cache_ignore_input_vars=ignored)
    return task_definition_pb2.TaskSpec(task_template=tasks_pb2.TaskTemplate(metadata=metadata))


def files(world: World) -> list[Path]:
    return [path for path in Path(world.store.base_uri).rglob("*") if path.is_file()]


async def stored(world: World, uri: str) -> common_pb2.Inputs:
    return common_pb2.Inputs.FromString(await world.store.get(f"{uri}/inputs.pb", limit_bytes=10**8))


async def test_inputs_are_stored_whole_and_hashed_as_the_sdk_does(world: World) -> None:
    given = inputs(n=integer(5), s=text("ü"))
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=given)
    answer = (await world.client.upload_inputs(request)).offloaded_input_data
    assert answer.inputs_hash == generate_inputs_hash_from_proto(given)
    assert await stored(world, answer.uri) == given


async def test_ignored_inputs_are_stored_but_not_hashed(world: World) -> None:
    given = inputs(n=integer(5), ignored=integer(6))
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec("ignored"), inputs=given)
    answer = (await world.client.upload_inputs(request)).offloaded_input_data
    assert answer.inputs_hash == generate_filtered_inputs_hash(given, ["ignored"])
    assert await stored(world, answer.uri) == given


async def test_runs_whose_inputs_hash_alike_do_not_share_a_file(world: World) -> None:
    """Else the second upload would change what the first run, still queued, is going to read."""
    hashed_one = literals_pb2.Literal(scalar=text("/a").scalar, hash="same")
    hashed_two = literals_pb2.Literal(scalar=text("/b").scalar, hash="same")
    pairs = [
        (inputs(n=integer(1), ignored=integer(1)), inputs(n=integer(1), ignored=integer(2))),
        (inputs(f=hashed_one), inputs(f=hashed_two)),
        (inputs({"trace": "1"}, n=integer(1)), inputs({"trace": "2"}, n=integer(1))),
    ]
    for one, two in pairs:
        answers = [
            (
                await world.client.upload_inputs(
                    UploadInputsRequest(project_id=PROJECT, task_spec=spec("ignored"), inputs=i)
                )
            )
            for i in (one, two)
        ]
        first, second = (answer.offloaded_input_data for answer in answers)
        assert first.inputs_hash == second.inputs_hash
        assert first.uri != second.uri
        assert (await stored(world, first.uri), await stored(world, second.uri)) == (one, two)


async def test_the_same_inputs_twice_are_one_object(world: World) -> None:
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=inputs(n=integer(5)))
    first, second = await world.client.upload_inputs(request), await world.client.upload_inputs(request)
    assert first == second


async def test_inputs_lie_where_the_settings_have_runs_put_their_files(world: World) -> None:
    base = f"{world.store.base_uri}/team"
    world.bases.bases[ProjectId("flytesnacks", "development")] = base
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=inputs(n=integer(5)))
    answer = (await world.client.upload_inputs(request)).offloaded_input_data
    assert answer.uri.startswith(f"{base}/offloaded-inputs/flytesnacks/development/")
    assert await stored(world, answer.uri) == request.inputs

    request.base_dir = f"{world.store.base_uri}/own"
    own = (await world.client.upload_inputs(request)).offloaded_input_data
    assert own.uri.startswith(f"{world.store.base_uri}/own/offloaded-inputs/")
    assert own.inputs_hash == answer.inputs_hash


async def test_a_setting_from_before_the_store_was_another_one_is_named(world: World) -> None:
    world.bases.bases[ProjectId("flytesnacks", "development")] = "s3://elsewhere/runs"
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=inputs(n=integer(5)))
    with pytest.raises(ConnectError) as caught:
        await world.client.upload_inputs(request)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert "settings.run.run_base_dir" in caught.value.message
    assert files(world) == []


async def test_no_inputs_are_inputs_too(world: World) -> None:
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec())
    answer = (await world.client.upload_inputs(request)).offloaded_input_data
    assert answer.inputs_hash == generate_inputs_hash_from_proto(common_pb2.Inputs())
    assert await stored(world, answer.uri) == common_pb2.Inputs()


async def test_twelve_megabytes_of_inputs_pass(world: World) -> None:
    given = inputs(s=text("x" * 12_000_000))
    answer = await world.client.upload_inputs(UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=given))
    assert await stored(world, answer.offloaded_input_data.uri) == given


async def test_the_ignored_inputs_of_a_deployed_task_or_of_a_triggers_task_count(world: World) -> None:
    world.tasks.specs[TASK] = spec("ignored")
    world.tasks.triggers["env.main", "hourly"] = TASK
    given = inputs(n=integer(5), ignored=integer(6))
    trigger = identifier_pb2.TriggerName(
        project="flytesnacks", domain="development", name="hourly", task_name="env.main"
    )
    run = identifier_pb2.RunIdentifier(org="127", project="flytesnacks", domain="development", name="mine")
    for request in (
        UploadInputsRequest(run_id=run, task_id=TASK.to_proto(), inputs=given),
        UploadInputsRequest(project_id=PROJECT, trigger_name=trigger, inputs=given),
    ):
        answer = await world.client.upload_inputs(request)
        assert answer.offloaded_input_data.inputs_hash == generate_filtered_inputs_hash(given, ["ignored"])


async def test_a_base_dir_below_the_store_is_used(world: World) -> None:
    base = f"{world.store.base_uri}/mine/"
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=inputs(n=integer(1)), base_dir=base)
    answer = await world.client.upload_inputs(request)
    assert answer.offloaded_input_data.uri.startswith(f"{world.store.base_uri}/mine/offloaded-inputs/flytesnacks/")
    assert await stored(world, answer.offloaded_input_data.uri) == request.inputs


@pytest.mark.parametrize("base_dir", ["/etc", "s3://bucket/x", "relative", "{base}/../other"])
async def test_a_base_dir_elsewhere_is_refused_and_nothing_is_written(world: World, base_dir: str) -> None:
    base_dir = base_dir.replace("{base}", world.store.base_uri)
    request = UploadInputsRequest(project_id=PROJECT, task_spec=spec(), inputs=inputs(), base_dir=base_dir)
    with pytest.raises(ConnectError, match="base_dir") as caught:
        await world.client.upload_inputs(request)
    assert caught.value.code == Code.INVALID_ARGUMENT
    assert files(world) == []


async def test_bad_uploads_of_inputs_are_told_what_is_wrong(world: World) -> None:
    trigger = identifier_pb2.TriggerName(name="none", task_name="env.main")
    nowhere = identifier_pb2.ProjectIdentifier(name="nope", domain="development")
    cases = [
        (UploadInputsRequest(), Code.INVALID_ARGUMENT, "run_id and project_id"),
        (UploadInputsRequest(project_id=PROJECT), Code.INVALID_ARGUMENT, "task_id, task_spec and trigger_name"),
        (UploadInputsRequest(project_id=nowhere, task_spec=spec()), Code.NOT_FOUND, 'project "nope"'),
        (
            UploadInputsRequest(run_id=identifier_pb2.RunIdentifier(), task_spec=spec()),
            Code.INVALID_ARGUMENT,
            "run_id.pro",
        ),
        (UploadInputsRequest(project_id=PROJECT, task_id=TASK.to_proto()), Code.NOT_FOUND, 'task "env.main"'),
        (UploadInputsRequest(project_id=PROJECT, trigger_name=trigger), Code.NOT_FOUND, 'trigger "none"'),
    ]
    for request, code, words in cases:
        with pytest.raises(ConnectError) as caught:
            await world.client.upload_inputs(request)
        assert caught.value.code == code
        assert words in caught.value.message


async def data_of(world: World, action: ActionId = ACTION) -> GetActionDataResponse:
    return await world.client.get_action_data(GetActionDataRequest(action_id=action.to_proto()))


async def test_a_finished_action_has_inputs_and_outputs(world: World) -> None:
    given = inputs(n=integer(5))
    outputs = common_pb2.Outputs(literals=[common_pb2.NamedLiteral(name="o0", value=integer(6))])
    inputs_uri, outputs_uri = f"{world.store.base_uri}/i/inputs.pb", f"{world.store.base_uri}/o/outputs.pb"
    await world.store.put(inputs_uri, given.SerializeToString())
    await world.store.put(outputs_uri, outputs.SerializeToString())
    world.actions.actions[ACTION] = ActionData(inputs_uri=inputs_uri, outputs_uri=outputs_uri)
    answer = await data_of(world)
    assert (answer.inputs, answer.outputs) == (given, outputs)
    assert (answer.inputs_uri, answer.outputs_uri) == (inputs_uri, outputs_uri)


async def test_a_running_or_aborted_action_has_its_inputs_and_no_outputs(world: World) -> None:
    inputs_uri = f"{world.store.base_uri}/i/inputs.pb"
    await world.store.put(inputs_uri, inputs(n=integer(5)).SerializeToString())
    world.actions.actions[ACTION] = ActionData(inputs_uri=inputs_uri)
    answer = await data_of(world)
    assert answer.inputs == inputs(n=integer(5))
    assert answer.HasField("outputs")
    assert (answer.outputs, answer.outputs_uri) == (common_pb2.Outputs(), "")


async def test_a_task_without_outputs_has_an_empty_file_of_them(world: World) -> None:
    uri = f"{world.store.base_uri}/o/outputs.pb"
    await world.store.put(uri, b"")
    world.actions.actions[ACTION] = ActionData(outputs_uri=uri)
    assert (await data_of(world)).outputs_uri == uri


async def test_the_output_of_a_condition_is_the_value_it_was_signalled_with(world: World) -> None:
    outputs = common_pb2.Outputs(literals=[common_pb2.NamedLiteral(name="o0", value=text("approved"))])
    world.actions.actions[ACTION] = ActionData(outputs=outputs)
    assert (await data_of(world)).outputs == outputs


@pytest.mark.parametrize("half", ["inputs", "outputs"])
async def test_what_retention_removed_is_said_to_be_missing_instead_of_empty(world: World, half: str) -> None:
    """The SDK decides by the word whether a rerun is possible, and would print None for missing outputs."""
    there, gone = f"{world.store.base_uri}/x/there.pb", f"{world.store.base_uri}/x/gone.pb"
    await world.store.put(there, b"")
    uris = {"inputs": there, "outputs": there, half: gone}
    world.actions.actions[ACTION] = ActionData(inputs_uri=uris["inputs"], outputs_uri=uris["outputs"])
    with pytest.raises(ConnectError, match="no longer in storage") as caught:
        await data_of(world)
    assert caught.value.code == Code.NOT_FOUND
    assert ("inputs" in caught.value.message) == (half == "inputs")


async def test_data_beyond_the_limit_is_refused_with_where_to_read_it(world: World) -> None:
    uri = f"{world.store.base_uri}/i/inputs.pb"
    await world.store.put(uri, inputs(s=text("x" * ACTION_DATA_LIMIT_BYTES)).SerializeToString())
    world.actions.actions[ACTION] = ActionData(inputs_uri=uri)
    with pytest.raises(ConnectError, match="too large") as caught:
        await data_of(world)
    assert caught.value.code == Code.RESOURCE_EXHAUSTED
    assert uri in caught.value.message


async def test_data_that_is_no_protobuf_is_said_to_be_damaged(world: World) -> None:
    uri = f"{world.store.base_uri}/o/outputs.pb"
    await world.store.put(uri, b"\xff\xff\xff not protobuf")
    world.actions.actions[ACTION] = ActionData(outputs_uri=uri)
    with pytest.raises(ConnectError, match="cannot be read") as caught:
        await data_of(world)
    assert caught.value.code == Code.FAILED_PRECONDITION


async def test_files_of_the_server_cannot_be_read_through_an_action(world: World) -> None:
    world.actions.actions[ACTION] = ActionData(inputs_uri="/etc/passwd")
    with pytest.raises(ConnectError) as caught:
        await data_of(world)
    assert caught.value.code == Code.PERMISSION_DENIED


async def test_an_unknown_action_is_not_found_and_an_empty_request_invalid(world: World) -> None:
    with pytest.raises(ConnectError, match="flytesnacks/development/r1/a0 not found") as caught:
        await data_of(world)
    assert caught.value.code == Code.NOT_FOUND
    with pytest.raises(ConnectError, match=r"action_id\.run\.project is required") as caught:
        await world.client.get_action_data(GetActionDataRequest())
    assert caught.value.code == Code.INVALID_ARGUMENT


async def test_a_page_may_ask_for_action_data_with_a_get_in_json(world: World) -> None:
    world.actions.actions[ACTION] = ActionData(
        outputs=common_pb2.Outputs(literals=[common_pb2.NamedLiteral(name="o0", value=integer(7))])
    )
    message = '{"actionId":{"run":{"project":"flytesnacks","domain":"development","name":"r1"},"name":"a0"}}'
    url = f"{ORIGIN}/flyteidl2.dataproxy.DataProxyService/GetActionData"
    for query in (
        {"connect": "v1", "encoding": "json", "message": message},
        {
            "connect": "v1",
            "encoding": "json",
            "base64": "1",
            "message": base64.urlsafe_b64encode(message.encode()).decode(),
        },
    ):
        got = await world.http.get(url, params=httpx.QueryParams(query))
        assert got.status_code == 200
        assert got.json()["outputs"]["literals"][0]["value"]["scalar"]["primitive"] == {"integer": "7"}
