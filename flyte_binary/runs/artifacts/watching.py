"""Which triggers a new version of an artifact fires: those that watch its name, its version and its partitions.

What they owe is written with the version, so a version that is published fires whatever happens to the server.
"""

from __future__ import annotations

from flyteidl2.artifact import artifact_pb2
from flyteidl2.task import common_pb2

from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import FiringRow, TriggerRow
from flyte_binary.domain import topics


def owe_firings(tx: Transaction, artifact: ArtifactRow) -> None:
    """Part of the transaction that inserts the version."""
    name = artifact.name
    for trigger in tx.triggers.watching(name.project, name.domain, name.name):
        if not fires(trigger, artifact):
            continue
        owed = FiringRow(
            trigger=trigger.id, artifact=name.name, version=artifact.version, created_at=artifact.created_at
        )
        if tx.artifact_firings.owe(owed):
            of = trigger.id
            tx.changed(topics.ARTIFACT_FIRINGS, (of.project, of.domain, of.task_name, of.name))


def fires(trigger: TriggerRow, artifact: ArtifactRow) -> bool:
    """Whether the trigger, as it is now, waits for that version; one that is paused or deleted waits for none."""
    name = artifact.name
    if trigger.watched_artifact != name.name or (trigger.id.project, trigger.id.domain) != (name.project, name.domain):
        return False
    wanted = common_pb2.TriggerAutomationSpec.FromString(trigger.automation_spec).artifact
    if wanted.version not in ("", artifact.version):
        return False
    texts = artifact_pb2.ArtifactSpec.FromString(artifact.spec).partitions.value
    return all(key in texts and texts[key].static_value == value for key, value in wanted.partitions.items())
