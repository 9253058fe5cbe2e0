"""The HTTP address that answers a condition: what its webhook was given as `{callback_uri}`."""

from __future__ import annotations

import json
from typing import cast

from flyteidl2.core import literals_pb2, types_pb2
from flyteidl2.workflow import run_definition_pb2
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from flyte_binary.actions.signal import Signaller
from flyte_binary.db.database import Database
from flyte_binary.domain.callbacks import PREFIX, CallbackAddresses
from flyte_binary.domain.errors import FlyteError, InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId

LIMIT_BYTES = 64 * 1024
_STATUS = {"invalid_argument": 400, "not_found": 404, "failed_precondition": 409}


class Callbacks:
    def __init__(self, database: Database, signaller: Signaller, addresses: CallbackAddresses) -> None:
        self._database = database
        self._signaller = signaller
        self._addresses = addresses

    def routes(self) -> list[Route]:
        return [Route(PREFIX + "/{project}/{domain}/{run}/{name}", self.answer, methods=["POST"])]

    async def answer(self, request: Request) -> Response:
        """The body is JSON: the value itself, or an object with it under `value`."""
        path = request.path_params
        condition = ActionId(path["project"], path["domain"], path["run"], path["name"])
        if not self._addresses.fits(condition, request.query_params.get("signature", "")):
            return PlainTextResponse("the signature does not fit this address\n", status_code=403)
        try:
            value = await self._value(request, condition)
            await self._signaller.signal(condition, value, None)
        except FlyteError as error:
            return PlainTextResponse(f"{error.message}\n", status_code=_STATUS.get(error.code, 500))
        return PlainTextResponse("signalled\n")

    async def _value(self, request: Request, condition: ActionId) -> literals_pb2.Literal:
        body = await _limited_body(request)
        try:
            found: object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f'the body must be JSON, such as {{"value": true}}: {error}') from error
        given = found
        if isinstance(found, dict):
            given = cast("dict[str, object]", found).get("value")
        row = await self._database.point(lambda tx: tx.actions.get(condition))
        if row is None or row.detail is None:
            raise NotFound(f"condition {condition} does not exist")
        declared = run_definition_pb2.ConditionAction.FromString(row.detail).type.simple
        try:
            primitive = _primitive(given, declared)
        except (ValueError, OverflowError) as error:  # a number that is too large, half a character
            raise InvalidArgument(f"value: the condition cannot take this: {error}") from error
        return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=primitive))


async def _limited_body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LIMIT_BYTES:
            raise InvalidArgument(f"the body is larger than {LIMIT_BYTES} bytes")
    return body


def _primitive(given: object, declared: types_pb2.SimpleType) -> literals_pb2.Primitive:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if declared == types_pb2.BOOLEAN and isinstance(given, bool):
        return literals_pb2.Primitive(boolean=given)
    if declared == types_pb2.INTEGER and isinstance(given, int) and is_number:
        return literals_pb2.Primitive(integer=given)
    if declared == types_pb2.FLOAT and isinstance(given, int | float) and is_number:
        return literals_pb2.Primitive(float_value=float(given))
    if declared == types_pb2.STRING and isinstance(given, str):
        return literals_pb2.Primitive(string_value=given)
    raise InvalidArgument(f"value: the condition takes {types_pb2.SimpleType.Name(declared)}, got {given!r}")
