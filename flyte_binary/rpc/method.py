"""RPC methods as the server sees them, made from service descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

# A handler's shape depends on the kind of its method, which only the descriptor knows; `mount.py` checks it at start.
Handler = Callable[..., Any]

# In this order: an acronym in the plural (URIs), one capital glued to a capitalised word (OAuth2), a word, an acronym.
_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]{2}[a-z0-9]+|[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class Kind(Enum):
    UNARY = "unary"
    CLIENT_STREAM = "client stream"
    SERVER_STREAM = "server stream"
    BIDI_STREAM = "bidirectional stream"


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One method of a mounted service."""

    service: str
    """Full name, `flyteidl2.workflow.RunService`."""

    name: str
    kind: Kind
    request_type: type[Message]

    safe: bool
    """Declared free of side effects: may be called with GET."""

    function: Handler | None
    """None if the implementation lacks it."""

    @property
    def full_name(self) -> str:
        return f"{self.service}/{self.name}"


def methods_of(service: ServiceDescriptor, implementation: object) -> list[Method]:
    """All methods of the service, each bound to the implementation's function of the same name in snake case."""
    return [_method(service, method, implementation) for method in service.methods]


def snake_case(name: str) -> str:
    """The Python name of an RPC: CreateRun -> create_run, GetActionDataURIs -> get_action_data_uris,
    GetOAuth2Metadata -> get_oauth2_metadata. An acronym is one word, also in the plural."""
    return "_".join(word.lower() for word in _WORD.findall(name))


def _method(service: ServiceDescriptor, method: MethodDescriptor, implementation: object) -> Method:
    return Method(
        service=service.full_name,
        name=method.name,
        kind=_kind(method),
        request_type=GetMessageClass(method.input_type),
        safe=method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS,
        function=getattr(implementation, snake_case(method.name), None),
    )


def _kind(method: MethodDescriptor) -> Kind:
    if method.client_streaming:
        return Kind.BIDI_STREAM if method.server_streaming else Kind.CLIENT_STREAM
    return Kind.SERVER_STREAM if method.server_streaming else Kind.UNARY
