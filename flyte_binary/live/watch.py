"""Snapshot, then follow: what every watch does, with the reads shared between all who watch the same topic.

    with watches.open(topics.run(run_id)) as watch:      # subscribed before the snapshot is read
        ...                                              # read and send the snapshot
        while True:
            changed = await watch.next()                 # key -> value, newest state only
            ...                                          # send it

A change costs one read however many watch: a value is read once and handed to everyone until its key changes again. A
watcher that is busy sending gathers keys meanwhile and reads each once, so 10,000 changes on 3 keys cost 3 reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from flyte_binary.domain.topics import Key, Topic
from flyte_binary.live.hub import Hub, Subscription

V = TypeVar("V")

Read = Callable[[Topic, Collection[Key]], Awaitable[Mapping[Key, V]]]
"""Values of those of the keys that exist."""

BATCH_LIMIT = 500
"""Most keys of one read, and most values that `Watch.next` returns."""

KEPT_VALUES = 256
"""Values of a topic that are kept for those who ask later; more are read again."""


class SharedWatches(Generic[V]):
    """All watches that read the same kind of value; used on the hub's event loop."""

    def __init__(self, hub: Hub, read: Read[V]) -> None:
        self._hub = hub
        self._read = read
        self._feeds: dict[Topic, _Feed[V]] = {}

    @contextmanager
    def open(self, topic: Topic) -> Generator[Watch[V], None, None]:
        """Subscribe to `topic`; whatever changes from now on is seen by `Watch.next`."""
        feed = self._feeds.get(topic)
        if feed is None:
            feed = self._feeds[topic] = _Feed(self._hub.subscribe(topic), self._read)
        feed.users += 1
        try:
            with self._hub.subscribe(topic) as subscription:
                yield Watch(feed, subscription)
        finally:
            feed.users -= 1
            if feed.users == 0:
                del self._feeds[topic]
                feed.close()


class Watch(Generic[V]):
    """One stream's view of a topic; made by `SharedWatches.open`."""

    def __init__(self, feed: _Feed[V], subscription: Subscription) -> None:
        self._feed = feed
        self._subscription = subscription
        self._pending: list[Key] = []

    async def read(self, keys: Collection[Key]) -> dict[Key, V]:
        """Values of those of the keys that exist, no older than this call."""
        return await self._feed.read(keys)

    async def next(self, *, only: Collection[Key] | None = None) -> dict[Key, V]:
        """Wait, then the values of the keys that changed since the last call, at most `BATCH_LIMIT` at a time.

        `only` narrows to some keys, and is the same in every call. Keys whose value is gone are left out, so the
        answer may be empty.
        """
        while not self._pending:
            dirty = await self._subscription.wait()
            self._pending = sorted(dirty if only is None else dirty.intersection(only))
        keys, self._pending = self._pending[:BATCH_LIMIT], self._pending[BATCH_LIMIT:]
        return await self.read(keys)


class _Feed(Generic[V]):
    """The shared reads of one topic, for as long as somebody watches it."""

    def __init__(self, subscription: Subscription, read: Read[V]) -> None:
        self._subscription = subscription
        """Tells which of the values that are kept are out of date."""

        self._read = read
        self._reads: dict[Key, asyncio.Task[Mapping[Key, V]]] = {}
        """What is being read, for each key the latest."""

        self._running: set[asyncio.Task[Mapping[Key, V]]] = set()
        """These, and the ones whose keys have changed since they began."""

        self._kept: dict[Key, V] = {}
        self.users = 0

    async def read(self, keys: Collection[Key]) -> dict[Key, V]:
        for changed in self._subscription.take():
            self._reads.pop(changed, None)
            self._kept.pop(changed, None)
        found = {key: self._kept[key] for key in keys if key in self._kept}
        missing = [key for key in keys if key not in found and key not in self._reads]
        if missing:
            self._start(missing)
        for key, reading in [(key, self._reads[key]) for key in keys if key not in found]:
            # Shielded: one watcher that leaves must not end the read of the others.
            values = await asyncio.shield(reading)
            if key in values:
                found[key] = values[key]
        return found

    def close(self) -> None:
        self._subscription.__exit__()
        for task in self._running:
            task.cancel()

    def _start(self, keys: list[Key]) -> None:
        task = asyncio.create_task(self._values(keys), name="shared read of a watch")
        for key in keys:
            self._reads[key] = task
        self._running.add(task)
        task.add_done_callback(self._keep)

    async def _values(self, keys: list[Key]) -> Mapping[Key, V]:
        return await self._read(self._subscription.topic, keys)

    def _keep(self, task: asyncio.Task[Mapping[Key, V]]) -> None:
        self._running.discard(task)
        values: Mapping[Key, V] = {} if task.cancelled() or task.exception() is not None else task.result()
        for key in [key for key, reading in self._reads.items() if reading is task]:
            del self._reads[key]
            if key in values:
                self._kept[key] = values[key]
        # In the order of their reads, so the first are the oldest.
        for key in list(self._kept)[: max(0, len(self._kept) - KEPT_VALUES)]:
            del self._kept[key]
