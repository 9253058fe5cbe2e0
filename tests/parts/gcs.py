"""A Google Cloud Storage server in memory: fake-gcs-server. It checks no signatures."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.parts.building import go_program
from tests.parts.running import Running, start

MODULE, VERSION = "github.com/fsouza/fake-gcs-server", "v1.56.1"


def program() -> Path:
    return go_program(MODULE, VERSION)


@cache
def shared_server() -> Running:
    """One for all tests of this process; a test takes buckets of its own."""

    def command(port: int, _folder: Path) -> list[str]:
        return [
            str(program()),
            *("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
            *("-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"),
            *("-log-level", "warn"),
        ]

    return start("gcs", command, ready_path="/storage/v1/b?project=p")
