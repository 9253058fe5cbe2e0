"""What callers want of an app, written: deploy (new, changed or again), stop, delete.

Each is one transaction over the app's row. A pass over the app (`reconciler.py`) then makes it so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flyteidl2.app import app_definition_pb2

from flyte_binary.app.backend import AppCondition, AppDefinition, AppState, DeploymentStatus
from flyte_binary.app.requests import consumed_artifacts
from flyte_binary.app.view import phase_of, status_of
from flyte_binary.db.apps import AppRow, Wanted
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.apps import host_label, spec_sha
from flyte_binary.domain.errors import Aborted, AlreadyExists, NotFound
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.timestamps import from_micros

_Spec = app_definition_pb2.Spec

_MESSAGES = {
    Wanted.RUNNING: (DeploymentStatus.DEPLOYMENT_STATUS_PENDING, "waiting to be deployed"),
    Wanted.STOPPED: (DeploymentStatus.DEPLOYMENT_STATUS_SCALING_DOWN, "waiting to be stopped"),
    Wanted.DELETED: (DeploymentStatus.DEPLOYMENT_STATUS_SCALING_DOWN, "waiting to be deleted"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An app as a request brings it."""

    id: AppId
    org: str
    spec: app_definition_pb2.Spec
    meta: app_definition_pb2.Meta
    by: str = ""
    """Subject of the caller, empty if nobody said."""

    def definition(self) -> AppDefinition:
        return AppDefinition(id=self.id, org=self.org, spec=self.spec, sha=spec_sha(self.spec), revision=0)

    @property
    def wanted(self) -> Wanted:
        return Wanted.STOPPED if self.spec.desired_state == _Spec.DESIRED_STATE_STOPPED else Wanted.RUNNING


def deploy(tx: Transaction, draft: Draft, *, at: int, revision: int = 0) -> AppRow:
    """The app as `draft` has it; nothing is written if it is so already.

    `revision` is the one that the caller has read, 0 if it does not care. Raises `Aborted` if there is another by now,
    `AlreadyExists` if another app has the same host label.
    """
    row = tx.apps.lock(draft.id)
    new = _new(draft, at) if row is None else _next(row, draft, at, revision)
    if row == new:
        return new
    if row is not None:
        tx.apps.replace(new)
    elif not tx.apps.insert(new):
        raise _taken(tx, draft.id)
    if row is None or row.sha != new.sha:
        tx.apps.consume(new.id, list(consumed_artifacts(draft.spec)))
    tx.changed_app(new.id, wanted=row is None or row.generation != new.generation)
    return new


def delete(tx: Transaction, app: AppId, *, at: int) -> bool:
    """False if there is no such app."""
    row = tx.apps.lock(app)
    if row is None or row.wanted == Wanted.DELETED:
        return False
    tx.apps.replace(_want(row, Wanted.DELETED, at))
    tx.changed_app(app, wanted=True)
    return True


def require(tx: Transaction, app: AppId) -> AppRow:
    """Raises `NotFound`, also for one that is being deleted."""
    row = tx.apps.get(app)
    if row is None or row.wanted == Wanted.DELETED:
        raise NotFound(f"app {app} not found")
    return row


def _new(draft: Draft, at: int) -> AppRow:
    row = AppRow(
        id=draft.id,
        host_label=host_label(draft.id),
        org=draft.org,
        spec=_stored_spec(draft),
        meta=_stored_meta(draft.meta),
        sha=spec_sha(draft.spec),
        wanted=draft.wanted,
        revision=1,
        generation=0,
        status=b"",
        phase=0,
        observed=0,
        created_by=draft.by,
        created_at=at,
        updated_at=at,
    )
    return _want(row, draft.wanted, at)


def _next(row: AppRow, draft: Draft, at: int, revision: int) -> AppRow:
    if revision and revision != row.revision and row.wanted != Wanted.DELETED:
        raise Aborted(
            f"app {row.id} is at revision {row.revision} by now, not at {revision}: read it again and repeat the change"
        )
    if row.wanted == Wanted.DELETED:
        again = _new(draft, at)
        return replace(again, revision=row.revision + 1, generation=row.generation + 1)
    meta, sha = _stored_meta(draft.meta) or row.meta, spec_sha(draft.spec)
    same_meta = replace(row, meta=meta, org=draft.org or row.org)
    if sha == row.sha and draft.wanted == row.wanted:
        return same_meta if same_meta == row else replace(same_meta, updated_at=at)
    changed = replace(
        same_meta,
        spec=_stored_spec(draft),
        sha=sha,
        revision=row.revision + (1 if sha != row.sha else 0),
    )
    return _want(changed, draft.wanted, at)


def _want(row: AppRow, wanted: Wanted, at: int) -> AppRow:
    """The row with a status that says so at once: nobody may take the old one for the new."""
    status, message = _MESSAGES[wanted]
    told = AppCondition(status=status, message=message, since=from_micros(at))
    shown = status_of(AppState(conditions=[told]), revision=row.revision)
    shown.current_replicas = app_definition_pb2.Status.FromString(row.status).current_replicas
    return replace(
        row,
        wanted=wanted,
        generation=row.generation + 1,
        status=shown.SerializeToString(deterministic=True),
        phase=phase_of(shown),
        updated_at=at,
        started_at=at if wanted is Wanted.RUNNING else row.started_at,
    )


def _stored_spec(draft: Draft) -> bytes:
    return draft.spec.SerializeToString(deterministic=True)


def _stored_meta(meta: app_definition_pb2.Meta) -> bytes:
    kept = app_definition_pb2.Meta()
    kept.CopyFrom(meta)
    kept.ClearField("id")
    kept.ClearField("revision")
    return kept.SerializeToString(deterministic=True)


def _taken(tx: Transaction, app: AppId) -> AlreadyExists:
    other = tx.apps.of_label(host_label(app))
    whose = "another app" if other is None else f"app {other.id}"
    return AlreadyExists(
        f"app.metadata.id: {whose} has the name {host_label(app)!r} on the network already, which {app} would have "
        "too; choose another name"
    )
