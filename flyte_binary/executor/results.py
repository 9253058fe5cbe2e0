"""What an ended attempt left behind: `error.pb`, `outputs.pb`, a report, the end of its log."""

from __future__ import annotations

from dataclasses import dataclass

from flyteidl2.core import execution_pb2
from flyteidl2.task import common_pb2
from google.protobuf.message import DecodeError

from flyte_binary.domain import locations
from flyte_binary.domain.errors import NotFound, ResourceExhausted
from flyte_binary.domain.ids import AttemptId
from flyte_binary.executor.backend import AttemptState, LogSource
from flyte_binary.storage.store import ObjectStore

ERROR_LIMIT_BYTES = 64 * 1024 * 1024
OUTPUTS_LIMIT_BYTES = 256 * 1024 * 1024
"""Of outputs that are looked through for artifacts; large values are stored beside them."""
TAIL_LINES = 20
TAIL_CHARACTERS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    error: execution_pb2.ContainerError | None
    has_outputs: bool
    has_report: bool
    log_tail: str


class ResultReader:
    def __init__(self, store: ObjectStore, logs: LogSource) -> None:
        self._store = store
        self._logs = logs

    async def read(self, attempt: AttemptId, prefix: str, state: AttemptState, *, reports: bool) -> Results:
        """`error.pb` counts before `outputs.pb`; nothing is read that cannot matter."""
        error = await self._error(prefix)
        outputs = error is None and await self._exists(prefix, locations.OUTPUTS)
        died = error is None and not (outputs and state.exit_code == 0)
        return Results(
            error=error,
            has_outputs=outputs,
            has_report=reports and await self._exists(prefix, locations.REPORT),
            log_tail=await self._tail(attempt) if died else "",
        )

    async def outputs(self, prefix: str) -> common_pb2.Outputs | str:
        """Of an attempt that succeeded; a sentence if they cannot be looked into."""
        uri = locations.join(prefix, locations.OUTPUTS)
        try:
            return common_pb2.Outputs.FromString(await self._store.get(uri, limit_bytes=OUTPUTS_LIMIT_BYTES))
        except (NotFound, DecodeError, ResourceExhausted) as error:
            return f"the outputs were not published as artifacts: {uri} cannot be read: {error}"

    async def _error(self, prefix: str) -> execution_pb2.ContainerError | None:
        uri = locations.join(prefix, locations.ERROR)
        try:
            body = await self._store.get(uri, limit_bytes=ERROR_LIMIT_BYTES)
            return execution_pb2.ErrorDocument.FromString(body).error
        except NotFound:
            return None
        except (DecodeError, ResourceExhausted) as error:
            return execution_pb2.ContainerError(
                code="ErrorFileBadFormat",
                message=f"the task failed, and its error file {uri} cannot be read: {error}",
                kind=execution_pb2.ContainerError.RECOVERABLE,
                origin=execution_pb2.ExecutionError.USER,
            )

    async def _exists(self, prefix: str, name: str) -> bool:
        return await self._store.stat(locations.join(prefix, name)) is not None

    async def _tail(self, attempt: AttemptId) -> str:
        position = await self._logs.tail_position(attempt, lines=TAIL_LINES)
        if position is None:
            return ""
        page = await self._logs.read(attempt, position, limit_lines=TAIL_LINES)
        return "".join(line.text for line in page.lines)[-TAIL_CHARACTERS:].rstrip("\n")
