"""Builds what the conformance suite needs, once, under .cache: the runner and the contract of its test service.

Both come from one Go module, pinned here; nothing of it is kept in the project.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MODULE = "connectrpc.com/conformance"
VERSION = "v1.0.7"
CACHE = Path(__file__).parents[2] / ".cache" / "tools" / f"connect-conformance-{VERSION}"


@dataclass(frozen=True, slots=True)
class Tools:
    runner: Path
    """The suite's own program, with a reference client inside."""

    contract: Path
    """The test service as a serialized FileDescriptorSet."""


def missing() -> str | None:
    """What has to be installed first; None if nothing."""
    return None if shutil.which("go") or _built().runner.exists() else "Go (https://go.dev)"


def build() -> Tools:
    """About a minute the first time. Raises CalledProcessError with the tool's own words."""
    tools = _built()
    CACHE.mkdir(parents=True, exist_ok=True)
    if not tools.runner.exists():
        _run("go", "install", f"{MODULE}/cmd/connectconformance@{VERSION}", env={"GOBIN": str(CACHE)})
    if not tools.contract.exists():
        downloaded = json.loads(_run("go", "mod", "download", "-json", f"{MODULE}@{VERSION}"))
        partial = tools.contract.with_suffix(".partial.binpb")
        _run(
            str(Path(sys.executable).with_name("buf")),
            "build",
            str(Path(downloaded["Dir"], "proto")),
            "-o",
            str(partial),
        )
        partial.rename(tools.contract)
    return tools


def _built() -> Tools:
    return Tools(runner=CACHE / "connectconformance", contract=CACHE / "contract.binpb")


def _run(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=os.environ | (env or {}), cwd=CACHE, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
