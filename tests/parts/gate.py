"""A door in front of a server: open, it lets connections through; shut, it cuts them and takes no new ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Gate:
    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), name="gate", daemon=True).start()

    def shut(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):  # wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            connections, self._connections = self._connections, set()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target_port))
            with self._lock:
                self._connections |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, sink), name="gate", daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._connections.discard(source)
        source.close()


@contextmanager
def gate(target_port: int) -> Generator[Gate]:
    opened = Gate(target_port)
    try:
        yield opened
    finally:
        opened.shut()
