"""The request messages of an enveloped call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf.message import Message

from flyte_binary.domain.errors import Unimplemented
from flyte_binary.rpc.codec import Codec
from flyte_binary.rpc.compression import GZIP, Inflater, inflate, request_encoding
from flyte_binary.rpc.disconnect import Interruptible, Reason, alongside
from flyte_binary.rpc.envelope import COMPRESSED, EnvelopeReader
from flyte_binary.rpc.exchange import ClientGone, Exchange

_WAITING_MESSAGES = 16
"""How many messages are read ahead of the handler."""


class Inbound:
    def __init__(
        self, exchange: Exchange, codec: Codec, message_type: type[Message], *, gzip: bool, limit_bytes: int
    ) -> None:
        """`gzip` tells that envelopes may be compressed. A body that is compressed as a whole (`content-encoding`), as
        the reference backend accepts it, is inflated before. Raises Unimplemented for other encodings."""
        self._exchange = exchange
        self._codec = codec
        self._message_type = message_type
        self._gzip = gzip
        self._limit_bytes = limit_bytes
        self._envelopes = EnvelopeReader(limit_bytes=limit_bytes)
        whole = request_encoding(exchange.headers.get(b"content-encoding"))
        self._inflater = Inflater() if whole == GZIP else None

    async def only(self) -> Message:
        """The one message of a unary or server-stream call; the whole body is read. Raises Unimplemented for another
        number of messages, as Connect and gRPC demand."""
        first: Message | None = None
        async for message in self.messages():
            if first is not None:
                raise Unimplemented("protocol error: the method takes one message and the request has several")
            first = message
        if first is None:
            raise Unimplemented("protocol error: the method takes one message and the request has none")
        return first

    async def messages(self) -> AsyncIterator[Message]:
        """As they arrive. Raises ClientGone, InvalidArgument, ResourceExhausted."""
        while (chunk := await self._exchange.next_chunk()) is not None:
            for part in self._inflated(chunk):
                self._envelopes.add(part)
                while (envelope := self._envelopes.take()) is not None:
                    yield await self._message(*envelope)
        if self._inflater is not None:
            self._inflater.end()
        self._envelopes.end()

    def _inflated(self, chunk: bytes) -> Iterable[bytes]:
        return (chunk,) if self._inflater is None else self._inflater.feed(chunk)

    async def _message(self, flags: int, payload: bytes) -> Message:
        if flags & COMPRESSED:
            if not self._gzip:
                # Both protocols want `internal` for this mistake of the client's.
                raise ConnectError(Code.INTERNAL, "protocol error: a compressed message without a declared encoding")
            payload = await inflate(payload, limit_bytes=self._limit_bytes) if payload else payload
        return self._codec.decode(payload, self._message_type)

    @asynccontextmanager
    async def queued(self, interrupt: Interruptible) -> AsyncGenerator[AsyncIterator[Message]]:
        """The messages, read in the background so that a client that leaves is noticed while the handler is busy."""
        queue: asyncio.Queue[Message | Exception | None] = asyncio.Queue(_WAITING_MESSAGES)
        async with alongside(self._fill(queue, interrupt), name="rpc request stream"):
            yield _taken(queue)

    async def _fill(self, queue: asyncio.Queue[Message | Exception | None], interrupt: Interruptible) -> None:
        try:
            async for message in self.messages():
                await queue.put(message)
            await queue.put(None)
            await self._exchange.wait_for_disconnect()
        except ClientGone:
            pass
        except Exception as error:  # noqa: BLE001 - handed to the handler, which reads the messages
            await queue.put(error)
            return
        interrupt.by(Reason.CLIENT_GONE)


async def _taken(queue: asyncio.Queue[Message | Exception | None]) -> AsyncIterator[Message]:
    while (item := await queue.get()) is not None:
        if isinstance(item, Exception):
            raise item
        yield item
