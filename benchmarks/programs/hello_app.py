"""An app that costs next to nothing, so that what is measured is what stands before it."""

from __future__ import annotations

import os
from typing import Any

import uvicorn

PORT = int(os.environ["PORT"])
BODY = b'{"port": %d, "pid": %d}' % (PORT, os.getpid())
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]


async def app(_scope: Any, _receive: Any, send: Any) -> None:  # Any: ASGI's own types are as loose
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})


if __name__ == "__main__":
    uvicorn.run(app, port=PORT, http="httptools", ws="none", lifespan="off", access_log=False, log_config=None)
