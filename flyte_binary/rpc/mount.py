"""Binds service implementations to the methods of the contract.

An implementation is any object with one function for each RPC that it serves, named by the RPC in snake case (an
acronym is one word: GetActionDataURIs is `get_action_data_uris`, GetOAuth2Metadata `get_oauth2_metadata`):

    class RunService:
        async def create_run(self, request: CreateRunRequest, context: RequestContext) -> CreateRunResponse: ...

        async def watch_runs(self, request, context) -> AsyncIterator[WatchRunsResponse]:
            try:
                yield ...                       # an async generator
            finally:
                ...                             # runs as soon as the client leaves

        async def record_action_stream(self, requests, context) -> AsyncIterator[RecordActionStreamResponse]:
            async for request in requests:
                yield ...

    rpc = mount([ServiceMount("flyteidl2.workflow.RunService", RunService(database))])

The module that defines the service (`flyteidl2.workflow.run_service_pb2`) must have been imported, which the
implementation does anyway. Functions raise errors of `domain/errors.py`. An RPC without a function answers
`unimplemented`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pool import Default as default_pool

from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.method import Kind, Method, methods_of

_GENERATORS = (Kind.SERVER_STREAM, Kind.BIDI_STREAM)


@dataclass(frozen=True, slots=True)
class ServiceMount:
    full_name: str
    """`flyteidl2.workflow.RunService`."""

    implementation: object


def mount(services: Iterable[ServiceMount], settings: CallSettings | None = None) -> RpcApplication:
    """Raises LookupError for a service that is not in the contract, TypeError for an implementation that serves nothing
    of its service or has a function of the wrong shape, ValueError for a service mounted twice."""
    methods: list[Method] = []
    seen: set[str] = set()
    for service in services:
        if service.full_name in seen:
            raise ValueError(f"{service.full_name} is mounted twice")
        seen.add(service.full_name)
        methods += _bound(service)
    return RpcApplication(methods, settings or CallSettings())


def _bound(service: ServiceMount) -> list[Method]:
    methods = methods_of(_descriptor(service.full_name), service.implementation)
    if all(method.function is None for method in methods):
        raise TypeError(f"{type(service.implementation).__name__} has no function for any RPC of {service.full_name}")
    for method in methods:
        _check_shape(method)
    return methods


def _descriptor(full_name: str) -> ServiceDescriptor:
    try:
        return default_pool().FindServiceByName(full_name)
    except KeyError:
        raise LookupError(f"{full_name} is not in the contract, or its module has not been imported") from None


def _check_shape(method: Method) -> None:
    function = method.function
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        return  # none, or a callable object, whose shape cannot be told
    wanted = method.kind in _GENERATORS
    if wanted != inspect.isasyncgenfunction(function) or not (wanted or inspect.iscoroutinefunction(function)):
        shape = "an async generator" if wanted else "a coroutine function"
        raise TypeError(f"{function.__qualname__} must be {shape}: {method.full_name} is a {method.kind.value}")
