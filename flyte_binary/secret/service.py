"""SecretService: secrets are set, listed and deleted here; their values leave only for the tasks that ask for them."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2
from flyteidl2.secret import definition_pb2 as definitions
from flyteidl2.secret import payload_pb2 as pb
from flyteidl2.secret import secret_pb2

from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.domain.wire_enums import secret_type_to_wire
from flyte_binary.secret.requests import content_from, listed_scope, page_size, secret_id_from
from flyte_binary.secret.table import not_found
from flyte_binary.secret.vault import StoredSecret, Vault

SERVICE = secret_pb2.DESCRIPTOR.services_by_name["SecretService"].full_name
"""Importing its module is what makes the service known to the contract."""


class SecretService:
    def __init__(self, vault: Vault, *, cluster: str) -> None:
        """`cluster` is the name under which secrets are said to be present."""
        self._vault = vault
        self._cluster = cluster

    async def create_secret(self, request: pb.CreateSecretRequest, _context: object) -> pb.CreateSecretResponse:
        await self._vault.create(secret_id_from(request.id), content_from(request.secret_spec))
        return pb.CreateSecretResponse()

    async def update_secret(self, request: pb.UpdateSecretRequest, _context: object) -> pb.UpdateSecretResponse:
        await self._vault.update(secret_id_from(request.id), content_from(request.secret_spec))
        return pb.UpdateSecretResponse()

    async def get_secret(self, request: pb.GetSecretRequest, _context: object) -> pb.GetSecretResponse:
        secret = secret_id_from(request.id)
        found = await self._vault.find(secret)
        if found is None:
            raise not_found(secret)
        return pb.GetSecretResponse(secret=self._shown(found, organization=request.id.organization))

    async def delete_secret(self, request: pb.DeleteSecretRequest, _context: object) -> pb.DeleteSecretResponse:
        await self._vault.delete(secret_id_from(request.id))
        return pb.DeleteSecretResponse()

    async def list_secrets(self, request: pb.ListSecretsRequest, _context: object) -> pb.ListSecretsResponse:
        scope, limit = listed_scope(request), page_size(request.limit)
        page = await self._vault.list(scope, token=request.token, limit=limit)
        return pb.ListSecretsResponse(secrets=[self._shown(found) for found in page.secrets], token=page.token)

    def _shown(self, secret: StoredSecret, *, organization: str = "") -> definitions.Secret:
        identifier = definitions.SecretIdentifier(
            name=secret.id.name,
            organization=organization,
            domain=secret.id.scope.domain,
            project=secret.id.scope.project,
        )
        present = definitions.ClusterSecretStatus(
            cluster=identifier_pb2.ClusterIdentifier(name=self._cluster), presence_status=definitions.PRESENT
        )
        status = definitions.SecretStatus(overall_status=definitions.FULLY_PRESENT, cluster_status=[present])
        metadata = definitions.SecretMetadata(
            created_time=micros_to_proto(secret.created_at),
            secret_status=status,
            type=secret_type_to_wire(secret.type),
        )
        return definitions.Secret(id=identifier, secret_metadata=metadata)
