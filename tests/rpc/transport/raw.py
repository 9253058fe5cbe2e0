"""A client of a few lines, for what a well-behaved one would never do."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, path: str, headers: dict[str, str], body: bytes, *, length: int | None = None) -> None:
        lines = {"host": "127.0.0.1", "content-length": str(len(body) if length is None else length), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await self.writer.drain()

    async def head(self) -> str:
        async with asyncio.timeout(5):
            return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def chunk(self) -> bytes:
        """One chunk of the answer's body; empty at its end."""
        async with asyncio.timeout(5):
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.reader.readexactly(size + 2)
            return data[:-2]


@asynccontextmanager
async def connection(port: int) -> AsyncGenerator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def envelope(message: Message | bytes, flags: int = 0) -> bytes:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return struct.pack(">BI", flags, len(data)) + data


def envelopes(body: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while body:
        flags, size = struct.unpack_from(">BI", body)
        found.append((flags, body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def end_of_stream(body: bytes) -> dict[str, Any]:  # any: a JSON document
    flags, data = envelopes(body)[-1]
    assert flags == 2
    return json.loads(data)
