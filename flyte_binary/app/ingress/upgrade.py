"""A request to change the protocol: an app that agrees gets the connection itself, one that does not is heard."""

from __future__ import annotations

import asyncio

from starlette.types import Send

from flyte_binary.app.ingress.answers import AnswerTimeout, pass_answer
from flyte_binary.app.ingress.headers import response_headers, switched_head
from flyte_binary.app.ingress.outside import Outside
from flyte_binary.app.ingress.pool import Pool
from flyte_binary.app.ingress.ports import Upstream
from flyte_binary.app.ingress.tunnel import Tunnel
from flyte_binary.app.ingress.upstream import Connection, UpstreamGone


async def upgrade(tunnel: Tunnel, pool: Pool, upstream: Upstream, head: bytes, outside: Outside, send: Send) -> None:
    """Until either side ends. Raises `UpstreamGone` and `AnswerTimeout`, mostly before anything was answered.

    Only after the replica's own 101 is the connection its own: a client (or a proxy in front that keeps connections)
    that got another answer may go on with a request that is for somebody else.
    """
    connection = await pool.get(upstream.host, upstream.port, fresh=True)
    try:
        await _ask(connection, head, upstream.request_timeout)
        if not connection.switched:
            headers = response_headers(connection.status, connection.headers, outside, upstream.port)
            await pass_answer(connection, send, headers)
    except BaseException:
        connection.close()
        raise
    if connection.switched:
        transport, first = connection.detach()
        await tunnel.join(transport, switched_head(connection.headers, outside, upstream.port), first)
    else:
        connection.close()


async def _ask(connection: Connection, head: bytes, timeout_seconds: float) -> None:
    connection.begin(switch=True)
    connection.write(head)
    try:
        async with asyncio.timeout(timeout_seconds):
            await connection.head()
    except TimeoutError:
        raise AnswerTimeout(timeout_seconds) from None
    if connection.status == 101 and not (connection.switched and connection.usable):
        raise UpstreamGone("it agrees to change the protocol, and does not")
