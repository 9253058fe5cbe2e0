"""The hub: who wants to hear that something changed, and the telling.

A subscription is a set of dirty keys and an event. It cannot overflow (a key is in it or not) and
it cannot lose a change: whoever takes the keys reads the rows afterwards, so it sees the newest state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from flyte_binary.domain.topics import Key, Topic


class Subscription:
    """Made by `Hub.subscribe`; use it as a context manager so that it is always given back."""

    def __init__(self, hub: Hub, topic: Topic) -> None:
        self._hub = hub
        self.topic = topic
        self._dirty: set[Key] = set()
        self._event = asyncio.Event()

    def mark(self, key: Key) -> None:
        self._dirty.add(key)
        self._event.set()

    async def wait(self) -> set[Key]:
        """The keys that changed since the last call, at least one."""
        await self._event.wait()
        return self.take()

    def take(self) -> set[Key]:
        """The keys that changed since the last call, maybe none."""
        self._event.clear()
        dirty, self._dirty = self._dirty, set()
        return dirty

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self._hub.unsubscribe(self)


class Hub:
    """One a process; used on its event loop only."""

    def __init__(self) -> None:
        self._subscriptions: dict[Topic, set[Subscription]] = {}
        self.generation = 0
        """Grows with every publication; shared reads are dropped when it has moved on."""

    def subscribe(self, topic: Topic) -> Subscription:
        subscription = Subscription(self, topic)
        self._subscriptions.setdefault(topic, set()).add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        subscribers = self._subscriptions.get(subscription.topic)
        if subscribers is None:
            return
        subscribers.discard(subscription)
        if not subscribers:
            del self._subscriptions[subscription.topic]

    def publish(self, changes: Iterable[tuple[Topic, Key]]) -> None:
        self.generation += 1
        for topic, key in changes:
            for subscription in self._subscriptions.get(topic, ()):
                subscription.mark(key)

    def subscribers(self, topic: Topic) -> int:
        return len(self._subscriptions.get(topic, ()))
