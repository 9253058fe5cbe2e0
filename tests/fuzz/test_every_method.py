"""Whatever is sent to a method is answered, and never as a mistake of the server's own.

`FLYTE_FUZZ_REQUESTS` says how many requests there are altogether.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToJson
from sqlalchemy import select

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.events_proxy import EventsProxy
from flyte_binary.actions.internal_runs import InternalRunService
from flyte_binary.actions.queue_state import QueueService
from flyte_binary.actions.recorded_events import EventRecorder
from flyte_binary.actions.signal import Signaller
from flyte_binary.cache.reservations import Heartbeats
from flyte_binary.cache.service import CacheService
from flyte_binary.cache.v1_service import CacheServiceV1
from flyte_binary.db import tables
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.artifacts.service import ArtifactService
from flyte_binary.runs.projects.domain_service import DomainService
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.tasks.service import TaskService
from flyte_binary.runs.tracked.service import TrackedRunService
from flyte_binary.runs.triggers.service import TriggerService
from tests.db_fixtures import SQLITE, Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.fuzz.generated import body, message
from tests.golden.service_table import services

REQUESTS = int(os.environ.get("FLYTE_FUZZ_REQUESTS", "2000"))
OURS = frozenset({"unknown", "internal", "data_loss"})
SERVED = (
    "artifact.ArtifactService",
    "task.TaskService",
    "trigger.TriggerService",
    "workflow.RunService",
    "workflow.TrackedRunService",
    "cacheservice.v2.CacheService",
    "cacheservice.CacheService",
    "org.DomainService",
    "workflow.InternalRunService",
    "workflow.EventsProxyService",
    "workflow.QueueService",
)


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes

    @property
    def code(self) -> str:
        return "" if self.status == 200 else json.loads(self.body)["code"]


@dataclass(frozen=True)
class Served:
    app: RpcApplication
    database: Database

    async def call(self, path: str, content: bytes, kind: str) -> Answer:
        sent: list[MutableMapping[str, Any]] = []
        headers = [(b"content-type", kind.encode()), (b"host", b"localhost")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(event: MutableMapping[str, Any]) -> None:
            sent.append(event)

        await self.app(scope, receive, send)
        return Answer(sent[0]["status"], b"".join(event.get("body", b"") for event in sent[1:]))

    async def stored(self) -> dict[str, list[tuple[Any, ...]]]:
        def look(tx: Transaction) -> dict[str, list[tuple[Any, ...]]]:
            found = tables.metadata.sorted_tables
            return {table.name: [tuple(row) for row in tx.connection.execute(select(table))] for table in found}

        return await self.database.read(look)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    hub, clock, store = Hub(), ManualClock(), MemoryStore()
    database = Storage(SQLITE, tmp_path).open(hub.publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks"], clock.now()))
    domains = ("development", "production")
    common = {"database": database, "store": store, "clock": clock, "domains": domains}
    deciding = {"hub": hub, "aborter": Aborter(database, clock), "signaller": Signaller(database, clock)}
    recorder = EventRecorder(database, clock)
    heartbeats = Heartbeats(longest=timedelta(seconds=30), grace_multiplier=3)
    implementations = (
        ArtifactService(database=database, clock=clock, domains=domains),
        TaskService(**common),
        TriggerService(**common),
        RunService(**common, **deciding),
        TrackedRunService(**common, **deciding, uploads="/store/uploads"),
        (entries := CacheService(database, clock, heartbeats)),
        CacheServiceV1(entries),
        DomainService([(domain, domain) for domain in domains]),
        InternalRunService(database, clock, recorder),
        EventsProxy(recorder),
        QueueService(Enqueuer(database, store, clock), Aborter(database, clock)),
    )
    mounts = [ServiceMount(f"flyteidl2.{name}", one) for name, one in zip(SERVED, implementations, strict=True)]
    yield Served(mount(mounts), database)
    await database.close()


def methods() -> list[MethodDescriptor]:
    """Those that take one request and give one answer."""
    names = {f"flyteidl2.{name}" for name in SERVED}
    return [
        method
        for service in services()
        if service.full_name in names
        for method in service.methods
        if not method.client_streaming and not method.server_streaming
    ]


async def test_no_request_is_answered_as_a_mistake_of_the_server(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20_261_201)
    every = methods()
    answered: set[str] = set()
    for number in range(REQUESTS):
        method = every[number % len(every)]
        path = f"/{method.containing_service.full_name}/{method.name}"
        request = message(method.input_type, chance)
        kind, content = "application/proto", body(request, chance)
        if chance.random() < 0.2:
            kind, content = "application/json", _json(request)
        answer = await served.call(path, content, kind)
        is_expected = method.name == "GetActionData" and answer.code == "unimplemented"
        assert answer.code not in OURS or is_expected, (path, kind, content, answer.body)
        answered.add(answer.code)
    assert {"", "invalid_argument", "not_found"} <= answered
    assert "Traceback" not in capsys.readouterr().out


async def test_a_refused_request_changes_nothing(served: Served) -> None:
    chance = random.Random(7)
    before = await served.stored()
    for number in range(REQUESTS // 10):
        method = methods()[number % len(methods())]
        path = f"/{method.containing_service.full_name}/{method.name}"
        answer = await served.call(path, body(message(method.input_type, chance), chance), "application/proto")
        after = await served.stored()
        assert answer.code == "" or after == before, (path, answer.body)
        before = after


def _json(request: Any) -> bytes:
    try:
        return MessageToJson(request).encode()
    except Exception:  # noqa: BLE001  # what has no JSON form is sent as none
        return b"{"
