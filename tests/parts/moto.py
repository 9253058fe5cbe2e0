"""A second S3 server: moto's, in memory. It checks no signatures, and knows more of S3's calls."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.parts.building import python_environment
from tests.parts.running import Running, start

VERSION = "5.2.5"


def program() -> Path:
    return python_environment("moto", VERSION) / "moto_server"


@cache
def shared_server() -> Running:
    """One for all tests of this process; a test takes buckets of its own."""
    return start("moto", lambda port, _folder: [str(program()), "-H", "127.0.0.1", "-p", str(port)])
