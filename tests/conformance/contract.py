"""The suite's messages, made from its contract when the tests run."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "connectrpc.conformance.v1"


def load(contract: Path) -> None:
    """Make the suite's types known to the process, as importing a generated module would."""
    pool = descriptor_pool.Default()
    for file in descriptor_pb2.FileDescriptorSet.FromString(contract.read_bytes()).file:
        if file.name.startswith("google/"):
            importlib.import_module(file.name.removesuffix(".proto").replace("/", ".") + "_pb2")
        else:
            pool.Add(file)


def message_type(name: str) -> Any:  # any: the type is known only now
    return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(f"{PACKAGE}.{name}"))
