"""The database as the services see it: `read` and `write`, each taking a synchronous operation.

Writes of concurrent requests are grouped: whatever waits when the writer is free goes into one
transaction, each operation under a savepoint of its own, and is answered after the commit. One
failed operation is rolled back alone. Hints about what changed are published after the commit and
before the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.ids import RunId

T = TypeVar("T")

Operation = Callable[[Transaction], T]
Publish = Callable[[set[tuple[topics.Topic, topics.Key]]], None]


class Database(Protocol):
    async def read(self, operation: Operation[T]) -> T:
        """Run on a connection of its own, seeing one snapshot; what it writes is not kept."""
        ...

    async def point(self, operation: Operation[T]) -> T:
        """`read` for a few rows found by their keys. SQLite answers it on the spot, which costs a
        fifth of handing it to a thread; nothing that scans belongs here."""
        ...

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        """Run within a grouped commit; return once it is on the disk.

        The operation may be run more than once before it is committed. Writes of one `run` are
        committed in the order in which they were handed in. Raises what the operation raises, and
        `Unavailable` if the database cannot commit.
        """
        ...

    async def ping(self) -> None: ...

    async def close(self) -> None: ...
