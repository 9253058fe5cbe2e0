"""Cache keys of tasks, the same as the SDK makes for the children that it enqueues.

A root action and a child of the same task and inputs share their entry, so every step here repeats the SDK's own
(`flyte/_internal/runtime/convert.py` of 2.12); a test compares the two.
"""

from __future__ import annotations

import base64
import hashlib

from flyteidl2.core import interface_pb2, tasks_pb2


def cache_key(template: tasks_pb2.TaskTemplate, inputs_digest: str) -> str:
    """The key of a task run on inputs with that hash (`inputs_hash`); empty if its outputs are not to be cached.

    Projects do not enter it: who looks an entry up adds them.
    """
    if not template.metadata.discoverable:
        return ""
    version = template.metadata.discovery_version
    return _hashed(f"{inputs_digest}{template.id.name}{interface_hash(template.interface)}{version}".encode())


def interface_hash(interface: interface_pb2.TypedInterface) -> str:
    """The hash of a task's interface, whatever the order of its variables."""
    ordered = interface_pb2.TypedInterface()
    ordered.CopyFrom(interface)
    for variables in (ordered.inputs.variables, ordered.outputs.variables):
        in_order = sorted(variables, key=lambda entry: entry.key)
        if in_order:
            del variables[:]
            variables.extend(in_order)
    return _hashed(ordered.SerializeToString(deterministic=True))


def _hashed(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()
