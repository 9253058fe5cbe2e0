"""The outermost layer of HTTP: nothing leaves it but answers.

What a plain HTTP route raises becomes the same JSON as a failed unary call. A request that the server cuts at the end
of its patience is answered if it still can be, and ends here: above is only uvicorn, which would print a traceback.
"""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flyte_binary.rpc.errors import SHUTTING_DOWN, WireError, wire_error


class Boundary:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            if not started:
                await answer_error(send, SHUTTING_DOWN)
        except Exception as error:  # noqa: BLE001 - becomes an answer, and our bugs a log line
            failure = wire_error(error, f"{scope.get('method', 'GET')} {scope['path']}")
            if not started:
                await answer_error(send, failure)


async def answer_error(send: Send, error: WireError) -> None:
    body = error.to_json_bytes()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
