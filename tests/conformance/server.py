"""The server under test: started by the suite's runner, told over stdin what to be, tells over stdout where it is.

python -m tests.conformance.server CONTRACT
"""

from __future__ import annotations

import asyncio
import logging
import signal
import struct
import sys
from pathlib import Path
from typing import Any

import structlog

from flyte_binary.rpc.calls import DEFAULT_LIMIT_BYTES, CallSettings
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.server import Server, build_app
from tests.conformance import contract
from tests.conformance.service import ConformanceService

_SIZE = struct.Struct(">I")


async def serve(limit_bytes: int) -> None:
    settings = CallSettings(limit_bytes=limit_bytes or DEFAULT_LIMIT_BYTES)
    rpc = mount([ServiceMount(f"{contract.PACKAGE}.ConformanceService", ConformanceService())], settings)
    server = Server(app=build_app(rpc, drain=settings.drain), drain=settings.drain, port=0)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    port = server.bind()
    _write(contract.message_type("ServerCompatResponse")(host="127.0.0.1", port=port))
    await server.serve()


def _read() -> Any:  # any: the type is made when the tests run
    (size,) = _SIZE.unpack(sys.stdin.buffer.read(_SIZE.size))
    return contract.message_type("ServerCompatRequest").FromString(sys.stdin.buffer.read(size))


def _write(message: Any) -> None:  # any: as above
    data = message.SerializeToString()
    sys.stdout.buffer.write(_SIZE.pack(len(data)) + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    contract.load(Path(sys.argv[1]))
    asyncio.run(serve(_read().message_receive_limit))
