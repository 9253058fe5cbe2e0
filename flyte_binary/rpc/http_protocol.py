"""uvicorn's HTTP/1.1, with what it leaves open: a limit for heads, upgrades to any protocol, a way to end a connection
in the middle of an answer, and answers that are written at once.

Built on methods that uvicorn does not promise to keep; `tests/rpc/transport` and `tests/ingress` notice when they
change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_LIMIT_BYTES = 64 * 1024
"""Of a request: its line and headers. One read of the connection may go beyond it."""

_CUT = "flyte.cut"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 37\r\nconnection: close\r\n\r\nThe head of the request is too large."
)


async def cut(scope: Scope, receive: Receive) -> None:
    """End the connection after what has been sent, so that the answer, which is not complete, does not look whole."""
    close = cast("Callable[[], None] | None", scope.get("extensions", {}).get(_CUT))
    if close is None:
        return  # another server, which finds out by itself
    close()
    while (await receive())["type"] != "http.disconnect":
        continue


class HttpProtocol(HttpToolsProtocol):
    """Made by uvicorn."""

    _reads_head = False
    _head_bytes = 0
    _extensions: dict[str, Any]  # Any: what each extension is, is its own matter

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as in uvicorn
        super().connection_made(transport)
        self._extensions = {_CUT: self._cut}

    def _cut(self) -> None:
        self.cycle.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._reads_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = self._extensions
        self._reads_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._reads_head = False
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # Any: uvicorn's type of it is private
        cycle.transport = _Answer(self.transport, cycle)
        super()._start_asgi_task(cycle, app)

    def _should_upgrade(self) -> bool:
        """To whatever it is, for the application to decide. HTTP/2 is only ever offered, with an ordinary request; and
        a request with a body is one, since the other protocol begins at its end."""
        upgrade = self._get_upgrade()
        return self.ws_protocol_class is not None and upgrade not in (None, b"", b"h2c") and not self._has_body()

    def handle_websocket_upgrade(self) -> None:
        """Whoever is to have the connection must not share it with the answer to an earlier request."""
        if self.cycle is None or self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]  # None before the first request
            super().handle_websocket_upgrade()
        else:
            self.transport.close()

    def _has_body(self) -> bool:
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
            for name, value in self.headers
        )

    def _unsupported_upgrade_warning(self) -> None:
        """An offer that is not taken up is nothing to warn of."""


class _Answer(asyncio.Transport):
    """Of one answer. Its head waits for the beginning of its body, if that comes at once, and both are written
    together: two writes are two packets, and the client is woken twice."""

    def __init__(self, transport: asyncio.Transport, cycle: RequestResponseCycle) -> None:
        super().__init__()
        self._transport = transport
        self._cycle = cycle
        self._head: bytes | None = None
        """Empty as soon as it has been written."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head is None and self._cycle.response_started:
            self._head = bytes(data)
            asyncio.get_running_loop().call_soon(self._flush)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""
