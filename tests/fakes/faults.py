"""Faults on purpose: the nth call of something fails, or takes effect and then fails, or never returns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeVar

from flyte_binary.db.database import Database, Operation
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import RunId

T = TypeVar("T")

ANY = "any"
"""A plan for calls of every name, counted together."""


class Mode(Enum):
    FAILS = auto()
    FAILS_AFTER = auto()
    """It takes effect, and the caller hears of a failure."""
    HANGS = auto()
    """As if the caller died before the call."""
    HANGS_AFTER = auto()
    """As if the caller died before it got the answer."""


@dataclass(frozen=True, slots=True)
class _Fault:
    mode: Mode
    error: Exception


class Faults:
    def __init__(self) -> None:
        self.calls: list[str] = []
        """Names of all calls, in their order."""
        self.reached = asyncio.Event()
        """A planned fault has come about."""
        self._counts: Counter[str] = Counter()
        self._plans: dict[tuple[str, int], _Fault] = {}

    def plan(self, name: str, mode: Mode, *, nth: int = 1, error: Exception | None = None) -> None:
        """The `nth` call of `name` from now on."""
        self._plans[name, self._counts[name] + nth] = _Fault(mode, error or Unavailable(f"{name} fails on purpose"))

    async def around(self, name: str, effect: Callable[[], Awaitable[T]]) -> T:
        self.calls.append(name)
        fault = self._planned(name)
        if fault is None:
            return await effect()
        if fault.mode in (Mode.FAILS_AFTER, Mode.HANGS_AFTER):
            await effect()
        self.reached.set()
        if fault.mode in (Mode.HANGS, Mode.HANGS_AFTER):
            await asyncio.get_running_loop().create_future()
        raise fault.error

    def _planned(self, name: str) -> _Fault | None:
        for counted in (name, ANY):
            self._counts[counted] += 1
        found = [self._plans.pop((counted, self._counts[counted]), None) for counted in (name, ANY)]
        return next((fault for fault in found if fault is not None), None)


class FaultyDatabase:
    """A database whose writes may go wrong."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults

    async def read(self, operation: Operation[T]) -> T:
        return await self._database.read(operation)

    async def point(self, operation: Operation[T]) -> T:
        return await self._database.point(operation)

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        return await self._faults.around("write", lambda: self._database.write(operation, run=run))

    async def ping(self) -> None:
        await self._database.ping()

    async def close(self) -> None:
        await self._database.close()
