"""IdentityService, AuthMetadataService and the well-known document of a server that asks nobody to log in."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.auth import auth_service_pb2, identity_pb2
from flyteidl2.auth.auth_service_connect import AuthMetadataServiceClient
from flyteidl2.auth.identity_connect import IdentityServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport
from starlette.applications import Starlette

from flyte_binary.auth.identity_service import IdentityService
from flyte_binary.auth.metadata_service import WELL_KNOWN, AuthMetadataService, PublicClient, well_known_routes
from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount


def application(*peers: str) -> RpcApplication:
    access = OpenAccess(trusted_peers=TrustedPeers(peers), subject_header="x-subject", email_header="x-email")
    services = [
        ServiceMount("flyteidl2.auth.IdentityService", IdentityService()),
        ServiceMount("flyteidl2.auth.AuthMetadataService", AuthMetadataService(PublicClient(client_id="cli"))),
    ]
    return mount(services, CallSettings(authenticator=access))


def identity(*peers: str) -> IdentityServiceClient:
    return IdentityServiceClient("http://flyte", http_client=Client(ASGITransport(application(*peers))))


async def test_nobody_is_nobody() -> None:
    with pytest.raises(ConnectError) as caught:
        await identity().user_info(identity_pb2.UserInfoRequest(), headers={"x-subject": "ann"})
    assert caught.value.code is Code.UNAUTHENTICATED


async def test_whom_a_trusted_proxy_names_is_told() -> None:
    headers = {"x-subject": "ann", "x-email": "ann@example.org"}
    info = await identity("127.0.0.1").user_info(identity_pb2.UserInfoRequest(), headers=headers)
    assert (info.subject, info.email, info.name) == ("ann", "ann@example.org", "")


async def test_there_is_nowhere_to_log_in_and_clients_still_get_their_settings() -> None:
    client = AuthMetadataServiceClient("http://flyte", http_client=Client(ASGITransport(application())))
    with pytest.raises(ConnectError) as caught:
        await client.get_o_auth2_metadata(auth_service_pb2.GetOAuth2MetadataRequest())
    config = await client.get_public_client_config(auth_service_pb2.GetPublicClientConfigRequest())

    assert caught.value.code is Code.UNIMPLEMENTED
    assert (config.client_id, config.authorization_metadata_key) == ("cli", "authorization")
    assert config.dataplane_domain == "http://flyte"


async def test_the_well_known_document_is_not_there() -> None:
    client = Client(ASGITransport(Starlette(routes=well_known_routes())))
    assert (await client.get(f"http://flyte{WELL_KNOWN}")).status == 501
    refused = await client.post(f"http://flyte{WELL_KNOWN}")
    assert (refused.status, refused.headers["allow"]) == (405, "GET")
