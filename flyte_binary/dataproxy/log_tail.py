"""TailLogs: the last lines of an attempt's log, then each new one until the attempt is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import datetime

from flyte_binary.dataproxy.archived_log import ArchivedLog
from flyte_binary.dataproxy.ports import Actions, AttemptView, LiveLogs
from flyte_binary.domain import topics
from flyte_binary.domain.errors import NotFound, ResourceExhausted
from flyte_binary.domain.ids import AttemptId
from flyte_binary.domain.logs import LogLine
from flyte_binary.live.hub import Hub, Subscription
from flyte_binary.storage.store import ObjectStore

INITIAL_LINES = 1000
BATCH_LINES = 100
BATCH_CHARACTERS = 1024 * 1024
"""A batch of long lines is closed early, so that a message stays small."""

MAX_TAILS = 100
"""Logs followed at once, as in the reference backend."""

IDLE_SECONDS = 5.0
"""A log that is silent for so long makes us look whether its attempt still exists: it may have lost the
process that would have told its end."""

NOT_YET_SECONDS = 0.5
"""A launched attempt has no log for a moment; nothing tells when it comes."""


class LogTails:
    def __init__(
        self,
        actions: Actions,
        live: LiveLogs,
        store: ObjectStore,
        hub: Hub,
        *,
        limit: int = MAX_TAILS,
        idle_seconds: float = IDLE_SECONDS,
        not_yet_seconds: float = NOT_YET_SECONDS,
    ) -> None:
        self._actions = actions
        self._live = live
        self._store = store
        self._hub = hub
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._not_yet_seconds = not_yet_seconds
        self._open = 0

    @property
    def open_tails(self) -> int:
        return self._open

    async def follow(self, attempt: AttemptId) -> AsyncGenerator[list[LogLine]]:
        """Batches of lines: of the live log if there is one, else of the archive.

        Waits for an attempt that has not begun. Ends when the attempt is over and all was sent, at once
        if it never had a log (a hit in the cache, a recovered action): the SDK would try again for ten
        seconds if that were an error. Raises `NotFound` for an attempt that does not exist, and
        `ResourceExhausted` if too many logs are being followed.
        """
        if self._open >= self._limit:
            raise ResourceExhausted(f"{self._limit} logs are being followed already; try again later")
        self._open += 1
        try:
            with self._hub.subscribe(topics.run(attempt.action.run_id)) as changes:
                async with aclosing(self._follow(attempt, changes)) as batches:
                    async for batch in batches:
                        yield batch
        finally:
            self._open -= 1

    async def _follow(self, attempt: AttemptId, changes: Subscription) -> AsyncGenerator[list[LogLine]]:
        sent = _Sent()
        while True:
            changes.take()
            view = await self._require(attempt)
            if view.log_uri:
                source = self._archived(view.log_uri, sent)
            elif (position := await self._live.tail_position(attempt, lines=INITIAL_LINES)) is not None:
                source = self._running(attempt, position, changes)
            elif not view.over:
                await _changed(changes, attempt, self._not_yet_seconds if view.launched else None)
                continue
            elif (await self._require(attempt)).log_uri:
                continue  # archived and removed between our two looks
            else:
                return
            try:
                async with aclosing(source) as batches:
                    async for batch in batches:
                        sent.add(batch)
                        yield batch
            except _LiveLogGone:
                await _changed(changes, attempt, self._not_yet_seconds)
            else:
                return

    async def _require(self, attempt: AttemptId) -> AttemptView:
        view = await self._actions.attempt(attempt)
        if view is None:
            raise NotFound(f"attempt {attempt.number} of action {attempt.action} not found")
        return view

    async def _running(self, attempt: AttemptId, position: int, changes: Subscription) -> AsyncGenerator[list[LogLine]]:
        """Raises `_LiveLogGone` if the attempt was archived and removed under a slow reader."""
        over = False
        while True:
            try:
                page = await self._live.read(attempt, position, limit_lines=BATCH_LINES)
            except NotFound as error:
                raise _LiveLogGone from error
            position = page.position
            for batch in batches_of(page.lines):
                yield batch
            if page.ended or (over and not page.lines):
                return
            if not page.lines:
                silent = await self._wait(attempt, position)
                if silent or (attempt.action.name,) in changes.take():
                    over = (await self._require(attempt)).over

    async def _wait(self, attempt: AttemptId, position: int) -> bool:
        """Until something may follow; whether the log was silent for all the time that we wait at most."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._idle_seconds
        await self._live.wait(attempt, position, timeout_seconds=self._idle_seconds)
        return clock() >= deadline

    async def _archived(self, uri: str, sent: _Sent) -> AsyncGenerator[list[LogLine]]:
        log = await ArchivedLog.open(self._store, uri)
        first = 0 if sent.at else max(log.total_lines - INITIAL_LINES, 0)
        already = sent.copy()
        async with aclosing(log.lines_from(first)) as frames:
            async for lines in frames:
                for batch in batches_of(already.skip(lines)):
                    yield batch


class _LiveLogGone(Exception):
    """The live log vanished while it was read; the archive has it now, or will soon."""


class _Sent:
    """How far the reader is, in terms that hold for the live log and for the archive: the times of lines,
    which both have in the same order, and how many lines of the last time were sent."""

    def __init__(self, at: datetime | None = None, lines: int = 0) -> None:
        self.at = at
        self._lines = lines

    def copy(self) -> _Sent:
        return _Sent(self.at, self._lines)

    def add(self, lines: list[LogLine]) -> None:
        for line in lines:
            self._lines = self._lines + 1 if line.at == self.at else 1
            self.at = line.at

    def skip(self, lines: list[LogLine]) -> list[LogLine]:
        """What of `lines`, from the log's beginning on and call by call, was not sent; consumes itself."""
        if self.at is None:
            return lines
        rest: list[LogLine] = []
        for line in lines:
            if line.at > self.at or (line.at == self.at and self._lines == 0):
                rest.append(line)
            elif line.at == self.at:
                self._lines -= 1
        return rest


def batches_of(lines: list[LogLine]) -> list[list[LogLine]]:
    """Lists of at most `BATCH_LINES` lines and (but for a single longer line) `BATCH_CHARACTERS`."""
    batches: list[list[LogLine]] = []
    room = 0
    for line in lines:
        if not batches or len(batches[-1]) == BATCH_LINES or len(line.text) > room:
            batches.append([])
            room = BATCH_CHARACTERS
        batches[-1].append(line)
        room -= len(line.text)
    return batches


async def _changed(changes: Subscription, attempt: AttemptId, timeout_seconds: float | None) -> None:
    """Until the action changes, or for that long; changes of other actions of the run do not count."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_seconds):
            while (attempt.action.name,) not in await changes.wait():
                pass
