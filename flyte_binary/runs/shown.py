"""Messages of lists, kept from one request to the next.

What a list shows of an action depends on its row alone, and each change of the row gives it a new version; so a message
is made once, however often it is listed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.run_listing import Key

M = TypeVar("M")

KEPT = 10_000
"""Messages of about a kilobyte."""


class Shown(Generic[M]):
    """Used by several threads: `missing` looks only, everything else is the event loop's."""

    def __init__(self, make: Callable[[ActionRow], M], *, kept: int = KEPT) -> None:
        self._make = make
        self._kept = kept
        self._messages: OrderedDict[Key, M] = OrderedDict()

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those whose rows must be read."""
        return [key for key in keys if key not in self._messages]

    def messages(self, keys: Sequence[Key], rows: Iterable[ActionRow]) -> list[M]:
        """In the order of the keys; those neither kept nor among the rows are left out. Not to be changed."""
        made = {key_of(row): self._make(row) for row in rows}
        found: list[M] = []
        for key in keys:
            message = made.get(key) or self._messages.get(key)
            if message is not None:
                found.append(message)
                self._messages[key] = message
                self._messages.move_to_end(key)
        while len(self._messages) > self._kept:
            self._messages.popitem(last=False)
        return found


def key_of(row: ActionRow) -> Key:
    return row.id.project, row.id.domain, row.id.run, row.id.name, row.version
