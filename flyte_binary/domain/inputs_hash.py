"""The hash of a task's inputs, in the form that the SDK uses for child actions.

The SDK derives a child's cache key from this hash, and the server a root action's, so roots and
children share cache entries only if both compute it alike: base64(sha256(…)) over `name:literal;` of
each input in order, where a literal that carries a hash of its own counts as that hash, and untyped
dictionaries count with sorted keys. The context of the inputs is not part of it (SDK 2.12.1).

msgpack is the one codec from outside that the domain knows, because it is part of what a literal is.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection
from typing import Any, cast

import msgpack
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2

_pack = cast("Callable[[object], bytes]", msgpack.packb)  # pyright: ignore[reportUnknownMemberType] -- has no types
_unpack = cast("Callable[..., object]", msgpack.unpackb)  # pyright: ignore[reportUnknownMemberType] -- has no types

_MSGPACK = "msgpack"


def inputs_hash(inputs: common_pb2.Inputs, *, ignored: Collection[str] = ()) -> str:
    """Empty if there is nothing to hash. `ignored` is the task's `cache_ignore_input_vars`.

    Costs about a second for 10 MiB of nested untyped dictionaries: large inputs belong in a thread.
    """
    counted = [named for named in inputs.literals if named.name not in ignored]
    if not counted:
        return ""
    digest = hashlib.sha256()
    for named in counted:
        digest.update(named.name.encode() + b":")
        for part in _parts(named.value):
            digest.update(part)
        digest.update(b";")
    return base64.b64encode(digest.digest()).decode()


def _parts(literal: literals_pb2.Literal) -> list[bytes]:
    if literal.hash:
        return [literal.hash.encode()]
    match literal.WhichOneof("value"):
        case "collection":
            return [part for item in literal.collection.literals for part in _parts(item)]
        case "map":
            entries = literal.map.literals
            return [part for key in sorted(entries) for part in (key.encode(), *_parts(entries[key]))]
        case "scalar" if literal.scalar.binary.tag == _MSGPACK:
            return [_with_sorted_keys(literal).SerializeToString(deterministic=True)]
        case _:
            return [literal.SerializeToString(deterministic=True)]


def _with_sorted_keys(literal: literals_pb2.Literal) -> literals_pb2.Literal:
    value = literal.scalar.binary.value
    try:
        canonical = _pack(_sorted(_unpack(value, strict_map_key=False)))
    except Exception:  # noqa: BLE001 - any bytes may carry the tag; what does not decode counts as it is, as in the SDK
        return literal
    if canonical == value:
        return literal
    changed = literals_pb2.Literal()
    changed.CopyFrom(literal)
    changed.scalar.binary.value = canonical
    return changed


def _sorted(value: Any) -> Any:  # any: whatever msgpack decodes to
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)  # any: the same
        return {key: _sorted(entries[key]) for key in sorted(entries, key=_pack)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in cast("list[Any]", value)]  # any: the same
    return value
