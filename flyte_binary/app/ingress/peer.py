"""The replica's side of an upgraded connection."""

from __future__ import annotations

import asyncio
from typing import Protocol


class OtherSide(Protocol):
    """The client's."""

    def write(self, data: bytes) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def end(self) -> None: ...


class Peer(asyncio.Protocol):
    """Takes over the transport. Whoever cannot be written to fast enough is not read for: `pause` and `resume` are
    about reading on this side, and are called by the other one."""

    def __init__(self, other: OtherSide, transport: asyncio.Transport) -> None:
        self._other = other
        self._transport = transport
        transport.set_protocol(self)

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def pause(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # a protocol's argument
        self._other.end()

    def pause_writing(self) -> None:
        self._other.pause()

    def resume_writing(self) -> None:
        self._other.resume()
