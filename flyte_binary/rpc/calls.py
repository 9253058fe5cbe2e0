"""What every call has in common, whatever its protocol: its settings, its context, its end in the log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from flyte_binary.rpc.access_log import AccessLog
from flyte_binary.rpc.call_headers import request_id
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.exchange import Exchange
from flyte_binary.rpc.identity import Authenticator, OpenAccess, RequestContext, TrustedPeers
from flyte_binary.rpc.method import Method

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    """Largest message of a request, after decompression."""

    drain: Drain = field(default_factory=Drain)
    authenticator: Authenticator = field(default_factory=OpenAccess)
    trusted_peers: TrustedPeers = field(default_factory=TrustedPeers)
    access_log: AccessLog = field(default_factory=AccessLog)


class Call:
    """One call from its first header to its line in the log."""

    __slots__ = ("exchange", "method", "request_id", "settings", "started")

    def __init__(self, exchange: Exchange, method: Method, settings: CallSettings) -> None:
        self.exchange = exchange
        self.method = method
        self.settings = settings
        self.request_id = request_id(exchange)
        self.started = time.perf_counter()

    async def context(self, deadline: float | None) -> RequestContext:
        """Raises what the authenticator raises."""
        settings = self.settings
        name = self.method.full_name
        return RequestContext(
            scope=self.exchange.scope,
            method=name,
            request_id=self.request_id,
            caller=await settings.authenticator.caller(self.exchange.scope, name),
            deadline=deadline,
            trusted_peers=settings.trusted_peers,
        )

    def finished(self, code: str) -> None:
        """`code` is Connect's name, `ok` for success."""
        seconds = time.perf_counter() - self.started
        self.settings.access_log.record(self.method.full_name, code, seconds, self.request_id)
