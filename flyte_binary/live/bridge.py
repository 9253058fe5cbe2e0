"""Hints between the hubs of several servers.

What a server commits is told to its own hub at once, and to the others in notifications that gather what comes while
one is being sent. Each carries the sender and a number; whoever misses one, or has lost its connection, or finds that a
server is gone that may have died between a commit and its notification, reads from the database what changed lately
and publishes that. The same is done now and then without any reason: a hint that was lost costs time, never an update.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

import structlog

from flyte_binary.domain.errors import FlyteError, Unavailable
from flyte_binary.domain.topics import Key, Topic
from flyte_binary.live.hub import Hub

log = structlog.get_logger(__name__)

Change = tuple[Topic, Key]

PAYLOAD_LIMIT = 7900
"""Bytes; JSON of ASCII letters only, so characters as well."""

RESYNC_SECONDS = 30.0
_AGAIN_SECONDS = 1.0


class Channel(Protocol):
    """Texts from each server to all of them."""

    async def open(self, heard: Callable[[str], None]) -> None: ...

    async def send(self, payloads: Iterable[str]) -> None:
        """Raises `Unavailable`."""
        ...

    async def reconnect_when_lost(self) -> None: ...

    async def close(self) -> None: ...


class Resync(Protocol):
    async def __call__(self) -> set[Change]:
        """What has changed lately. Raises `FlyteError`."""
        ...


class Bridge:
    """Made on the event loop; give `publish` to the database."""

    def __init__(self, hub: Hub, channel: Channel) -> None:
        self._hub = hub
        self._channel = channel
        self._me = secrets.token_hex(6)
        self._number = 0
        self._pending: set[Change] = set()
        self._some = asyncio.Event()
        self._numbers: dict[str, int] = {}
        """Of the last notification of each server."""

        self._missed = asyncio.Event()
        self._heard: tuple[set[Change], set[Change]] = (set(), set())
        """Hints of this and of the last period between two looks at the database."""

        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, resync: Resync) -> None:
        """Raises what the channel raises."""
        await self._channel.open(self._hear)
        self._tasks = [
            asyncio.create_task(loop, name=f"bridge-{name}")
            for name, loop in (
                ("send", self._send()),
                ("reconnect", self._reconnect()),
                ("resync", self._resync(resync)),
            )
        ]

    def publish(self, changes: set[Change]) -> None:
        """After a commit, on the event loop."""
        self._deliver(changes)
        self._pending |= changes
        self._some.set()

    def missed_something(self) -> None:
        """A server is gone, or anything else that may have swallowed hints."""
        self._missed.set()

    async def close(self) -> None:
        """What is pending is still told."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(FlyteError, TimeoutError):
            async with asyncio.timeout(1):
                await self._send_pending()
        await self._channel.close()

    def _deliver(self, changes: set[Change]) -> None:
        self._heard[0].update(changes)
        self._hub.publish(changes)

    async def _send(self) -> None:
        while True:
            await self._some.wait()
            try:
                await self._send_pending()
            except Unavailable as error:
                log.warning("the other servers do not hear of changes now", reason=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _send_pending(self) -> None:
        pending, self._pending = self._pending, set()
        self._some.clear()
        if not pending:
            return
        try:
            await self._channel.send(list(self._payloads(pending)))
        except BaseException:
            self._pending |= pending
            self._some.set()
            raise

    def _payloads(self, changes: Iterable[Change]) -> Iterator[str]:
        part: list[str] = []
        size = 0
        for topic, key in sorted(changes):
            text = json.dumps([topic, key], separators=(",", ":"))
            if part and size + len(text) > PAYLOAD_LIMIT - 100:
                yield self._payload(part)
                part, size = [], 0
            part.append(text)
            size += len(text) + 1
        yield self._payload(part)

    def _payload(self, changes: list[str]) -> str:
        self._number += 1
        return f'["{self._me}",{self._number},[{",".join(changes)}]]'

    def _hear(self, payload: str) -> None:
        try:
            sender, number, changes = json.loads(payload)
            found = {(tuple(topic), tuple(key)) for topic, key in changes}
        except (ValueError, TypeError):
            log.warning("a notification that is none of ours", payload=payload[:100])
            return
        if sender == self._me:
            return
        before = self._numbers.get(sender)
        if before is not None and number > before + 1:
            self._missed.set()
        self._numbers[sender] = number
        self._deliver(found)

    async def _reconnect(self) -> None:
        while True:
            await self._channel.reconnect_when_lost()
            log.info("notifications come again; looking at what changed meanwhile")
            self._missed.set()

    async def _resync(self, resync: Resync) -> None:
        while True:
            missed = await self._missed_within(RESYNC_SECONDS)
            heard = self._heard[0] | self._heard[1]
            self._heard = (set(), self._heard[0])
            try:
                found = await resync()
            except FlyteError as error:
                log.warning("cannot look at what changed", reason=str(error))
                self._missed.set()
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self._hub.publish(found if missed else found - heard)

    async def _missed_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._missed.wait()
        except TimeoutError:
            return False
        self._missed.clear()
        return True
