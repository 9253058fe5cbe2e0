"""A launch form: one JSON schema for the inputs of a task, with the values they have as defaults."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from flyteidl2.core import interface_pb2, literals_pb2, types_pb2
from flyteidl2.task import common_pb2

from flyte_binary.dataproxy.translator.literals import literal_of, none_literal
from flyte_binary.dataproxy.translator.plain import Json, is_null
from flyte_binary.dataproxy.translator.schemas import schema_of
from flyte_binary.dataproxy.translator.types import is_optional, type_of
from flyte_binary.dataproxy.translator.values import json_of
from flyte_binary.domain.errors import FlyteError, InvalidArgument

TITLE = "Launch Form"


def form_of(variables: interface_pb2.VariableMap, literals: Mapping[str, literals_pb2.Literal]) -> dict[str, Json]:
    """Literals that no variable is declared for are left out. Errors name the field."""
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for entry in variables.variables:
        with _field(entry.key):
            schema = _field_schema(entry.key, entry.value, literals.get(entry.key))
        properties[entry.key] = schema
        if _is_required(schema):
            required.append(entry.key)
    return {"type": "object", "properties": properties, "required": required, "title": TITLE}


def literals_of_form(form: dict[str, Json]) -> list[common_pb2.NamedLiteral]:
    """In the order of their names: a Struct has none of its own. Fields without a value are left out, but an optional
    one is None. Errors name the field."""
    properties = form.get("properties")
    if not isinstance(properties, dict):
        raise InvalidArgument("json.properties is required: an object with a schema for each input")
    found: list[common_pb2.NamedLiteral] = []
    for name in sorted(properties):
        with _field(name):
            literal = _default_literal(properties[name])
        if literal is not None:
            found.append(common_pb2.NamedLiteral(name=name, value=literal))
    return found


def literals_of_values(variables: interface_pb2.VariableMap, values: dict[str, Json]) -> list[common_pb2.NamedLiteral]:
    """In the order of the variables; other values are ignored. Errors name the field."""
    found: list[common_pb2.NamedLiteral] = []
    for entry in variables.variables:
        with _field(entry.key):
            literal = _given_literal(entry.key, entry.value.type, values)
        found.append(common_pb2.NamedLiteral(name=entry.key, value=literal))
    return found


def _field_schema(name: str, variable: interface_pb2.Variable, literal: literals_pb2.Literal | None) -> dict[str, Json]:
    schema = schema_of(variable.type)
    if variable.description and variable.description != name:
        schema["description"] = variable.description
    if literal is None:
        return schema
    default = json_of(literal)
    properties = schema.get("properties")
    if schema.get("format") == "blob" and isinstance(default, dict) and isinstance(properties, dict):
        for part, described in properties.items():
            if isinstance(described, dict) and part in default:
                described["default"] = default[part]
    else:
        schema["default"] = default
    return schema


def _is_required(schema: dict[str, Json]) -> bool:
    if "default" in schema and is_null(schema["default"]):
        return False
    variants = schema.get("oneOf")
    return not (
        isinstance(variants, list)
        and any(isinstance(variant, dict) and variant.get("type") == "null" for variant in variants)
    )


def _default_literal(schema: Json) -> literals_pb2.Literal | None:
    type_ = type_of(schema)
    default = _default_of(schema)
    if default is not _ABSENT:
        return literal_of(default, type_)
    return none_literal() if is_optional(type_) else None


_ABSENT: dict[str, Json] = {}
"""Stands for no default, compared by identity: null and an empty object are defaults."""


def _default_of(schema: Json) -> Json:
    """Its own default, or for a file or a dataclass what the defaults of its properties make. A file without a place
    is one that nobody has chosen yet."""
    if not isinstance(schema, dict):
        return _ABSENT
    if "default" in schema:
        return schema["default"]
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return _ABSENT
    if schema.get("format") == "structured-dataset":
        return _ABSENT
    parts = {name: _default_of(described) for name, described in properties.items()}
    present = {name: value for name, value in parts.items() if value is not _ABSENT}
    if schema.get("format") == "blob" and not present.get("uri"):
        return _ABSENT
    return present or _ABSENT


def _given_literal(name: str, type_: types_pb2.LiteralType, values: dict[str, Json]) -> literals_pb2.Literal:
    if name in values:
        return literal_of(values[name], type_)
    if is_optional(type_):
        return none_literal()
    raise InvalidArgument("a value is required")


@contextmanager
def _field(name: str) -> Generator[None]:
    """Errors name the field."""
    try:
        yield
    except FlyteError as error:
        raise type(error)(f"{name}: {error.message}") from error
