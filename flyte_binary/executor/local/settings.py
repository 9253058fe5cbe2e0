"""What the local execution backend is told at its start; the configuration layer fills it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    folder: Path
    """Everything of this backend lies below it: attempts, unpacked bundles, the hint pipe. Absolute, and
    the same after a restart, or running attempts are not found again."""

    endpoint: str
    """`host:port` under which a task reaches this server."""

    insecure: bool = True
    """Tasks talk plain HTTP to `endpoint`."""

    interpreter: Path = field(default_factory=lambda: Path(sys.executable))
    """Python of the environment that tasks run in, the path in its `bin`, not what that links to."""

    interpreters: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Other environments, by image name."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for every attempt; a task's own and the reserved ones win."""

    home: Path | None = None
    """HOME of attempts. Default: an empty folder for each, removed with it."""

    fork_server: bool = True
    """Fork attempts from a process that has the SDK imported, where the platform can."""

    platform: Literal["auto", "portable"] = "auto"
    """`portable` does without what only Linux has, as on macOS."""

    bundle_archive_limit_bytes: int = 256 * _MIB
    """Largest code bundle that is fetched."""

    bundle_limit_bytes: int = 2048 * _MIB
    """Largest size of a code bundle unpacked."""

    bundle_cache_bytes: int = 4096 * _MIB
    """Unpacked bundles are kept up to this size together, the least recently used go first."""

    scan_interval: timedelta = timedelta(seconds=5)
    """How often living attempts are looked at without a hint."""

    server: str = ""
    """Tells servers apart that share `folder`; empty where one has it for itself."""

    @property
    def attempts(self) -> Path:
        return self.folder / "attempts"

    @property
    def bundles(self) -> Path:
        return self.folder / "bundles" / self.server if self.server else self.folder / "bundles"

    @property
    def hints(self) -> Path:
        return self.folder / (f"hints-{self.server}" if self.server else "hints")

    def interpreter_of(self, image: str) -> Path:
        return self.interpreters.get(image, self.interpreter)
