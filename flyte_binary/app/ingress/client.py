"""The client of a request: the body that it sends, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from starlette.types import Message, Receive

from flyte_binary.app.ingress.headers import Header, awaits_continue, body_kind
from flyte_binary.app.ingress.upstream import Connection, UpstreamGone

_WATCH_AFTER_SECONDS = 0.05
"""Most answers are there by then, and nobody needs to look whether their client has left."""

_CONTINUE_SECONDS = 1.0
"""An app that does not know `Expect: 100-continue` just waits for the body."""


class Client:
    """async with Client(headers, receive, gone) as client:
        ...                                 # gone() is called if the client leaves meanwhile
        client.send_body_to(connection)     # from now on it is passed on

    It is looked after by a task of its own, since one that waits for a replica or an answer hears nothing else.
    """

    def __init__(self, headers: list[Header], receive: Receive, gone: Callable[[], None]) -> None:
        self._receive = receive
        self._gone = gone
        self.body_kind = body_kind(headers)
        self._asks_first = bool(self.body_kind) and awaits_continue(headers)
        self._loop = asyncio.get_running_loop()
        self._replica: asyncio.Future[Connection] = self._loop.create_future()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.has_sent = not self.body_kind
        """The whole request has been passed on."""

        self.when_sent: Callable[[], None] | None = None
        """Called then."""

        self.is_asked = not self._asks_first
        """It has been told to send its body, or does so unasked."""

    def send_body_to(self, connection: Connection) -> None:
        if self.body_kind and not self._replica.done():
            self._replica.set_result(connection)
            self._start()

    async def __aenter__(self) -> Client:
        if not self._asks_first:  # whoever listens to it tells it to send
            self._timer = self._loop.call_later(_WATCH_AFTER_SECONDS, self._start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            if not self._task.cancelled():
                self._task.result()

    def _start(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._listen(), name="client of an app")

    async def _listen(self) -> None:
        if self._asks_first and await self._is_answered_first():
            return
        self.is_asked = True
        message = await self._receive()
        while not self.has_sent and message["type"] != "http.disconnect":
            if not await self._pass_on(message, await self._replica):
                return
            message = await self._receive()
        while message["type"] != "http.disconnect":
            message = await self._receive()
        self._gone()

    async def _is_answered_first(self) -> bool:
        """The app has answered without wanting the body; then the client is not asked for it either."""
        connection = await self._replica
        try:
            async with asyncio.timeout(_CONTINUE_SECONDS):
                await connection.continued.wait()
        except TimeoutError:
            return False
        return connection.status != 0 or not connection.usable

    async def _pass_on(self, message: Message, connection: Connection) -> bool:
        """False if the app does not take it any more; it may have answered nevertheless."""
        data: bytes = message.get("body", b"")
        chunked = self.body_kind == "chunked"
        try:
            if data:
                connection.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
                await connection.drain()
        except UpstreamGone:
            return False
        if not message.get("more_body"):
            if chunked:
                connection.write(b"0\r\n\r\n")
            self.has_sent = True
            if self.when_sent is not None:
                self.when_sent()
        return True
