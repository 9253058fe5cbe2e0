"""One time of one trigger becomes one run, whoever else tries the same.

The trigger's row says what is due; it is moved on in the transaction that makes the run, guarded by what it was. Of
two servers that fire the same time one finds the row moved on and makes nothing. The run's name follows from trigger
and time as well, so that a trigger which is deleted and deployed again does not run for a time twice either.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from flyteidl2.common import identity_pb2
from flyteidl2.task import run_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerRow
from flyte_binary.domain.errors import (
    AlreadyExists,
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from flyte_binary.domain.ids import RunId, TriggerId
from flyte_binary.domain.timestamps import from_micros, micros_to_proto
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.order import RunOrder

log = structlog.get_logger(__name__)

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
FOR_GOOD = (NotFound, InvalidArgument, FailedPrecondition, PermissionDenied)
"""Trying again would end the same way."""


class Overtaken(Exception):
    """Somebody else fired what was due, or changed the trigger: look at it anew."""


class Firing:
    def __init__(self, database: Database, creator: RunCreator) -> None:
        self._database = database
        self._creator = creator

    async def fire(self, row: TriggerRow, time: int, following: int | None) -> None:
        """Start the run for `time`, or pass it over for good; afterwards the trigger is due at `following`.

        Raises `Overtaken`, and what may pass (`Unavailable`), with the trigger as it was.
        """
        order = RunOrder(
            run=RunId(row.id.project, row.id.domain, run_name_of(row.id, time)),
            trigger=row.id.to_proto(),
            run_spec=run_pb2.RunSpec(),
            source=run_definition_pb2.RUN_SOURCE_SCHEDULE_TRIGGER,
            start_time=micros_to_proto(time),
        )

        def take(tx: Transaction) -> None:
            if not tx.triggers.move_on(row, following):
                raise Overtaken

        try:
            await self._creator.start(order, row.deployed_by, subject_of(row), before=take)
        except AlreadyExists:
            await self.pass_over(row, following)
        except FOR_GOOD as error:
            _report(row, time, error)
            await self.pass_over(row, following)

    async def pass_over(self, row: TriggerRow, following: int | None) -> None:
        """What is due is not fired. Raises `Overtaken`."""
        if not await self._database.write(lambda tx: tx.triggers.move_on(row, following)):
            raise Overtaken


def run_name_of(trigger: TriggerId, time: int) -> str:
    """The reference backend's name for the same run: FNV-1 over trigger and time, to the second in UTC."""
    return hashed_name(trigger, *map(str, _parts(from_micros(time))))


def hashed_name(trigger: TriggerId, *reason: str) -> str:
    """Of the run that the trigger makes for that reason, whoever makes it."""
    found = _FNV_OFFSET
    for byte in ":".join([trigger.project, trigger.domain, trigger.task_name, trigger.name, *reason]).encode():
        found = (found * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF ^ byte
    return f"r{found:x}"


def _parts(at: datetime) -> tuple[int, ...]:
    return at.year, at.month, at.day, at.hour, at.minute, at.second


def subject_of(row: TriggerRow) -> str:
    """Who deployed the trigger is who its runs are made by."""
    if row.deployed_by is None:
        return ""
    return identity_pb2.EnrichedIdentity.FromString(row.deployed_by).user.id.subject


def _report(row: TriggerRow, time: int, error: FlyteError) -> None:
    log.warning(
        "a trigger could not start its run", trigger=str(row.id), time=from_micros(time).isoformat(), error=str(error)
    )
