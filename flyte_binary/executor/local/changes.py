"""Who wants to know which attempts change. A set for each listener: it cannot overflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

from flyte_binary.domain.ids import AttemptId


class Listener:
    def __init__(self) -> None:
        self._dirty: dict[AttemptId, None] = {}
        self._event = asyncio.Event()
        self._closed = False

    def add(self, attempt: AttemptId) -> None:
        self._dirty[attempt] = None
        self._event.set()

    def close(self) -> None:
        """Its iteration ends after what it has been told."""
        self._closed = True
        self._event.set()

    async def __aiter__(self) -> AsyncIterator[AttemptId]:
        while True:
            self._event.clear()
            while self._dirty:
                attempt = next(iter(self._dirty))
                del self._dirty[attempt]
                yield attempt
            if self._closed:
                return
            await self._event.wait()


class Changes:
    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._closed = False

    @contextmanager
    def listener(self) -> Generator[Listener]:
        listener = Listener()
        if self._closed:
            listener.close()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def tell(self, attempt: AttemptId) -> None:
        for listener in self._listeners:
            listener.add(attempt)

    def close(self) -> None:
        self._closed = True
        for listener in self._listeners:
            listener.close()
