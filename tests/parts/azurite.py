"""Microsoft's own emulator of Azure Blob Storage."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.parts.building import node_program
from tests.parts.running import Running, start

VERSION = "3.37.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Not a secret: every Azurite has it, and its documentation shows it."""


def program() -> Path:
    return node_program("azurite", VERSION, "azurite/dist/src/blob/main.js")


@cache
def shared_server() -> Running:
    """One for all tests of this process; a test takes containers of its own."""
    return start_server()


def start_server(*options: str, scheme: str = "http") -> Running:
    def command(port: int, _folder: Path) -> list[str]:
        return [
            *("node", str(program()), "--blobHost", "127.0.0.1", "--blobPort", str(port)),
            *("--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"),
            *options,
        ]

    return start("azurite", command, scheme=scheme)
