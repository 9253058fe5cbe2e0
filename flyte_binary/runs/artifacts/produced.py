"""Outputs that a task declares as artifacts become versions of them, in the transaction that ends their action.

A declaration is complete but for the project and the domain, which are the action's, and for the version where nobody
chose one (`flyte/artifacts/_metadata.py` of the SDK 2.12.1).
"""

from __future__ import annotations

from flyteidl2.artifact import artifact_pb2
from flyteidl2.task import common_pb2

from flyte_binary.db.artifacts import ArtifactName
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FlyteError, InvalidArgument
from flyte_binary.domain.ids import AttemptId
from flyte_binary.domain.names import cut
from flyte_binary.runs.artifacts.requests import check_artifact_name, version_from
from flyte_binary.runs.artifacts.versions import Publication, publication_from, publish


def publish_produced(tx: Transaction, outputs: common_pb2.Outputs, attempt: AttemptId, *, at: int) -> list[str]:
    """Versions of whoever created the run. Returns a sentence for each declaration that came to nothing: the value is
    there, so the action has not failed for that."""
    root = tx.actions.get(attempt.action.run_id.root())
    created_by = None if root is None else root.created_by
    problems: list[str] = []
    for produced in outputs.produced_artifacts:
        try:
            publish(tx, _publication(produced, outputs, attempt, created_by, at))
        except FlyteError as error:
            what = f"output {cut(produced.output, 100)!r} was not published as artifact {cut(produced.name, 100)!r}"
            problems.append(f"{what}: {error}")
    return problems


def default_version(attempt: AttemptId) -> str:
    """`<run>-<action>-<attempt>` (reference backend behaviour)."""
    return f"{attempt.action.run}-{attempt.action.name}-{attempt.number}"


def _publication(
    produced: common_pb2.ProducedArtifact,
    outputs: common_pb2.Outputs,
    attempt: AttemptId,
    created_by: bytes | None,
    at: int,
) -> Publication:
    value = next((literal.value for literal in outputs.literals if literal.name == produced.output), None)
    if value is None:
        raise InvalidArgument(f"there is no output {produced.output!r}")
    action = attempt.action
    check_artifact_name("name", produced.name)
    name = ArtifactName(action.project, action.domain, produced.name)
    version = version_from(produced.version or default_version(attempt), "version")
    spec = artifact_pb2.ArtifactSpec(
        value=value,
        type=produced.type if produced.HasField("type") else None,
        info=produced.info if produced.HasField("info") else None,
        parent_artifacts=produced.parent_artifacts,
        partitions=produced.partitions if produced.HasField("partitions") else None,
        time_partition=produced.time_partition if produced.HasField("time_partition") else None,
    )
    spec.source.task_action.action.CopyFrom(action.to_proto())
    spec.source.task_action.attempt = attempt.number
    return publication_from(name, version, spec, created_by=created_by, at=at)
