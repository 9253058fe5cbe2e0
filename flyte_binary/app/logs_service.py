"""AppLogsService: the output of an app's replicas, all of them or one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from flyteidl2.app import app_definition_pb2, app_logs_service_pb2, replica_definition_pb2
from flyteidl2.app import app_logs_payload_pb2 as pb
from flyteidl2.logs.dataplane import payload_pb2 as logs_pb2

from flyte_binary.app import wanted
from flyte_binary.app.backend import AppLogs, ReplicaLines, Replicas
from flyte_binary.app.requests import app_id_from
from flyte_binary.db.database import Database
from flyte_binary.domain.errors import InvalidArgument, ResourceExhausted
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.logs import LogLine
from flyte_binary.domain.names import check_text
from flyte_binary.domain.timestamps import to_proto
from flyte_binary.rpc.identity import RequestContext

FULL_NAME = app_logs_service_pb2.DESCRIPTOR.services_by_name["AppLogsService"].full_name

MAX_TAILS = 100
"""Streams at once, as in the reference backend."""


class AppLogsService:
    def __init__(self, database: Database, logs: AppLogs, *, limit: int = MAX_TAILS) -> None:
        self._database = database
        self._logs = logs
        self._limit = limit
        self._open = 0

    async def tail_logs(
        self, request: pb.TailLogsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.TailLogsResponse]:
        """The replicas first, then batches of lines; ends when all replicas have."""
        app, replica = _target(request)
        if self._open >= self._limit:
            raise ResourceExhausted(f"{self._limit} logs of apps are being followed already; try again later")
        self._open += 1
        try:
            row = await self._database.point(lambda tx: wanted.require(tx, app))
            async with aclosing(_generator(self._logs, row.id, replica)) as events:
                async for event in events:
                    yield _response(event, request)
        finally:
            self._open -= 1


async def _generator(logs: AppLogs, app: AppId, replica: str | None) -> AsyncGenerator[Replicas | ReplicaLines]:
    async for event in logs.follow(app, replica):
        yield event


def _target(request: pb.TailLogsRequest) -> tuple[AppId, str | None]:
    match request.WhichOneof("target"):
        case "app_id":
            return app_id_from(request.app_id, "app_id"), None
        case "replica_id":
            if not request.replica_id.HasField("app_id"):
                raise InvalidArgument("replica_id.app_id is required")
            check_text("replica_id.name", request.replica_id.name, required=True)
            return app_id_from(request.replica_id.app_id, "replica_id.app_id"), request.replica_id.name
        case _:
            raise InvalidArgument("target is required: app_id or replica_id")


def _response(event: Replicas | ReplicaLines, request: pb.TailLogsRequest) -> pb.TailLogsResponse:
    app = request.app_id if request.HasField("app_id") else request.replica_id.app_id
    if isinstance(event, Replicas):
        names = [_replica(app, name) for name in event.names]
        return pb.TailLogsResponse(replicas=pb.ReplicaIdentifierList(replicas=names))
    lines = pb.LogLines(replica_id=_replica(app, event.replica), structured_lines=[_line(line) for line in event.lines])
    return pb.TailLogsResponse(batches=pb.LogLinesBatch(logs=[lines]))


def _replica(app: app_definition_pb2.Identifier, name: str) -> replica_definition_pb2.ReplicaIdentifier:
    return replica_definition_pb2.ReplicaIdentifier(app_id=app, name=name)


def _line(line: LogLine) -> logs_pb2.LogLine:
    return logs_pb2.LogLine(timestamp=to_proto(line.at), message=line.text, originator=logs_pb2.LogLineOriginator.USER)
