"""The HTTP end of signed URLs that lead to this server: one file in, or one file out.

What a URL allows stands in its signature (`storage/signed.py`); nobody logs in here. Reports are HTML
that user code wrote and are served from the console's own origin, so everything leaves with a
`Content-Security-Policy: sandbox`: scripts in it run, but in an origin of their own, away from the
console's API and storage.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from flyte_binary.dataproxy.content_types import content_type
from flyte_binary.domain.errors import FlyteError, InvalidArgument
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import PREFIX, Grant, UrlSigner
from flyte_binary.storage.store import Verb

_log = structlog.get_logger(__name__)

_WRITE_BYTES = 1024 * 1024
"""What arrives is gathered to pieces of this size, so that a thread is asked less often."""

_STALLED_SECONDS = 60.0
"""An upload that sends nothing for so long is given up."""

_STATUS = {
    "invalid_argument": 400,
    "permission_denied": 403,
    "not_found": 404,
    "failed_precondition": 409,
    "resource_exhausted": 507,
}

_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts allow-popups allow-downloads",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Referrer-Policy": "no-referrer",
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


def signed_routes(
    store: DiskStore, signer: UrlSigner, *, max_upload_bytes: int, now: Callable[[], datetime] = _utc_now
) -> list[Route]:
    files = _SignedFiles(store, signer, max_upload_bytes, now)
    path = PREFIX + "/{path:path}"
    return [
        Route(path, files.put, methods=["PUT"]),
        Route(path, files.get, methods=["GET"]),  # and HEAD, which Starlette adds
    ]


class _TooLarge(Exception):
    pass


class _SignedFiles:
    def __init__(self, store: DiskStore, signer: UrlSigner, max_bytes: int, now: Callable[[], datetime]) -> None:
        self._store = store
        self._signer = signer
        self._max_bytes = max_bytes
        self._now = now

    async def put(self, request: Request) -> Response:
        """200 once the object is there and will stay; sending it again is allowed and changes nothing.

        Refusals leave nothing behind: 400 for content of another MD5, 403 for an altered or expired URL,
        408 for a client that stalls, 413 for too much content, 507 for a full disk.
        """
        path = _path(request)
        try:
            grant = self._signer.check(Verb.PUT, path, request.query_params, now=self._now())
            expected = _expected_md5(request, grant)
            self._check_announced(request)
            md5 = await self._receive(request, path, expected)
        except FlyteError as error:
            await _discard_rest(request)
            return _refused(request, path, _STATUS.get(error.code, 500), error.message)
        except _TooLarge:
            await _discard_rest(request)
            return _refused(request, path, 413, f"the content is larger than {self._max_bytes} bytes")
        except TimeoutError:
            return _refused(request, path, 408, f"nothing was received for {_STALLED_SECONDS:g} seconds")
        except ClientDisconnect:
            return _refused(request, path, 400, "the client left before the end of the content")
        return Response(headers={"ETag": f'"{md5.hex()}"'})

    async def get(self, request: Request) -> Response:
        """The object, or the `Range` of it that was asked for; HEAD without the content."""
        path = _path(request)
        try:
            self._signer.check(Verb.GET, path, request.query_params, now=self._now())
            info = await self._store.stat(path)
        except FlyteError as error:
            return _refused(request, path, _STATUS.get(error.code, 500), error.message)
        if info is None:
            return _refused(request, path, 404, f"there is no object {path}")
        return FileResponse(path, media_type=content_type(path), headers=_HEADERS)

    def _check_announced(self, request: Request) -> None:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise _TooLarge

    async def _receive(self, request: Request, path: str, expected: bytes | None) -> bytes:
        """The MD5 of the content, which is stored."""
        async with self._store.receive(path) as incoming, aclosing(_pieces(request)) as pieces:
            async for piece in pieces:
                if incoming.size_bytes + len(piece) > self._max_bytes:
                    raise _TooLarge
                await incoming.write(piece)
            if expected is not None and incoming.md5 != expected:
                raise InvalidArgument(
                    "the MD5 of the content is not the one that the URL was made for; nothing is stored"
                )
            await incoming.commit()
            return incoming.md5


def _path(request: Request) -> str:
    return "/" + request.path_params["path"]


def _expected_md5(request: Request, grant: Grant) -> bytes | None:
    """What the content has to match: the signed MD5, else the one in `Content-MD5`."""
    header = request.headers.get("content-md5")
    if header is None:
        return grant.md5
    try:
        announced = base64.b64decode(header, validate=True)
    except binascii.Error as error:
        raise InvalidArgument("Content-MD5 is not valid base64") from error
    if grant.md5 is not None and announced != grant.md5:
        raise InvalidArgument("Content-MD5 is not the MD5 that the URL was made for")
    return announced


async def _pieces(request: Request) -> AsyncGenerator[bytes]:
    gathered = bytearray()
    stream = aiter(request.stream())
    while True:
        async with asyncio.timeout(_STALLED_SECONDS):
            chunk = await anext(stream, None)
        if chunk is None:
            break
        gathered += chunk
        if len(gathered) >= _WRITE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _discard_rest(request: Request) -> None:
    """Read what still comes, for a while: closing the connection under a client that still writes would
    reset it, and the client would see that instead of the reason."""
    with suppress(ClientDisconnect, TimeoutError, RuntimeError):  # RuntimeError: all was read already
        async with asyncio.timeout(_STALLED_SECONDS):
            async for _ in request.stream():
                pass


def _refused(request: Request, path: str, status: int, reason: str) -> Response:
    """Some content may be unread, so the connection is not used again after a refused PUT."""
    _log.warning("signed URL refused", verb=request.method, path=path, status=status, reason=reason)
    headers = {"Connection": "close"} if request.method == "PUT" else {}
    return PlainTextResponse(f"{reason}\n", status_code=status, headers={**_HEADERS, **headers})
