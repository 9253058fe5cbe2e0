"""One pass over one app: make it what is wanted, and record what is seen."""

from __future__ import annotations

import structlog

from flyte_binary.app.backend import AppBackend, AppCondition, AppState, DeploymentStatus
from flyte_binary.app.view import definition_of, phase_of, status_of
from flyte_binary.control.clock import Clock
from flyte_binary.db.apps import AppRow, Wanted
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, FailedPrecondition, FlyteError, InvalidArgument, PermissionDenied
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.timestamps import from_micros

log = structlog.get_logger(__name__)

RESYNC_SECONDS = 300.0
"""What nobody told of (a KService removed by hand whose event was lost) is mended by then."""

_BLOCKED_SECONDS = 15.0
"""What the backend refuses is asked for again, because what is in its way may go (Knative is installed)."""

_Refused = (InvalidArgument, FailedPrecondition, PermissionDenied, AlreadyExists)


class AppReconciler:
    def __init__(self, database: Database, backend: AppBackend, clock: Clock) -> None:
        self._database = database
        self._backend = backend
        self._clock = clock

    async def reconcile(self, app: AppId) -> float | None:
        """When to come back, in seconds; None if only a change can bring it back. Raises what may be tried again."""
        row = await self._database.point(lambda tx: tx.apps.get(app))
        if row is None:
            return None
        if row.wanted == Wanted.DELETED:
            await self._delete(row)
            return None
        refusal = await self._refusal(row)
        state = await self._backend.observe(definition_of(row))
        if refusal is None:
            await self._record(row, state)
            return RESYNC_SECONDS
        await self._record(row, _refused(state, refusal, row))
        return _BLOCKED_SECONDS

    async def _refusal(self, row: AppRow) -> FlyteError | None:
        definition = definition_of(row)
        try:
            if row.wanted == Wanted.RUNNING:
                await self._backend.deploy(definition)
            else:
                await self._backend.stop(definition)
        except _Refused as error:
            log.warning("app_refused", app=str(row.id), revision=row.revision, reason=error.message)
            return error
        return None

    async def _delete(self, row: AppRow) -> None:
        await self._backend.delete(row.id)

        def remove(tx: Transaction) -> None:
            if tx.apps.remove(row.id, generation=row.generation):
                tx.changed_app(row.id, wanted=False)

        await self._database.write(remove)

    async def _record(self, row: AppRow, state: AppState) -> None:
        status = status_of(state, revision=row.revision)
        text = status.SerializeToString(deterministic=True)
        if not status.conditions or (row.observed == row.generation and text == row.status):
            return

        def record(tx: Transaction) -> None:
            if tx.apps.record(row.id, generation=row.generation, status=text, phase=phase_of(status)):
                tx.changed_app(row.id, wanted=False)

        await self._database.write(record)


def _refused(state: AppState, error: FlyteError, row: AppRow) -> AppState:
    """Failed, for that reason, whatever else is seen."""
    failed = AppCondition(
        status=DeploymentStatus.DEPLOYMENT_STATUS_FAILED,
        message=error.message,
        since=from_micros(row.updated_at),
        revision=row.revision,
    )
    return AppState(
        conditions=[*state.conditions, failed], sha=state.sha, replicas=state.replicas, namespace=state.namespace
    )
