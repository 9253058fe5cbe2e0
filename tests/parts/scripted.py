"""An HTTP server that answers as it is told, one answer after the other, and keeps what it was asked."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut: int | None = None
    """Close the connection after so many bytes of the body."""


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    """With its query."""
    headers: dict[str, str]
    """Names in lower case."""
    size_bytes: int


@dataclass
class Scripted:
    port: int = 0
    answers: deque[Answer] = field(default_factory=deque[Answer])
    """The last one is given again and again."""
    asked: list[Asked] = field(default_factory=list[Asked])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def will(self, *answers: Answer) -> None:
        self.asked.clear()
        self.answers = deque(answers)

    def next(self) -> Answer:
        return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted() -> Generator[Scripted]:
    script = Scripted()

    server = _Server(("127.0.0.1", 0), _handler(script))
    server.daemon_threads = True  # a client that keeps its connection open does not keep the test
    script.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="scripted")
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Of a client that left: as it should, where the answer was cut."""


def _handler(script: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            rest = size = int(self.headers.get("Content-Length") or 0)
            if self.headers.get("Expect") == "100-continue":
                self.send_response_only(100)
                self.end_headers()
            while rest:
                rest -= len(self.rfile.read(min(rest, 1 << 20)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append(Asked(self.command, self.path, headers, size))
            self.give(script.next())

        def give(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body[: answer.cut])
            if answer.cut is not None:
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            """Not to the test's output."""

    return Handler
