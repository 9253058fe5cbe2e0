"""EventsProxyService: the front door for events; they are written here, not forwarded."""

from __future__ import annotations

from flyteidl2.workflow import events_proxy_service_pb2

from flyte_binary.actions.recorded_events import EventRecorder


class EventsProxy:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(
        self, request: events_proxy_service_pb2.RecordRequest, _context: object
    ) -> events_proxy_service_pb2.RecordResponse:
        """Answers once the events are committed; a list of none is fine."""
        await self._recorder.record(request.events)
        return events_proxy_service_pb2.RecordResponse()
