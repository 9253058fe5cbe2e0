"""Ends a handler that nobody listens to any more: its client left, its deadline passed, or the server stops.

    async with Interruptible(drain, deadline) as interrupt:
        ...                                    # anything may call interrupt.by(Reason.CLIENT_GONE)
    if interrupt.reason is Reason.CLIENT_GONE: ...

The body is cancelled where it waits, so the `finally` blocks of a generator run at once although it would have yielded
nothing for hours. The cancellation that was caused here, and only that one, ends here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from enum import Enum
from types import TracebackType


class Reason(Enum):
    CLIENT_GONE = "the client left"
    DEADLINE = "the client's deadline passed"
    DRAIN = "the server stops"


class Drain:
    """Tells the open streams of a server that it stops. `begin` may be called again."""

    def __init__(self) -> None:
        self._open: set[Interruptible] = set()
        self.draining = False

    def begin(self) -> None:
        """End every stream that is open now. Streams that come later are refused by `rpc/application.py`."""
        self.draining = True
        for interruptible in tuple(self._open):
            interruptible.by(Reason.DRAIN)

    def add(self, interruptible: Interruptible) -> None:
        self._open.add(interruptible)
        if self.draining:
            # Soon, not now: a task cannot be cancelled reliably by itself.
            asyncio.get_running_loop().call_soon(interruptible.by, Reason.DRAIN)

    def remove(self, interruptible: Interruptible) -> None:
        self._open.discard(interruptible)

    @property
    def open_streams(self) -> int:
        return len(self._open)


class Interruptible:
    """A block of the current task that can be ended from outside, once, with a reason."""

    def __init__(self, drain: Drain | None, deadline: float | None) -> None:
        """`drain` is None for what a stop waits for; `deadline` is a time of the event loop's clock."""
        self._drain = drain
        self._deadline = deadline
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelled_before = 0
        self.reason: Reason | None = None

    def by(self, reason: Reason) -> None:
        """End the block; without effect if it has ended or another reason was first."""
        if self._task is not None and self.reason is None:
            self.reason = reason
            self._task.cancel()

    async def __aenter__(self) -> Interruptible:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelled_before = task.cancelling()
        if self._deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._deadline, self.by, Reason.DEADLINE)
        if self._drain is not None:
            self._drain.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
        if self._drain is not None:
            self._drain.remove(self)
        if self.reason is None or task is None:
            return False
        # As in asyncio.timeout: somebody else's cancellation, if there is one too, goes on.
        only_ours = task.uncancel() <= self._cancelled_before
        return only_ours and kind is not None and issubclass(kind, asyncio.CancelledError)


@asynccontextmanager
async def alongside(work: Coroutine[object, object, None], *, name: str) -> AsyncGenerator[None]:
    """Run `work` as a task while the block runs, and no longer. What it raises is raised at the end of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()
