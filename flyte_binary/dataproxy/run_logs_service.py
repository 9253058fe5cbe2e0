"""RunLogsService: the log of an attempt under the name that it has in the contract's run services."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from flyteidl2.workflow import run_logs_service_pb2 as pb

from flyte_binary.dataproxy import require
from flyte_binary.dataproxy.log_tail import LogTails
from flyte_binary.dataproxy.service import line_to_proto
from flyte_binary.rpc.identity import RequestContext


class RunLogsService:
    def __init__(self, logs: LogTails) -> None:
        self._logs = logs

    async def tail_logs(
        self, request: pb.TailLogsRequest, _context: RequestContext
    ) -> AsyncGenerator[pb.TailLogsResponse]:
        """As DataProxyService.TailLogs, and within the same limit of open tails."""
        attempt = require.attempt_id(request.action_id, request.attempt)
        async with aclosing(self._logs.follow(attempt)) as batches:
            async for lines in batches:
                logs = pb.TailLogsResponse.Logs(lines=[line_to_proto(line) for line in lines])
                yield pb.TailLogsResponse(logs=[logs])
