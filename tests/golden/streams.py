"""Server streams held open beside a driver, as a console in a browser holds them."""

from __future__ import annotations

import asyncio
import threading
import time
from types import TracebackType

import httpx

from tests.golden.wire import Json, bytes_from_json, envelope, method_of


class Streams:
    """Streams that are read and thrown away until the block ends; the recorder in between keeps what came."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="streams", daemon=True)
        self._readers: list[asyncio.Task[None]] = []
        self._last_message = time.monotonic()

    def __enter__(self) -> Streams:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def open(self, method: str, request: Json) -> None:
        """Opens one stream and returns when the server has accepted it."""
        accepted = threading.Event()
        asyncio.run_coroutine_threadsafe(self._start(method, request, accepted), self._loop).result(timeout=10)
        if not accepted.wait(timeout=10):
            raise TimeoutError(f"{method} did not answer within 10 s")

    def settle(self, quiet_seconds: float = 0.5) -> None:
        """Waits until no stream has said anything for a while, ten seconds at most."""
        deadline = time.monotonic() + 10
        while time.monotonic() < min(deadline, self._last_message + quiet_seconds):
            time.sleep(0.05)

    async def _start(self, method: str, request: Json, accepted: threading.Event) -> None:
        self._readers.append(asyncio.create_task(self._read(method, request, accepted), name=method))

    async def _read(self, method: str, request: Json, accepted: threading.Event) -> None:
        known = method_of(method)
        assert known is not None
        headers = {"content-type": "application/connect+proto"}
        body = envelope(bytes_from_json(request, known.request))
        async with httpx.AsyncClient(base_url=self._base_url, timeout=httpx.Timeout(10, read=None)) as client:
            async with client.stream("POST", f"/{method}", content=body, headers=headers) as response:
                accepted.set()
                async for _ in response.aiter_raw():
                    self._last_message = time.monotonic()

    async def _leave(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
