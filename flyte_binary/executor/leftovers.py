"""What is owed for attempts that are over: the process stopped, the log archived, the folder gone.

Owed until `archived_at` is set, so it is done after a crash as well. The attempt's share of the
machine is held until its process is gone.
"""

from __future__ import annotations

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.executor.archive import LogArchiver
from flyte_binary.executor.backend import AttemptPhase, ExecutionBackend

LOOK_AGAIN_SECONDS = 1.0
LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING)


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

    async def settle(self, attempts: list[AttemptRow]) -> float | None:
        """Seconds after which to look again, None if nothing is owed any more."""
        alive = False
        for attempt in attempts:
            state = await self._backend.observe(attempt.id, attempt.nonce)
            if state.phase in LIVE:
                await self._backend.stop(attempt.id, grace_seconds=self._stop_grace_seconds)
                alive = True
                continue
            await self._close(attempt)
        return LOOK_AGAIN_SECONDS if alive else None

    async def _close(self, attempt: AttemptRow) -> None:
        uri = await self._archiver.archive(attempt.id, attempt.output_prefix)
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            ended = attempt.ended_at if attempt.ended_at is not None else now
            tx.attempts.update(attempt.id, archived_at=now, log_uri=uri, ended_at=ended)

        await self._database.write(operation, run=attempt.id.action.run_id)
        await self._backend.forget(attempt.id)
