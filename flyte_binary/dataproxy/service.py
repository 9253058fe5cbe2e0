"""DataProxyService on the wire: each method checks its request and hands it to a use case."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from flyteidl2.dataproxy import dataproxy_service_pb2 as pb
from flyteidl2.logs.dataplane import payload_pb2 as logs_pb

from flyte_binary.dataproxy import require
from flyte_binary.dataproxy.action_data import ActionDataReader
from flyte_binary.dataproxy.download_links import DownloadLinks
from flyte_binary.dataproxy.inputs import InputUploads
from flyte_binary.dataproxy.log_tail import LogTails
from flyte_binary.dataproxy.uploads import Uploads
from flyte_binary.domain.logs import LogLine
from flyte_binary.domain.timestamps import to_proto
from flyte_binary.rpc.identity import RequestContext


class DataProxyService:
    def __init__(
        self, *, uploads: Uploads, inputs: InputUploads, data: ActionDataReader, links: DownloadLinks, logs: LogTails
    ) -> None:
        self._uploads = uploads
        self._inputs = inputs
        self._data = data
        self._links = links
        self._logs = logs

    async def create_upload_location(
        self, request: pb.CreateUploadLocationRequest, context: RequestContext
    ) -> pb.CreateUploadLocationResponse:
        return await self._uploads.create_location(request, origin=context.origin)

    async def upload_inputs(self, request: pb.UploadInputsRequest, _context: RequestContext) -> pb.UploadInputsResponse:
        return await self._inputs.upload(request)

    async def get_action_data(
        self, request: pb.GetActionDataRequest, _context: RequestContext
    ) -> pb.GetActionDataResponse:
        return await self._data.get(require.action_id(request.action_id))

    async def create_download_link(
        self, request: pb.CreateDownloadLinkRequest, context: RequestContext
    ) -> pb.CreateDownloadLinkResponse:
        return await self._links.create(request, origin=context.origin)

    async def tail_logs(
        self, request: pb.TailLogsRequest, _context: RequestContext
    ) -> AsyncGenerator[pb.TailLogsResponse]:
        """The selectors of pods have no effect: an attempt is one process here."""
        attempt = require.attempt_id(request.action_id, request.attempt)
        async with aclosing(self._logs.follow(attempt)) as batches:
            async for lines in batches:
                logs = pb.TailLogsResponse.Logs(lines=[line_to_proto(line) for line in lines])
                yield pb.TailLogsResponse(logs=[logs])


def line_to_proto(line: LogLine) -> logs_pb.LogLine:
    """The SDK prints messages as they are, so the newline has to be there."""
    text = line.text if line.text.endswith("\n") else f"{line.text}\n"
    return logs_pb.LogLine(
        timestamp=to_proto(line.at),
        message=text.encode("utf-8", "replace").decode(),
        originator=logs_pb.LogLineOriginator.USER,
    )
