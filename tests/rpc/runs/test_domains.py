"""DomainService shows the configured domains and refuses to change them."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.org import domain_service_pb2
from flyteidl2.org.domain_service_connect import DomainServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.projects.domain_service import DomainService


@pytest.fixture
def domains() -> DomainServiceClient:
    service = DomainService([("development", "Development"), ("production", "Live")])
    app = mount([ServiceMount("flyteidl2.org.DomainService", service)])
    return DomainServiceClient("http://flyte", http_client=Client(ASGITransport(app)))


async def test_the_configured_domains_are_listed_with_their_names(domains: DomainServiceClient) -> None:
    listed = await domains.list_domains(domain_service_pb2.ListDomainsRequest())

    assert [(domain.id, domain.friendly_name) for domain in listed.domains] == [
        ("development", "Development"),
        ("production", "Live"),
    ]


async def test_one_is_shown_and_an_unknown_one_is_not_found(domains: DomainServiceClient) -> None:
    shown = await domains.get_domain(domain_service_pb2.GetDomainRequest(id="production"))
    assert shown.domain.friendly_name == "Live"

    with pytest.raises(
        ConnectError, match="there is no domain 'staging'; this server has development, production"
    ) as raised:
        await domains.get_domain(domain_service_pb2.GetDomainRequest(id="staging"))
    assert raised.value.code is Code.NOT_FOUND


async def test_domains_are_changed_in_the_configuration_only(domains: DomainServiceClient) -> None:
    for change in (
        domains.create_domain(domain_service_pb2.CreateDomainRequest(id="new")),
        domains.update_domain(domain_service_pb2.UpdateDomainRequest(id="production")),
        domains.delete_domain(domain_service_pb2.DeleteDomainRequest(id="production")),
    ):
        with pytest.raises(ConnectError, match=r"runs\.domains") as raised:
            await change
        assert raised.value.code is Code.FAILED_PRECONDITION
