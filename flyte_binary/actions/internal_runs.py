"""InternalRunService: executors outside this server report what they run.

Calls succeed, and the outcome stands inside the response; a stream answers each request in order. Our own executor
does not come this way: it writes within its own transactions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2

from flyte_binary.actions.in_band import in_band
from flyte_binary.actions.recorded_actions import record_action, row_from_request
from flyte_binary.actions.recorded_events import EventRecorder
from flyte_binary.actions.reported_status import apply_report, report_from_request
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction


class InternalRunService:
    def __init__(self, database: Database, clock: Clock, recorder: EventRecorder) -> None:
        self._database = database
        self._clock = clock
        self._recorder = recorder

    async def record_action(
        self, request: internal_pb2.RecordActionRequest, _context: object
    ) -> internal_pb2.RecordActionResponse:
        status = await in_band(self._record_action(request))
        return internal_pb2.RecordActionResponse(action_id=request.action_id, status=status)

    async def record_action_stream(
        self, requests: AsyncIterator[internal_pb2.RecordActionStreamRequest], _context: object
    ) -> AsyncIterator[internal_pb2.RecordActionStreamResponse]:
        async for request in requests:
            response = await self.record_action(request.request, _context)
            yield internal_pb2.RecordActionStreamResponse(response=response)

    async def update_action_status(
        self, request: internal_pb2.UpdateActionStatusRequest, _context: object
    ) -> internal_pb2.UpdateActionStatusResponse:
        status = await in_band(self._update_action_status(request))
        return internal_pb2.UpdateActionStatusResponse(action_id=request.action_id, status=status)

    async def update_action_status_stream(
        self, requests: AsyncIterator[internal_pb2.UpdateActionStatusStreamRequest], _context: object
    ) -> AsyncIterator[internal_pb2.UpdateActionStatusStreamResponse]:
        async for request in requests:
            response = await self.update_action_status(request.request, _context)
            yield internal_pb2.UpdateActionStatusStreamResponse(response=response, nonce=request.nonce)

    async def record_action_events(
        self, request: internal_pb2.RecordActionEventsRequest, _context: object
    ) -> internal_pb2.RecordActionEventsResponse:
        return internal_pb2.RecordActionEventsResponse(status=await in_band(self._recorder.record(request.events)))

    async def record_action_event_stream(
        self, requests: AsyncIterator[internal_pb2.RecordActionEventStreamRequest], _context: object
    ) -> AsyncIterator[internal_pb2.RecordActionEventStreamResponse]:
        async for request in requests:
            event = request.request.event
            status = await in_band(self._recorder.record_one(event))
            response = internal_pb2.RecordActionEventResponse(action_id=event.id, status=status)
            yield internal_pb2.RecordActionEventStreamResponse(response=response, nonce=request.nonce)

    async def _record_action(self, request: internal_pb2.RecordActionRequest) -> None:
        now = self._clock.now()
        row, spec = row_from_request(request, now)

        def operation(tx: Transaction) -> None:
            if spec is not None:
                tx.specs.put(spec.digest, spec.body, at=now)
            record_action(tx, row)

        await self._database.write(operation, run=row.run_id)

    async def _update_action_status(self, request: internal_pb2.UpdateActionStatusRequest) -> None:
        report = report_from_request(request)
        now = self._clock.now()
        await self._database.write(lambda tx: apply_report(tx, report, at=now), run=report.action.run_id)
