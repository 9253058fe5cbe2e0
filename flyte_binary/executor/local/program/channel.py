"""Lines of JSON with file descriptors over a Unix stream socket.

Descriptors travel in order and each message says whether one belongs to it (`"fd": true`), so it does
not matter how the kernel cuts the stream.
"""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from typing import Any

_MAX_DESCRIPTORS = 64


class Channel:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._buffer = b""
        self._descriptors: deque[int] = deque()

    def fileno(self) -> int:
        return self.connection.fileno()

    def send(self, message: dict[str, Any], descriptor: int | None = None) -> bool:  # Any: JSON
        """False if the other side is gone, or so far behind that it may as well be."""
        data = encode(message, descriptor is not None)
        try:
            if descriptor is None:
                sent = self.connection.send(data)
            else:
                sent = socket.send_fds(self.connection, [data], [descriptor])
        except OSError:
            return False
        return sent == len(data)

    def receive(self) -> list[tuple[dict[str, Any], int | None]] | None:  # Any: JSON
        """What has arrived, each with its descriptor; None at the end of the stream."""
        try:
            data, descriptors, _flags, _address = socket.recv_fds(self.connection, 262_144, _MAX_DESCRIPTORS)
        except BlockingIOError:
            return []
        except OSError:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors.extend(descriptors)
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [self._decode(line) for line in lines]

    def _decode(self, line: bytes) -> tuple[dict[str, Any], int | None]:  # Any: JSON
        message: dict[str, Any] = json.loads(line)  # Any: JSON
        descriptor = self._descriptors.popleft() if message.pop("fd", False) else None
        return message, descriptor

    def close(self) -> None:
        self.connection.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())


def encode(message: dict[str, Any], with_descriptor: bool) -> bytes:  # Any: JSON
    if with_descriptor:
        message = {**message, "fd": True}
    return json.dumps(message).encode() + b"\n"
