"""A real S3 server: Versity's gateway over a folder. It checks signatures, dates and digests as Amazon does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.parts.building import go_program
from tests.parts.running import Running, start

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS_KEY, SECRET_KEY, REGION = "flyteaccess", "flyte/secret+key", "eu-north-1"


def program() -> Path:
    return go_program(MODULE, VERSION)


@cache
def shared_server() -> Running:
    """One for all tests of this process; a test takes buckets of its own."""
    return start_server()


def start_server() -> Running:
    def command(port: int, folder: Path) -> list[str]:
        data = folder / "buckets"
        data.mkdir()
        return [
            str(program()),
            *("--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", REGION),
            *("--port", f"127.0.0.1:{port}", "--quiet", "--health", "/health"),
            *("posix", str(data)),
        ]

    return start("versitygw", command, ready_path="/health")
