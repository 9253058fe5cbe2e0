"""What requests about secrets must carry. No error shows anything of a value."""

from __future__ import annotations

import re

from flyteidl2.secret import definition_pb2, payload_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.secrets import LARGEST_VALUE_BYTES, SecretId, SecretScope
from flyte_binary.rpc.require import require_name, storable
from flyte_binary.secret.vault import SecretContent

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 500

_NAME = re.compile(r"[-a-zA-Z0-9_]+")


def secret_id_from(identifier: definition_pb2.SecretIdentifier) -> SecretId:
    """The organization never counts. Raises `InvalidArgument`."""
    name = identifier.name
    if not name:
        raise InvalidArgument("id.name is required: the name of the secret")
    if not _NAME.fullmatch(name):
        raise InvalidArgument("id.name: the name of a secret has letters, digits, '-' and '_' only")
    secret = SecretId(_scope(identifier.project, identifier.domain, "id."), name)
    if secret.spare < 0:
        longest = len(name) + secret.spare
        raise InvalidArgument(f"id.name: at most {longest} characters in {secret.scope}, got {len(name)}")
    return secret


def listed_scope(request: payload_pb2.ListSecretsRequest) -> SecretScope:
    """Raises `InvalidArgument`."""
    return _scope(request.project, request.domain, "")


def page_size(limit: int) -> int:
    """As the reference backend, which takes any number; more than we give at once comes in pages. Raises
    `InvalidArgument`."""
    if limit < 0:
        raise InvalidArgument(f"limit must not be negative, got {limit}")
    return min(limit, LARGEST_LIMIT) or DEFAULT_LIMIT


def content_from(spec: definition_pb2.SecretSpec) -> SecretContent:
    """Raises `InvalidArgument`."""
    match spec.WhichOneof("value"):
        case "string_value":
            value = storable(spec.string_value, "secret_spec.string_value").encode()
        case "binary_value":
            value = spec.binary_value
        case _:
            raise InvalidArgument("secret_spec.string_value or secret_spec.binary_value is required")
    if len(value) > LARGEST_VALUE_BYTES:
        raise InvalidArgument(f"secret_spec: a secret has at most {LARGEST_VALUE_BYTES} bytes, got {len(value)}")
    if spec.type not in definition_pb2.SecretType.values():
        raise InvalidArgument(f"secret_spec.type: {spec.type} is no type of a secret")
    return SecretContent(value=value, type=spec.type)


def _scope(project: str, domain: str, prefix: str) -> SecretScope:
    if project and not domain:
        raise InvalidArgument(
            f"{prefix}domain is required beside {prefix}project: secrets belong to a project in a domain"
        )
    if domain:
        require_name(domain, f"{prefix}domain")
    if project:
        require_name(project, f"{prefix}project")
    return SecretScope(domain, project)
