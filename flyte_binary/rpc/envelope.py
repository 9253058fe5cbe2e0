"""Enveloped messages: the framing that Connect streams, gRPC and gRPC-Web share.

An envelope is one byte of flags, four bytes of length (big endian) and that many bytes of payload.
"""

from __future__ import annotations

import struct

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.compression import too_large

COMPRESSED = 0b1
_HEADER = struct.Struct(">BI")


def make_envelope(flags: int, payload: bytes) -> bytes:
    return _HEADER.pack(flags, len(payload)) + payload


class EnvelopeReader:
    """Cuts a stream of bytes into envelopes."""

    def __init__(self, *, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()

    def add(self, data: bytes) -> None:
        self._buffer += data

    def take(self) -> tuple[int, bytes] | None:
        """Flags and payload of the next envelope; None until it is complete. Raises InvalidArgument,
        ResourceExhausted."""
        if len(self._buffer) < _HEADER.size:
            return None
        flags, length = _HEADER.unpack_from(self._buffer)
        if flags & ~COMPRESSED:
            raise InvalidArgument(f"protocol error: invalid envelope flags {flags:#010b}")
        if length > self._limit_bytes:
            raise too_large(self._limit_bytes)
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        payload = bytes(memoryview(self._buffer)[_HEADER.size : end])
        del self._buffer[:end]
        return flags, payload

    def end(self) -> None:
        """Call at the end of the stream. Raises InvalidArgument if an envelope was cut short."""
        if self._buffer:
            raise InvalidArgument("protocol error: the request ends inside an envelope")
