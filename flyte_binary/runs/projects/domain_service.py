"""DomainService: the domains of the configuration, which every project has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from flyteidl2.org import domain_definition_pb2, domain_service_pb2

from flyte_binary.domain.errors import FailedPrecondition, NotFound
from flyte_binary.domain.names import check_text
from flyte_binary.rpc.identity import RequestContext


class DomainService:
    def __init__(self, domains: Sequence[tuple[str, str]]) -> None:
        """Pairs of id and friendly name."""
        self._domains = [domain_definition_pb2.Domain(id=name, friendly_name=friendly) for name, friendly in domains]

    async def list_domains(
        self, _request: domain_service_pb2.ListDomainsRequest, _context: RequestContext
    ) -> domain_service_pb2.ListDomainsResponse:
        return domain_service_pb2.ListDomainsResponse(domains=self._domains)

    async def get_domain(
        self, request: domain_service_pb2.GetDomainRequest, _context: RequestContext
    ) -> domain_service_pb2.GetDomainResponse:
        """Raises `NotFound` with the ids that there are."""
        check_text("id", request.id, required=True)
        for domain in self._domains:
            if domain.id == request.id:
                return domain_service_pb2.GetDomainResponse(domain=domain)
        known = ", ".join(domain.id for domain in self._domains)
        raise NotFound(f"id: there is no domain {request.id!r}; this server has {known}")

    async def create_domain(
        self, request: domain_service_pb2.CreateDomainRequest, _context: RequestContext
    ) -> domain_service_pb2.CreateDomainResponse:
        _refuse(request.id)

    async def update_domain(
        self, request: domain_service_pb2.UpdateDomainRequest, _context: RequestContext
    ) -> domain_service_pb2.UpdateDomainResponse:
        _refuse(request.id)

    async def delete_domain(
        self, request: domain_service_pb2.DeleteDomainRequest, _context: RequestContext
    ) -> domain_service_pb2.DeleteDomainResponse:
        _refuse(request.id)


def _refuse(domain: str) -> NoReturn:
    check_text("id", domain, required=True)
    raise FailedPrecondition(
        f"id: domain {domain!r} cannot be changed here; domains are a setting of the server (runs.domains)"
    )
