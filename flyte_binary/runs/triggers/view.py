"""Trigger messages from rows."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2, identity_pb2
from flyteidl2.task import common_pb2
from flyteidl2.trigger import trigger_definition_pb2 as pb

from flyte_binary.db.trigger_rows import RevisionRow, TriggerRow
from flyte_binary.domain import locations
from flyte_binary.domain.timestamps import micros_to_proto


def details_of(row: TriggerRow) -> pb.TriggerDetails:
    spec = spec_of(row)
    spec.active = row.active
    if spec.HasField("offloaded_input_data"):
        # The SDK takes this for the file when it is asked to change some of the inputs, and stores the folder.
        spec.offloaded_input_data.uri = locations.inputs_uri(spec.offloaded_input_data.uri)
    details = pb.TriggerDetails(id=_id_of(row), spec=spec, status=_status_of(row), automation_spec=automation_of(row))
    _add_metadata(details, row)
    return details


def trigger_of(row: TriggerRow) -> pb.Trigger:
    trigger = pb.Trigger(id=_id_of(row), status=_status_of(row), active=row.active, automation_spec=automation_of(row))
    _add_metadata(trigger, row)
    return trigger


def revision_of(revision: RevisionRow) -> pb.TriggerRevision:
    row = revision.trigger
    created_at = max(row.deployed_at, row.updated_at, row.deleted_at or 0)
    message = pb.TriggerRevision(id=_id_of(row), status=_status_of(row), created_at=micros_to_proto(created_at))
    # The stubs want the enum's own members.
    message.action = revision.action  # pyright: ignore[reportAttributeAccessIssue]
    _add_metadata(message, row)
    return message


def spec_of(row: TriggerRow) -> pb.TriggerSpec:
    return pb.TriggerSpec.FromString(row.spec)


def automation_of(row: TriggerRow) -> common_pb2.TriggerAutomationSpec:
    return common_pb2.TriggerAutomationSpec.FromString(row.automation_spec)


def _id_of(row: TriggerRow) -> identifier_pb2.TriggerIdentifier:
    return identifier_pb2.TriggerIdentifier(name=row.id.to_proto(), revision=row.revision)


def _status_of(row: TriggerRow) -> pb.TriggerStatus:
    status = pb.TriggerStatus(deployed_at=micros_to_proto(row.deployed_at), updated_at=micros_to_proto(row.updated_at))
    if row.triggered_at is not None:
        status.triggered_at.CopyFrom(micros_to_proto(row.triggered_at))
    if row.deleted_at is not None:
        status.deleted_at.CopyFrom(micros_to_proto(row.deleted_at))
    return status


def _add_metadata(message: pb.TriggerDetails | pb.Trigger | pb.TriggerRevision, row: TriggerRow) -> None:
    """Only where somebody is known: nobody is, without authentication."""
    if row.deployed_by is not None:
        message.metadata.deployed_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.deployed_by))
    if row.updated_by is not None:
        message.metadata.updated_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.updated_by))
