"""The way out when nothing can be admitted and nobody computes.

A holder may wait for something that nobody can see from outside (a run that it polls, a lock). If
all holders of a core have used no CPU for a while and requests wait, one more is admitted.
"""

from __future__ import annotations

import asyncio
import time

import structlog

from flyte_binary.db.database import Database
from flyte_binary.domain.errors import FlyteError
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.backend import AttemptPhase, ExecutionBackend

log = structlog.get_logger(__name__)

IDLE_SECONDS = 2.0
SAMPLE_SECONDS = 0.5
BUSY_FRACTION = 0.05
"""Of one core: above it a holder computes. The SDK's idle runtime stays far below."""


class Standstill:
    def __init__(self, database: Database, backend: ExecutionBackend, admission: Admission) -> None:
        self._database = database
        self._backend = backend
        self._admission = admission
        self._used: dict[ActionId, float] = {}
        self._idle_since: float | None = None

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            try:
                await self.look(time.monotonic())
            except (FlyteError, OSError) as error:
                log.warning("cannot tell whether anybody computes", error=str(error))

    async def look(self, now: float) -> None:
        """One sample; `now` in seconds of a monotonic clock, `SAMPLE_SECONDS` after the last one."""
        if not self._admission.is_asking():
            self._used, self._idle_since = {}, None
            return
        if await self._somebody_is_busy():
            self._idle_since = None
            return
        if self._idle_since is None:
            self._idle_since = now
            return
        if now - self._idle_since < IDLE_SECONDS:
            return
        self._idle_since = None
        admitted = self._admission.admit_one_more()
        if admitted is not None:
            log.info("nobody computes and requests wait: admitting one more", action=str(admitted))

    async def _somebody_is_busy(self) -> bool:
        """True as well where the platform does not tell."""
        active = self._admission.active()
        used: dict[ActionId, float] = {}
        busy = False
        for action in active:
            seconds = await self._cpu_seconds(action)
            if seconds is None:
                busy = True
                continue
            used[action] = seconds
            before = self._used.get(action)
            if before is None or seconds - before > BUSY_FRACTION * SAMPLE_SECONDS:
                busy = True
        self._used = used
        return busy

    async def _cpu_seconds(self, action: ActionId) -> float | None:
        opened = await self._database.point(lambda tx: tx.attempts.open_of_action(action))
        if not opened:
            return None
        state = await self._backend.observe(opened[-1].id, opened[-1].nonce, with_cpu=True)
        if state.phase is not AttemptPhase.RUNNING:
            return None
        return state.cpu_seconds
