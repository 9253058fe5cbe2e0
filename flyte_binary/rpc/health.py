"""/healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from flyte_binary.rpc.disconnect import Drain

_log = structlog.get_logger(__name__)
_CHECK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    name: str
    """What the answer calls it: `database`."""

    check: Callable[[], Awaitable[None]]
    """Raises if the part cannot serve; the text goes to the answer."""


def health_routes(checks: Sequence[ReadinessCheck], *, drain: Drain, registry: CollectorRegistry) -> list[BaseRoute]:
    """`/healthz` is 200 as long as the process answers; `/readyz` is 503 with the first failing check's text, and while
    the server drains."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("OK")

    async def readyz(_: Request) -> Response:
        if drain.draining:
            return PlainTextResponse("shutting down", status_code=503)
        for check in checks:
            if (failure := await _failure(check)) is not None:
                return PlainTextResponse(failure, status_code=503)
        return PlainTextResponse("OK")

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE_LATEST})

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]


async def _failure(check: ReadinessCheck) -> str | None:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await check.check()
    except TimeoutError:
        return f"{check.name}: no answer within {_CHECK_SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - whatever stops a part is the answer to the question
        _log.warning("not ready", check=check.name, error=str(error))
        return f"{check.name}: {error}"
    return None
