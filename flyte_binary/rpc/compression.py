"""gzip with a bound on what comes out, so that a small body cannot fill the memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator

from flyte_binary.domain.errors import InvalidArgument, ResourceExhausted, Unimplemented

GZIP = "gzip"
IDENTITY = "identity"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's way to ask for the gzip format
_PIECE_BYTES = 1024 * 1024
_INLINE_BYTES = 128 * 1024
"""Above it inflating takes milliseconds and goes to a thread, where zlib releases the interpreter's lock."""

_WORTHWHILE_BYTES = 1024
"""Smaller answers are sent as they are: compressing them costs more than it saves."""


def request_encoding(header: bytes | None) -> str:
    """The encoding that a header names, checked. Raises Unimplemented, as Connect and gRPC demand."""
    if header is None:
        return IDENTITY
    name = header.decode("latin-1").strip().lower() or IDENTITY
    if name not in (GZIP, IDENTITY):
        raise Unimplemented(f"The encoding {name!r} is not supported; send gzip or identity.")
    return name


def accepts_gzip(header: bytes | None) -> bool:
    return header is not None and any(part.split(b";")[0].strip() == b"gzip" for part in header.split(b","))


def compress(data: bytes) -> bytes | None:
    """The data in gzip; None if it is not worth it."""
    if len(data) < _WORTHWHILE_BYTES:
        return None
    packer = zlib.compressobj(level=1, wbits=_GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


async def inflate(data: bytes, *, limit_bytes: int) -> bytes:
    """Raises InvalidArgument if it is not gzip, ResourceExhausted if more than `limit_bytes` would come out."""
    if len(data) <= _INLINE_BYTES:
        return _inflate(data, limit_bytes)
    return await asyncio.to_thread(_inflate, data, limit_bytes)


def _inflate(data: bytes, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    total = 0
    inflater = Inflater()
    for piece in inflater.feed(data):
        total += len(piece)
        if total > limit_bytes:
            raise too_large(limit_bytes)
        pieces.append(piece)
    inflater.end()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Inflater:
    """Incremental gzip; several members after one another are one text (RFC 1952, 2.2)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._inside = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What comes out, in pieces of at most 1 MiB, inflated only as they are taken. Raises InvalidArgument."""
        full = False
        while data or full:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                piece = self._member.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise InvalidArgument(f"The body is declared as gzip but cannot be inflated: {error}") from error
            self._inside = not self._member.eof
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            # zlib may have taken all input and still hold output back when a piece is full.
            full = self._inside and len(piece) == _PIECE_BYTES
            if piece:
                yield piece

    def end(self) -> None:
        """Call at the end of the data. Raises InvalidArgument if it was cut short."""
        if self._inside:
            raise InvalidArgument("The body is declared as gzip but ends in the middle.")


def too_large(limit_bytes: int) -> ResourceExhausted:
    return ResourceExhausted(
        f"The message is larger than the limit of {limit_bytes} bytes (runs.server.maxRequestSize)."
    )
