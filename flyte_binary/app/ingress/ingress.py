"""The single ingress: takes the requests that are for an app, and leaves the others to the server behind it."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from flyte_binary.app.ingress.answers import AnswerTimeout
from flyte_binary.app.ingress.client import Client
from flyte_binary.app.ingress.exchange import Exchange
from flyte_binary.app.ingress.headers import request_head
from flyte_binary.app.ingress.outside import outside_of
from flyte_binary.app.ingress.pool import Pool
from flyte_binary.app.ingress.ports import Activator
from flyte_binary.app.ingress.refusals import Stopping, answer, refuse
from flyte_binary.app.ingress.target import NotAnApp, Target, quoted, target_of
from flyte_binary.app.ingress.tunnel import tunnel_of
from flyte_binary.app.ingress.upgrade import upgrade
from flyte_binary.app.ingress.upstream import UpstreamGone
from flyte_binary.domain.errors import FlyteError
from flyte_binary.rpc.disconnect import Drain, Interruptible, Reason
from flyte_binary.rpc.http_protocol import cut
from flyte_binary.rpc.identity import TrustedPeers

log = structlog.get_logger(__name__)

_SAFE = ("GET", "HEAD")


class AppIngress:
    """ASGI middleware. To stand behind the check of the Host header, and before the one of origins: which pages may
    call an app is the app's own business."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        activator: Activator,
        trusted_peers: TrustedPeers,
        pool: Pool,
        drain: Drain | None = None,
        own_hosts: Sequence[str] = (),
    ) -> None:
        """`drain` ends streams of events, as those of RPC. `own_hosts` are the server's, although they may lie below
        `localhost`, where apps have theirs."""
        self._app = app
        self._activator = activator
        self._trusted = trusted_peers
        self._pool = pool
        self._drain = drain or Drain()
        self._own_hosts = frozenset(host.lower().removesuffix(".") for host in own_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            target = self._target(scope)
        except NotAnApp as error:
            await answer(scope, send, 404, str(error))
            return
        if target is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._upgrade(scope, send, target)
        elif target.needs_slash and scope["method"] in _SAFE:
            await _to_slash(scope, send, target)
        else:
            await self._pass_on(scope, receive, send, target)

    def _target(self, scope: Scope) -> Target | None:
        if scope["type"] not in ("http", "websocket"):
            return None
        return target_of(scope, self._activator.resolve, self._own_hosts)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, target: Target) -> None:
        outside = outside_of(scope, target, self._trusted)
        interrupt = Interruptible(None, None)
        client = Client(scope["headers"], receive, lambda: interrupt.by(Reason.CLIENT_GONE))
        if client.body_kind == "coded":
            await answer(scope, send, 501, "A body in a transfer coding besides `chunked` cannot be passed on.", _CLOSE)
            return
        exchange = Exchange(scope, client, send, target, outside)
        failure: Exception | None = None
        async with interrupt, client:
            self._drain.add(interrupt)  # a stop waits for no replica
            try:
                async with self._activator.lease(target.app) as upstream:
                    self._drain.remove(interrupt)
                    await exchange.run(self._pool, upstream, interrupt, self._drain)
            except (FlyteError, UpstreamGone, AnswerTimeout) as error:
                failure = error
            finally:
                self._drain.remove(interrupt)
        if interrupt.reason is Reason.DRAIN and not exchange.answering:
            failure = Stopping()
        if failure is not None:
            log.info("app_request_failed", app=str(target.app), path=scope["path"], reason=str(failure))
        if exchange.answering and interrupt.reason is Reason.DRAIN:
            await send({"type": "http.response.body", "body": b""})
        elif exchange.answering and failure is not None:
            await cut(scope, receive)
        elif failure is not None:
            await refuse(scope, send, target.app, failure)

    async def _upgrade(self, scope: Scope, send: Send, target: Target) -> None:
        tunnel = tunnel_of(scope)
        outside = outside_of(scope, target, self._trusted)
        head = request_head(scope, target, outside, upgrade=True)
        async with Interruptible(None, None) as interrupt:
            tunnel.when_gone = lambda: interrupt.by(Reason.CLIENT_GONE)
            try:
                async with self._activator.lease(target.app) as upstream:
                    await upgrade(tunnel, self._pool, upstream, head, outside, send)
            except (FlyteError, UpstreamGone, AnswerTimeout) as error:
                log.info("app_upgrade_failed", app=str(target.app), path=scope["path"], reason=str(error))
                if tunnel.answered:
                    tunnel.cut()
                else:
                    await refuse(scope, send, target.app, error)


_CLOSE = [(b"connection", b"close")]


async def _to_slash(scope: Scope, send: Send, target: Target) -> None:
    """Relative, so that it holds behind proxies that took off more of the path."""
    query: bytes = scope["query_string"]
    location = quoted(target.app.name).encode() + b"/" + (b"?" + query if query else b"")
    await answer(scope, send, 307, "The app is below this path.", [(b"location", location)])
