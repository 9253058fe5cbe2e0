"""TranslatorService behind a real Connect client: where the literals of a form come from."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.common import identifier_pb2
from flyteidl2.core import interface_pb2, literals_pb2, tasks_pb2, types_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2
from flyteidl2.workflow import translator_service_pb2 as pb
from flyteidl2.workflow.translator_service_connect import TranslatorServiceClient
from google.protobuf import json_format, struct_pb2
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.dataproxy.action_data import ActionDataReader
from flyte_binary.dataproxy.ports import ActionData
from flyte_binary.dataproxy.translator.service import TranslatorService
from flyte_binary.dataproxy.translator.sources import LiteralSources
from flyte_binary.domain.ids import ActionId, TriggerId
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.rpc.dataproxy.conftest import World

ACTION = ActionId("flytesnacks", "development", "r1", "a0")
TRIGGER = TriggerId("flytesnacks", "development", "main.task", "daily")
VARIABLES = interface_pb2.VariableMap(
    variables=[
        interface_pb2.VariableEntry(
            key="n", value=interface_pb2.Variable(type=types_pb2.LiteralType(simple=types_pb2.INTEGER))
        )
    ]
)


class MemoryTriggers:
    def __init__(self) -> None:
        self.specs: dict[tuple[TriggerId, int], trigger_definition_pb2.TriggerSpec] = {}

    async def spec(self, trigger: TriggerId, revision: int) -> trigger_definition_pb2.TriggerSpec | None:
        return self.specs.get((trigger, revision))


@pytest.fixture
def triggers() -> MemoryTriggers:
    return MemoryTriggers()


@pytest.fixture
def translator(world: World, triggers: MemoryTriggers) -> TranslatorServiceClient:
    reader = ActionDataReader(world.store, world.actions)
    service = TranslatorService(LiteralSources(reader, world.actions, triggers))
    app = mount([ServiceMount("flyteidl2.workflow.TranslatorService", service)])
    return TranslatorServiceClient("http://translator", http_client=Client(ASGITransport(app)))


def named(value: int) -> common_pb2.NamedLiteral:
    primitive = literals_pb2.Primitive(integer=value)
    literal = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=primitive))
    return common_pb2.NamedLiteral(name="n", value=literal)


async def stored(world: World, value: int) -> str:
    uri = f"{world.store.base_uri}/literals/{value}.pb"
    await world.store.put(uri, common_pb2.Inputs(literals=[named(value)]).SerializeToString())
    return uri


def default_of(form: struct_pb2.Struct) -> object:
    return json_format.MessageToDict(form)["properties"]["n"].get("default")


async def test_literals_of_the_request_fill_the_form(translator: TranslatorServiceClient) -> None:
    response = await translator.literals_to_launch_form_json(
        pb.LiteralsToLaunchFormJsonRequest(literals=[named(3)], variables=VARIABLES)
    )
    assert default_of(response.json) == 3
    returned = await translator.launch_form_json_to_literals(pb.LaunchFormJsonToLiteralsRequest(json=response.json))
    assert list(returned.literals) == [named(3)]


async def test_a_form_can_be_asked_for_by_get(translator: TranslatorServiceClient) -> None:
    request = pb.LiteralsToLaunchFormJsonRequest(literals=[named(3)], variables=VARIABLES)
    response = await translator.literals_to_launch_form_json(request, use_get=True)
    assert default_of(response.json) == 3


async def test_a_file_of_the_action_fills_the_form_and_no_other_file_is_read(
    translator: TranslatorServiceClient, world: World
) -> None:
    inputs, outputs, foreign = await stored(world, 1), await stored(world, 2), await stored(world, 3)
    world.actions.actions[ACTION] = ActionData(inputs_uri=inputs, outputs_uri=outputs)
    request = pb.LiteralsToLaunchFormJsonRequest(
        variables=VARIABLES, action_id=ACTION.to_proto(), literals=[named(9)], literals_uri=inputs
    )
    assert default_of((await translator.literals_to_launch_form_json(request)).json) == 1
    request.literals_uri = outputs
    assert default_of((await translator.literals_to_launch_form_json(request)).json) == 2
    request.literals_uri = foreign
    with pytest.raises(ConnectError, match="neither the inputs nor the outputs") as refused:
        await translator.literals_to_launch_form_json(request)
    assert refused.value.code is Code.INVALID_ARGUMENT


async def test_a_file_without_its_action_is_refused(translator: TranslatorServiceClient) -> None:
    request = pb.LiteralsToLaunchFormJsonRequest(variables=VARIABLES, literals_uri="file:///etc/passwd")
    with pytest.raises(ConnectError, match="action_id is required") as refused:
        await translator.literals_to_launch_form_json(request)
    assert refused.value.code is Code.INVALID_ARGUMENT
    request.action_id.CopyFrom(ACTION.to_proto())
    with pytest.raises(ConnectError, match="not found") as missing:
        await translator.literals_to_launch_form_json(request)
    assert missing.value.code is Code.NOT_FOUND


async def test_the_inputs_of_a_trigger_fill_the_form(
    translator: TranslatorServiceClient, triggers: MemoryTriggers, world: World
) -> None:
    offloaded = trigger_definition_pb2.TriggerSpec()
    offloaded.offloaded_input_data.uri = await stored(world, 5)
    triggers.specs = {
        (TRIGGER, 1): offloaded,
        (TRIGGER, 2): trigger_definition_pb2.TriggerSpec(inputs=common_pb2.Inputs(literals=[named(6)])),
        (TRIGGER, 3): trigger_definition_pb2.TriggerSpec(),
    }

    async def form(revision: int) -> object:
        identifier = identifier_pb2.TriggerIdentifier(name=TRIGGER.to_proto(), revision=revision)
        request = pb.LiteralsToLaunchFormJsonRequest(
            variables=VARIABLES, trigger_id=identifier, literals_uri="ignored", literals=[named(9)]
        )
        return default_of((await translator.literals_to_launch_form_json(request)).json)

    assert await form(1) == 5
    assert await form(2) == 6
    with pytest.raises(ConnectError, match="has no inputs") as empty:
        await form(3)
    assert empty.value.code is Code.INVALID_ARGUMENT
    with pytest.raises(ConnectError, match="no revision 4") as missing:
        await form(4)
    assert missing.value.code is Code.NOT_FOUND


async def test_the_form_of_a_task_shows_the_defaults_of_its_signature(translator: TranslatorServiceClient) -> None:
    default = interface_pb2.Parameter(var=VARIABLES.variables[0].value, default=named(4).value)
    spec = task_definition_pb2.TaskSpec(
        task_template=tasks_pb2.TaskTemplate(interface=interface_pb2.TypedInterface(inputs=VARIABLES)),
        default_inputs=[common_pb2.NamedParameter(name="n", parameter=default)],
    )
    response = await translator.task_spec_to_launch_form_json(pb.TaskSpecToLaunchFormJsonRequest(task_spec=spec))
    assert default_of(response.json) == 4


async def test_the_form_of_a_task_without_inputs_is_empty(translator: TranslatorServiceClient) -> None:
    response = await translator.task_spec_to_launch_form_json(pb.TaskSpecToLaunchFormJsonRequest())
    assert json_format.MessageToDict(response.json)["properties"] == {}


async def test_values_become_literals_of_the_declared_types(translator: TranslatorServiceClient) -> None:
    values = struct_pb2.Struct()
    values.update({"n": 7, "more": True})
    response = await translator.json_values_to_literals(
        pb.JsonValuesToLiteralsRequest(variables=VARIABLES, values=values)
    )
    assert list(response.literals) == [named(7)]


async def test_empty_requests_are_refused(translator: TranslatorServiceClient) -> None:
    calls = [
        translator.launch_form_json_to_literals(pb.LaunchFormJsonToLiteralsRequest()),
        translator.json_values_to_literals(pb.JsonValuesToLiteralsRequest(variables=VARIABLES)),
    ]
    for call in calls:
        with pytest.raises(ConnectError, match="is required") as refused:
            await call
        assert refused.value.code is Code.INVALID_ARGUMENT
