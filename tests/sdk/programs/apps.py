"""Apps of each kind: FastAPI, a server function with parameters, a plain command, and one that calls another."""

from __future__ import annotations

import asyncio
import http.server
import os
import urllib.request

import fastapi
import flyte
import flyte.app
from flyte.app.extras import FastAPIAppEnvironment

api = fastapi.FastAPI(title="greeter")


@api.get("/")
async def greeting() -> dict[str, str]:
    print("greeted", flush=True)
    return {"says": os.environ.get("GREETING", "hello"), "pid": str(os.getpid())}


@api.get("/call/{name}")
async def call(name: str) -> dict[str, str]:
    endpoint = os.environ["INTERNAL_APP_ENDPOINT_PATTERN"].format(app_fqdn=name)
    with await asyncio.to_thread(urllib.request.urlopen, f"{endpoint}/", timeout=30) as answer:
        return {"other": answer.read().decode()}


greeter = FastAPIAppEnvironment(name="greeter", app=api)

server_app = flyte.app.AppEnvironment(
    name="function-server", parameters=[flyte.app.Parameter(name="word", value="parameter")]
)


@server_app.server
def serve(word: str) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"the {word}".encode())

    http.server.ThreadingHTTPServer(("127.0.0.1", server_app.get_port().port), Handler).serve_forever()


port = int(os.environ.get("PLAIN_PORT", "39417"))
plain = flyte.app.AppEnvironment(name="plain-command", port=port, args=f"python -m http.server {port} --bind 127.0.0.1")

broken = flyte.app.AppEnvironment(name="broken", args="python -m nothing_of_the_sort")
