"""Calls of enveloped messages: every kind over gRPC-Web, all but unary over Connect.

The headers of an answer leave with its first message or, if there is none yet, after a moment: a client whose watch has
nothing to tell still learns that it is open. The generator of a handler is closed as soon as its client leaves, its
deadline passes or the server drains, although it is waiting; in the last case the stream ends as if it were complete,
so that clients connect again elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from google.protobuf.message import Message

from flyte_binary.domain.errors import Unavailable, Unimplemented
from flyte_binary.rpc.calls import Call
from flyte_binary.rpc.codec import Codec
from flyte_binary.rpc.compression import GZIP, accepts_gzip, request_encoding
from flyte_binary.rpc.disconnect import Interruptible, Reason, alongside
from flyte_binary.rpc.errors import SHUTTING_DOWN, WireError, raise_if_cancelled, wire_error
from flyte_binary.rpc.exchange import ClientGone, HeaderList, header_pairs
from flyte_binary.rpc.framing import Framing, enveloped
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.rpc.inbound import Inbound
from flyte_binary.rpc.method import Kind

_HEADERS_AFTER_SECONDS = 0.05
_LAST_WORD_SECONDS = 10.0
"""How long the end of a stream waits for a client that does not read."""

_LAST_WORD_IN_A_STOP_SECONDS = 0.4

_DEADLINE = WireError("deadline_exceeded", "The deadline that the client set has passed.")


async def serve_stream(call: Call, codec: Codec, framing: Framing) -> None:
    answer = _Answer(call, codec, framing)
    error: WireError | None = None
    try:
        reason = await _run(call, codec, framing, answer)
    except ClientGone:
        reason = Reason.CLIENT_GONE
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - everything a handler raises becomes an answer, and our bugs a log line
        raise_if_cancelled(raised)
        reason = None
        error = wire_error(raised, call.method.full_name)
    if reason is Reason.CLIENT_GONE:
        call.finished("canceled")
        return
    if reason is Reason.DEADLINE:
        error = _DEADLINE
    if reason is Reason.DRAIN and call.method.kind is Kind.CLIENT_STREAM:
        error = SHUTTING_DOWN
    await answer.end(error)
    call.finished("ok" if error is None else error.code)


async def _run(call: Call, codec: Codec, framing: Framing, answer: _Answer) -> Reason | None:
    """Serve the call; why it was cut short, if it was."""
    settings = call.settings
    method = call.method
    deadline = framing.deadline(call.exchange)
    encoding = request_encoding(call.exchange.headers.get(framing.encoding_header))
    inbound = Inbound(
        call.exchange, codec, method.request_type, gzip=encoding == GZIP, limit_bytes=settings.limit_bytes
    )
    answer.context = context = await call.context(deadline)
    if method.function is None:
        raise Unimplemented(f"{method.full_name} is not available on this server.")
    drain = None if method.kind is Kind.UNARY else settings.drain
    if drain is not None and drain.draining:
        raise Unavailable(SHUTTING_DOWN.message)
    async with Interruptible(drain, deadline) as interrupt:
        match method.kind:
            case Kind.UNARY:
                await answer.write(await method.function(await inbound.only(), context))
            case Kind.SERVER_STREAM:
                request = await inbound.only()
                async with alongside(answer.attend(interrupt), name="rpc stream watch"):
                    await answer.write_all(method.function(request, context))
            case Kind.CLIENT_STREAM:
                async with inbound.queued(interrupt) as messages:
                    await answer.write(await method.function(messages, context))
            case Kind.BIDI_STREAM:
                async with inbound.queued(interrupt) as messages:
                    await answer.write_all(method.function(messages, context))
    return interrupt.reason


class _Answer:
    """The stream of messages to the client."""

    def __init__(self, call: Call, codec: Codec, framing: Framing) -> None:
        self._exchange = call.exchange
        self._codec = codec
        self._framing = framing
        self._gzip = accepts_gzip(call.exchange.headers.get(framing.accept_header))
        self._drain = call.settings.drain
        self._starting = asyncio.Lock()
        self.context: RequestContext | None = None

    async def start(self) -> None:
        """Send the headers, once."""
        async with self._starting:
            if not self._exchange.started:
                await self._exchange.start(200, self._headers())

    async def attend(self, interrupt: Interruptible) -> None:
        """Look after the stream while its handler has nothing to tell."""
        await asyncio.sleep(_HEADERS_AFTER_SECONDS)
        await self.start()
        await self._exchange.wait_for_disconnect()
        interrupt.by(Reason.CLIENT_GONE)

    async def write(self, message: Message) -> None:
        envelope = enveloped(self._codec.encode(message), gzip=self._gzip)
        if not self._exchange.started:
            await self.start()
        await self._exchange.write(envelope)

    async def write_all(self, messages: AsyncGenerator[Message]) -> None:
        async with aclosing(messages):
            async for message in messages:
                await self.write(message)

    async def end(self, error: WireError | None) -> None:
        trailers = self.context.response_trailers if self.context is not None else []
        envelope = self._framing.end(error, trailers)
        seconds = _LAST_WORD_IN_A_STOP_SECONDS if self._drain.draining else _LAST_WORD_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.start()
                await self._exchange.write(envelope, more=False)

    def _headers(self) -> HeaderList:
        framing = self._framing
        headers = [(b"content-type", framing.content_type + self._codec.name.encode())]
        if self._gzip:
            headers.append((framing.encoding_header, b"gzip"))
        if self.context is not None:
            headers += header_pairs(self.context.response_headers)
        return headers
