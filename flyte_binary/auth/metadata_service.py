"""AuthMetadataService and its plain HTTP twin: how a client would log in.

Without authentication configured there is nowhere to log in, which `unimplemented` tells the SDK; the settings of
public clients are answered all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from flyteidl2.auth import auth_service_pb2 as pb
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from flyte_binary.domain.errors import Unimplemented
from flyte_binary.rpc.identity import RequestContext

WELL_KNOWN = "/.well-known/oauth-authorization-server"

_NOT_CONFIGURED = "oauth2 metadata is not configured: this server does not ask its callers to log in"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicClient:
    """What a client is told before it logs in."""

    client_id: str = ""
    redirect_uri: str = ""
    scopes: tuple[str, ...] = ()
    audience: str = ""
    authorization_metadata_key: str = "authorization"
    """The header that carries the token."""


class AuthMetadataService:
    def __init__(self, client: PublicClient) -> None:
        self._client = client

    async def get_oauth2_metadata(
        self, request: pb.GetOAuth2MetadataRequest, context: RequestContext
    ) -> pb.GetOAuth2MetadataResponse:
        raise Unimplemented(_NOT_CONFIGURED)

    async def get_public_client_config(
        self, request: pb.GetPublicClientConfigRequest, context: RequestContext
    ) -> pb.GetPublicClientConfigResponse:
        """`dataplane_domain` is the origin under which the caller reached this server: there is no other."""
        client = self._client
        return pb.GetPublicClientConfigResponse(
            client_id=client.client_id,
            redirect_uri=client.redirect_uri,
            scopes=client.scopes,
            audience=client.audience,
            authorization_metadata_key=client.authorization_metadata_key,
            dataplane_domain=context.origin,
        )


def well_known_routes() -> list[Route]:
    async def answer(request: Request) -> PlainTextResponse:
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Method Not Allowed", status_code=405, headers={"allow": "GET"})
        return PlainTextResponse(_NOT_CONFIGURED, status_code=501)

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return [Route(WELL_KNOWN, answer, methods=methods)]
