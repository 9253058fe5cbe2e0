"""What a client gets when there is no answer of the app: a status, a sentence, and nothing of the inside."""

from __future__ import annotations

import html
import math

from starlette.types import Scope, Send

from flyte_binary.app.ingress.answers import AnswerTimeout
from flyte_binary.app.ingress.ports import AppBusy, AppFailed
from flyte_binary.domain.errors import DeadlineExceeded, FlyteError, NotFound, ResourceExhausted, Unavailable
from flyte_binary.domain.ids import AppId


class Stopping(Unavailable):
    """The server, before there was a replica."""

    def __init__(self) -> None:
        super().__init__("the server is being stopped; try again in a moment")


_BAD_GATEWAY = 502
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (Unavailable, 503),
    (ResourceExhausted, 503),
    (DeadlineExceeded, 504),
    (AnswerTimeout, 504),
)
_MOMENT_SECONDS = 1


async def refuse(scope: Scope, send: Send, app: AppId, error: Exception) -> None:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), _BAD_GATEWAY)
    await answer(scope, send, status, _sentence(app, error), _retry_after(error))


async def answer(
    scope: Scope, send: Send, status: int, sentence: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """As a page for a browser, else as text."""
    kind, body = _rendered(scope, status, sentence)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", kind),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                *(headers or []),
            ],
        }
    )
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})


def _sentence(app: AppId, error: Exception) -> str:
    if isinstance(error, FlyteError):
        return error.message
    if isinstance(error, AnswerTimeout):
        return str(error)
    return f"A replica of app {app} ended the connection before it had answered."


def _retry_after(error: Exception) -> list[tuple[bytes, bytes]]:
    if isinstance(error, AppFailed):
        return [(b"retry-after", str(max(1, math.ceil(error.retry_after))).encode())]
    if isinstance(error, AppBusy | Stopping):
        return [(b"retry-after", str(_MOMENT_SECONDS).encode())]
    return []


def _rendered(scope: Scope, status: int, sentence: str) -> tuple[bytes, bytes]:
    accepted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    if b"text/html" not in accepted:
        return b"text/plain; charset=utf-8", f"{sentence}\n".encode()
    page = (
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{status}</title><body style='font-family:system-ui;max-width:50rem;margin:3rem auto;padding:0 1rem'>"
        f"<h1>{status}</h1><pre style='white-space:pre-wrap'>{html.escape(sentence)}</pre>"
    )
    return b"text/html; charset=utf-8", page.encode()
