"""TranslatorService: literals and types to the JSON of launch forms, and back (`spec/platform.md` 3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from flyteidl2.core import literals_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import translator_service_pb2 as pb
from google.protobuf import struct_pb2

from flyte_binary.dataproxy.translator.forms import form_of, literals_of_form, literals_of_values
from flyte_binary.dataproxy.translator.plain import json_of_struct, struct_of
from flyte_binary.dataproxy.translator.sources import LiteralSources
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.identity import RequestContext

_LARGE_BYTES = 64 * 1024
"""From here on, a translation takes milliseconds and leaves the event loop."""

T = TypeVar("T")


class TranslatorService:
    def __init__(self, sources: LiteralSources) -> None:
        self._sources = sources

    async def literals_to_launch_form_json(
        self, request: pb.LiteralsToLaunchFormJsonRequest, _context: RequestContext
    ) -> pb.LiteralsToLaunchFormJsonResponse:
        literals = await self._sources.of(request)
        size = request.ByteSize() + sum(literal.ByteSize() for literal in literals.values())
        form = await _translate(size, lambda: struct_of(form_of(request.variables, literals)))
        return pb.LiteralsToLaunchFormJsonResponse(json=form)

    async def launch_form_json_to_literals(
        self, request: pb.LaunchFormJsonToLiteralsRequest, _context: RequestContext
    ) -> pb.LaunchFormJsonToLiteralsResponse:
        if not request.HasField("json"):
            raise InvalidArgument("json is required")
        literals = await _translate(request.ByteSize(), lambda: literals_of_form(json_of_struct(request.json)))
        return pb.LaunchFormJsonToLiteralsResponse(literals=literals)

    async def task_spec_to_launch_form_json(
        self, request: pb.TaskSpecToLaunchFormJsonRequest, _context: RequestContext
    ) -> pb.TaskSpecToLaunchFormJsonResponse:
        form = await _translate(request.ByteSize(), lambda: _form_of_task(request.task_spec))
        return pb.TaskSpecToLaunchFormJsonResponse(json=form)

    async def json_values_to_literals(
        self, request: pb.JsonValuesToLiteralsRequest, _context: RequestContext
    ) -> pb.JsonValuesToLiteralsResponse:
        if not request.HasField("values"):
            raise InvalidArgument("values is required")
        literals = await _translate(
            request.ByteSize(), lambda: literals_of_values(request.variables, json_of_struct(request.values))
        )
        return pb.JsonValuesToLiteralsResponse(literals=literals)


def _form_of_task(spec: task_definition_pb2.TaskSpec) -> struct_pb2.Struct:
    """With the values that the task's own signature gives, which the reference leaves out."""
    defaults: Mapping[str, literals_pb2.Literal] = {
        named.name: named.parameter.default
        for named in spec.default_inputs
        if named.parameter.WhichOneof("behavior") == "default"
    }
    return struct_of(form_of(spec.task_template.interface.inputs, defaults))


async def _translate(size_bytes: int, work: Callable[[], T]) -> T:
    return work() if size_bytes < _LARGE_BYTES else await asyncio.to_thread(work)
