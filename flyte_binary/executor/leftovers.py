"""What is owed for attempts that are over: the process stopped, the log archived, the folder gone.

Owed until `archived_at` is set, so it is done after a crash as well. The attempt's share of the
machine is held until its process is gone, and no longer: a store that takes no log holds up nothing else.
What exists and is owed by no row (the server fell before the folder was removed) is ended and removed too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FlyteError, Unavailable
from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.archive import LogArchiver
from flyte_binary.executor.backend import AttemptPhase, ExecutionBackend

LOOK_AGAIN_SECONDS = 1.0
CLOSE_AGAIN_SECONDS = 10.0
LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    alive: bool = False
    """A process of an attempt that is over still runs."""
    look_again: float | None = None
    """Seconds, None if nothing is owed any more."""


class Leftovers:
    def __init__(
        self,
        database: Database,
        backend: ExecutionBackend,
        archiver: LogArchiver,
        clock: Clock,
        *,
        stop_grace_seconds: float,
    ) -> None:
        self._database = database
        self._backend = backend
        self._archiver = archiver
        self._clock = clock
        self._stop_grace_seconds = stop_grace_seconds
        self._existing: dict[ActionId, set[AttemptId]] = {}

    def exists(self, attempt: AttemptId) -> None:
        """The backend has told of it; the next pass over its action sees to it that somebody wants it."""
        self._existing.setdefault(attempt.action, set()).add(attempt)

    def not_ours(self, action: ActionId) -> None:
        """Another server sees to what exists of it."""
        self._existing.pop(action, None)

    async def settle(self, action: ActionId, opened: list[AttemptRow], over: list[AttemptRow]) -> Owed:
        """`opened` are all attempts for which something is owed, `over` those of them that have ended
        as far as the action goes."""
        alive, open_end = await self._remove_strays(action, {attempt.id for attempt in opened})
        for attempt in over:
            state = await self._backend.observe(attempt.id, attempt.nonce)
            if state.phase in LIVE:
                await self._backend.stop(attempt.id, grace_seconds=self._stop_grace_seconds)
                alive = True
                continue
            open_end |= not await self._closed(attempt)
        if alive:
            return Owed(alive=True, look_again=LOOK_AGAIN_SECONDS)
        return Owed(look_again=CLOSE_AGAIN_SECONDS if open_end else None)

    async def close_concluded(self, attempt: AttemptRow) -> float | None:
        """The same for one attempt that is known to be gone and whose end is recorded already."""
        closed = await self._closed(replace(attempt, ended_at=self._clock.now()))
        return None if closed else CLOSE_AGAIN_SECONDS

    async def _remove_strays(self, action: ActionId, wanted: set[AttemptId]) -> tuple[bool, bool]:
        """Whether one still runs, and whether one is not removed yet. Such a one stays known, whatever happens."""
        strays = self._existing.pop(action, set()) - wanted
        alive, left = False, set(strays)
        try:
            for stray in strays:
                try:
                    await self._backend.stop(stray, grace_seconds=self._stop_grace_seconds)
                    await self._backend.forget(stray)
                except Unavailable:
                    alive = True
                except OSError as error:
                    log.warning("what an attempt left is not removed yet", attempt=str(stray), error=str(error))
                else:
                    left.discard(stray)
        finally:
            for stray in left:
                self.exists(stray)
        return alive, bool(left)

    async def _closed(self, attempt: AttemptRow) -> bool:
        try:
            await self._close(attempt)
        except (FlyteError, OSError) as error:
            log.warning("the log of an attempt is not archived yet", attempt=str(attempt.id), error=str(error))
            return False
        return True

    async def _close(self, attempt: AttemptRow) -> None:
        uri = await self._archiver.archive(attempt.id, attempt.output_prefix)
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            ended = {} if attempt.ended_at is not None else {"ended_at": now}
            tx.attempts.update(attempt.id, archived_at=now, log_uri=uri, **ended)

        await self._database.write(operation, run=attempt.id.action.run_id)
        try:
            await self._backend.forget(attempt.id)
        except BaseException:
            # No row owes it any more.
            self.exists(attempt.id)
            raise
