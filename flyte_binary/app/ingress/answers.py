"""The answer of a replica on its way to the client."""

from __future__ import annotations

from starlette.types import Send

from flyte_binary.app.ingress.headers import Header
from flyte_binary.app.ingress.upstream import Connection


class AnswerTimeout(Exception):
    """The app took too long for the first byte."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the app did not answer within {seconds:g} s")


async def pass_answer(connection: Connection, send: Send, headers: list[Header]) -> None:
    """Piece by piece, as it comes. Raises `UpstreamGone`."""
    await send({"type": "http.response.start", "status": connection.status, "headers": headers})
    while True:
        data = await connection.body()
        more = bool(data) and not connection.complete
        await send({"type": "http.response.body", "body": data, "more_body": more})
        if not more:
            return
