"""A condition tells the outside that it waits, and is answered at the address that it gave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from flyteidl2.actions import actions_service_pb2
from flyteidl2.core import literals_pb2, types_pb2
from google.protobuf.struct_pb2 import Struct
from starlette.applications import Starlette

from flyte_binary.actions.callbacks import Callbacks
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.signal import Signaller
from flyte_binary.control.clock import SystemClock
from flyte_binary.db.migrate import upgrade
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.sqlite import SqliteDatabase, make_engine
from flyte_binary.domain.callbacks import CallbackAddresses
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.executor.conditions import Conditions
from flyte_binary.executor.webhooks import Webhooks
from flyte_binary.live.hub import Hub
from tests.fakes.memory_store import MemoryStore

RUN = RunId("flytesnacks", "development", "r1")
CONDITION = RUN.action("approve")


@dataclass
class Receiver:
    """A real HTTP server that notes what it was sent and answers as told."""

    statuses: list[int] = field(default_factory=list[int])
    bodies: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    port: int = 0

    @contextmanager
    def running(self) -> Iterator[Receiver]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                receiver.bodies.append(json.loads(self.rfile.read(length)))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@dataclass
class World:
    database: SqliteDatabase
    conditions: Conditions
    client: httpx.AsyncClient
    addresses: CallbackAddresses

    async def open_condition(self, url: str, *, kind: types_pb2.SimpleType = types_pb2.BOOLEAN) -> None:
        action = actions_service_pb2.Action(
            action_id=CONDITION.to_proto(), parent_action_name="a0", input_uri="/none", run_output_base="/store/r1"
        )
        action.condition.name = "approve"
        action.condition.type.simple = kind
        action.condition.webhook.url = url
        payload = Struct()
        payload.update({"text": "answer at {callback_uri}", "nested": {"list": ["{callback_uri}", 1]}})
        action.condition.webhook.payload.CopyFrom(payload)
        await Enqueuer(self.database, MemoryStore(), SystemClock()).enqueue(action)

    async def row(self) -> ActionRow:
        row = await self.database.point(lambda tx: tx.actions.get(CONDITION))
        assert row is not None
        return row


@pytest.fixture
async def world(tmp_path: Path):
    engine = make_engine(tmp_path / "flyte.db")
    upgrade(engine)
    engine.dispose()
    database = SqliteDatabase(tmp_path / "flyte.db", Hub().publish)
    root = ActionRow(id=RUN.root(), parent=None, phase=Phase.RUNNING, action_type=1, created_at=1, updated_at=1)
    await database.write(lambda tx: tx.actions.insert(root))
    addresses = CallbackAddresses(key=b"k" * 32, base_url="http://callback.test")
    clock = SystemClock()
    app = Starlette(routes=Callbacks(database, Signaller(database, clock), addresses).routes())
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://callback.test") as client:
        yield World(database, Conditions(database, clock, Webhooks(addresses)), client, addresses)
    await database.close()


async def test_a_condition_posts_its_payload_with_the_callback_address_and_only_once(world: World) -> None:
    with Receiver().running() as receiver:
        await world.open_condition(f"http://127.0.0.1:{receiver.port}/hook")
        assert await world.conditions.reconcile(await world.row()) is None
        assert await world.conditions.reconcile(await world.row()) is None
    address = world.addresses.address_of(CONDITION)
    assert receiver.bodies == [{"text": f"answer at {address}", "nested": {"list": [address, 1]}}]


async def test_a_webhook_that_is_refused_is_sent_again_later(world: World) -> None:
    with Receiver(statuses=[503]).running() as receiver:
        await world.open_condition(f"http://127.0.0.1:{receiver.port}/hook")
        pause = await world.conditions.reconcile(await world.row())
        row = await world.row()
    assert pause is not None
    assert pause > 0
    assert row.not_before is not None
    assert row.phase == Phase.PAUSED
    assert len(receiver.bodies) == 1


async def test_a_webhook_of_another_scheme_is_given_up_without_harm(world: World) -> None:
    await world.open_condition("file:///etc/passwd")
    assert await world.conditions.reconcile(await world.row()) is not None
    assert (await world.row()).phase == Phase.PAUSED


async def test_the_callback_address_signals_the_condition(world: World) -> None:
    await world.open_condition("http://127.0.0.1:9/hook")
    answer = await world.client.post(world.addresses.address_of(CONDITION), json={"value": True})
    assert (answer.status_code, answer.text) == (200, "signalled\n")
    row = await world.row()
    assert row.phase == Phase.SUCCEEDED
    assert literals_pb2.Literal.FromString(row.value or b"").scalar.primitive.boolean is True


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        (types_pb2.BOOLEAN, '{"value": 1}', 400),
        (types_pb2.INTEGER, "true", 400),
        (types_pb2.INTEGER, "5", 200),
        (types_pb2.FLOAT, "2", 200),
        (types_pb2.STRING, '{"value": "yes"}', 200),
        (types_pb2.STRING, '{"other": "yes"}', 400),
        (types_pb2.STRING, "not json", 400),
        (types_pb2.STRING, "[" * 60_000, 400),
        (types_pb2.STRING, '"\\ud800"', 400),
        (types_pb2.INTEGER, str(2**63), 400),
        (types_pb2.FLOAT, "1" + "0" * 400, 400),
    ],
)
async def test_the_callback_takes_only_values_of_the_declared_kind(
    world: World, kind: types_pb2.SimpleType, body: str, status: int
) -> None:
    await world.open_condition("http://127.0.0.1:9/hook", kind=kind)
    answer = await world.client.post(world.addresses.address_of(CONDITION), content=body)
    assert answer.status_code == status
    assert ((await world.row()).phase == Phase.SUCCEEDED) == (status == 200)


async def test_a_callback_with_another_signature_changes_nothing(world: World) -> None:
    await world.open_condition("http://127.0.0.1:9/hook")
    other = world.addresses.address_of(ActionId("flytesnacks", "development", "r1", "other"))
    stolen = other.replace("/other?", "/approve?")
    answer = await world.client.post(stolen, json=True)
    assert answer.status_code == 403
    assert (await world.row()).phase == Phase.PAUSED


async def test_a_condition_that_was_answered_refuses_another_answer(world: World) -> None:
    await world.open_condition("http://127.0.0.1:9/hook")
    address = world.addresses.address_of(CONDITION)
    answers = await asyncio.gather(*(world.client.post(address, json=value) for value in (True, False)))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
