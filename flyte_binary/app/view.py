"""Rows as the messages that clients get, and what was seen of an app as the status that is stored."""

from __future__ import annotations

from flyteidl2.app import app_definition_pb2

from flyte_binary.app.backend import AppCondition, AppDefinition, AppState, DeploymentStatus
from flyte_binary.db.apps import AppRow, Wanted
from flyte_binary.domain.timestamps import micros_to_proto, to_proto

_Spec = app_definition_pb2.Spec


def definition_of(row: AppRow) -> AppDefinition:
    return AppDefinition(id=row.id, org=row.org, spec=_Spec.FromString(row.spec), sha=row.sha, revision=row.revision)


def app_of(row: AppRow, public_url: str) -> app_definition_pb2.App:
    """`public_url` is empty for an app that has none."""
    meta = app_definition_pb2.Meta.FromString(row.meta)
    meta.id.CopyFrom(row.id.to_proto())
    meta.id.org = row.org
    meta.revision = row.revision
    status = app_definition_pb2.Status.FromString(row.status)
    if public_url:
        status.ingress.public_url = public_url
    status.created_at.CopyFrom(micros_to_proto(row.created_at))
    status.last_updated_at.CopyFrom(micros_to_proto(row.updated_at))
    if row.started_at is not None:
        status.last_started_at.CopyFrom(micros_to_proto(row.started_at))
    return app_definition_pb2.App(metadata=meta, spec=_spec_of(row), status=status)


def _spec_of(row: AppRow) -> app_definition_pb2.Spec:
    """As it came, but that it says what is wanted now."""
    spec = _Spec.FromString(row.spec)
    if row.wanted != Wanted.RUNNING:
        spec.desired_state = _Spec.DESIRED_STATE_STOPPED
    elif spec.desired_state == _Spec.DESIRED_STATE_STOPPED:
        spec.desired_state = _Spec.DESIRED_STATE_ACTIVE
    return spec


def status_of(state: AppState, *, revision: int) -> app_definition_pb2.Status:
    """Conditions without a revision of their own are about `revision`."""
    status = app_definition_pb2.Status(current_replicas=state.replicas)
    if state.namespace:
        status.k8s_metadata.namespace = state.namespace
    for condition in state.conditions:
        status.conditions.append(_condition(condition, condition.revision or revision, state.sha))
    return status


def _condition(condition: AppCondition, revision: int, sha: str) -> app_definition_pb2.Condition:
    return app_definition_pb2.Condition(
        last_transition_time=to_proto(condition.since),
        deployment_status=condition.status,
        message=condition.message,
        revision=revision,
        substate=condition.substate,
        deployment_id=sha,
    )


def phase_of(status: app_definition_pb2.Status) -> DeploymentStatus:
    """What clients take for the app's status: that of the last condition."""
    if not status.conditions:
        return DeploymentStatus.DEPLOYMENT_STATUS_UNSPECIFIED
    return status.conditions[-1].deployment_status
