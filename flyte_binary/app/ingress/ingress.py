"""The single ingress: takes the requests that are for an app, and leaves the others to the server behind it."""

from __future__ import annotations

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from flyte_binary.app.ingress.exchange import AnswerTimeout, ClientGone, Exchange
from flyte_binary.app.ingress.headers import outside_of, request_head
from flyte_binary.app.ingress.ports import Activator
from flyte_binary.app.ingress.refusals import answer, refuse
from flyte_binary.app.ingress.target import Target, target_of
from flyte_binary.app.ingress.tunnel import tunnel_of
from flyte_binary.app.ingress.upstream import Pool, UpstreamGone
from flyte_binary.domain.errors import FlyteError
from flyte_binary.rpc.identity import TrustedPeers

log = structlog.get_logger(__name__)

_SAFE = ("GET", "HEAD")


class AppIngress:
    """ASGI middleware. To stand behind the check of the Host header, and before the one of origins: which pages may
    call an app is the app's own business."""

    def __init__(self, app: ASGIApp, *, activator: Activator, trusted_peers: TrustedPeers, pool: Pool) -> None:
        self._app = app
        self._activator = activator
        self._trusted = trusted_peers
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        target = target_of(scope, self._activator.resolve)
        if target is None:
            await self._app(scope, receive, send)
        elif target.needs_slash and scope.get("method") in _SAFE:
            await _to_slash(scope, send, target)
        elif scope["type"] == "websocket":
            await self._tunnel(scope, send, target)
        else:
            await self._pass_on(scope, receive, send, target)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, target: Target) -> None:
        exchange = Exchange(scope, receive, send, target, outside_of(scope, target, self._trusted))
        try:
            async with self._activator.lease(target.app) as upstream:
                await exchange.run(self._pool, upstream)
        except ClientGone:
            return
        except (FlyteError, UpstreamGone, AnswerTimeout) as error:
            log.info("app_request_failed", app=str(target.app), path=scope["path"], reason=str(error))
            if not exchange.answering:
                await refuse(scope, send, target.app, error)
            # Else the server behind us cuts the connection, since the answer is not complete.

    async def _tunnel(self, scope: Scope, send: Send, target: Target) -> None:
        tunnel = tunnel_of(scope)
        outside = outside_of(scope, target, self._trusted)
        head = request_head({**scope, "method": "GET"}, target, outside, upgrade=True)
        try:
            async with self._activator.lease(target.app) as upstream:
                await tunnel.run(upstream.host, upstream.port, head)
        except (FlyteError, UpstreamGone) as error:
            log.info("app_upgrade_failed", app=str(target.app), path=scope["path"], reason=str(error))
            await refuse(scope, send, target.app, error)


async def _to_slash(scope: Scope, send: Send, target: Target) -> None:
    """Relative, so that it holds behind proxies that took off more of the path."""
    query: bytes = scope["query_string"]
    location = target.app.name.encode() + b"/" + (b"?" + query if query else b"")
    await answer(scope, send, 307, "The app is below this path.", [(b"location", location)])
