"""What differs between the protocols that carry enveloped messages: Connect streams and gRPC-Web.

Sources: connectrpc.com/docs/protocol ("Streaming RPCs"), the gRPC-Web and gRPC over HTTP/2 protocol documents.
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Protocol

from google.rpc import status_pb2  # pyright: ignore[reportMissingTypeStubs] - it has none

from flyte_binary.rpc.call_headers import check_connect_version, connect_deadline, grpc_deadline
from flyte_binary.rpc.compression import compress
from flyte_binary.rpc.envelope import COMPRESSED, make_envelope
from flyte_binary.rpc.errors import WireError
from flyte_binary.rpc.exchange import Exchange

Metadata = list[tuple[str, str]]

_CONNECT_END = 0b10
_GRPC_WEB_TRAILERS = 0b10000000
_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")

_GRPC_CODES = (
    "ok canceled unknown invalid_argument deadline_exceeded not_found already_exists permission_denied "
    "resource_exhausted failed_precondition aborted out_of_range unimplemented internal unavailable data_loss "
    "unauthenticated"
)
GRPC_STATUS = {name: number for number, name in enumerate(_GRPC_CODES.split())}
"""gRPC's number of each Connect code."""


class Framing(Protocol):
    content_type: bytes
    """Prefix, up to the name of the codec."""

    encoding_header: bytes
    accept_header: bytes

    def deadline(self, exchange: Exchange) -> float | None:
        """Raises InvalidArgument."""
        ...

    def end(self, error: WireError | None, trailers: Metadata) -> bytes:
        """The last envelope of the answer."""
        ...


class ConnectFraming:
    content_type = b"application/connect+"
    encoding_header = b"connect-content-encoding"
    accept_header = b"connect-accept-encoding"

    def deadline(self, exchange: Exchange) -> float | None:
        check_connect_version(exchange)
        return connect_deadline(exchange)

    def end(self, error: WireError | None, trailers: Metadata) -> bytes:
        document: dict[str, object] = {}
        if trailers:
            metadata: dict[str, list[str]] = {}
            for name, value in trailers:
                metadata.setdefault(name, []).append(value)
            document["metadata"] = metadata
        if error is not None:
            document["error"] = error.to_json()
        return make_envelope(_CONNECT_END, json.dumps(document).encode())


class GrpcWebFraming:
    content_type = b"application/grpc-web+"
    encoding_header = b"grpc-encoding"
    accept_header = b"grpc-accept-encoding"

    def deadline(self, exchange: Exchange) -> float | None:
        return grpc_deadline(exchange)

    def end(self, error: WireError | None, trailers: Metadata) -> bytes:
        lines = [*trailers, *grpc_status(error)]
        block = "".join(f"{name.lower()}: {value}\r\n" for name, value in lines)
        return make_envelope(_GRPC_WEB_TRAILERS, block.encode("latin-1", "replace"))


def grpc_status(error: WireError | None) -> Metadata:
    """The status of a call as gRPC's trailers."""
    if error is None:
        return [("grpc-status", "0")]
    number = GRPC_STATUS[error.code]
    lines = [
        ("grpc-status", str(number)),
        ("grpc-message", urllib.parse.quote(error.message, safe=_PRINTABLE)),
    ]
    if error.details:
        status = status_pb2.Status(code=number, message=error.message, details=error.details)
        lines.append(("grpc-status-details-bin", base64.b64encode(status.SerializeToString()).decode().rstrip("=")))
    return lines


def enveloped(payload: bytes, *, gzip: bool) -> bytes:
    """A message in its envelope, compressed if the client accepts it and it is worth it."""
    packed = compress(payload) if gzip else None
    return make_envelope(0, payload) if packed is None else make_envelope(COMPRESSED, packed)


CONNECT: Framing = ConnectFraming()
GRPC_WEB: Framing = GrpcWebFraming()
