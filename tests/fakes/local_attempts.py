"""Attempts to run on a `LocalBackend` without a server around it, and ways to wait for them."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from flyte_binary.domain.errors import NotFound, ResourceExhausted, Unavailable
from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.backend import AttemptPhase, AttemptSpec, AttemptState
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.storage.store import ObjectInfo

DEADLINE_SECONDS = 60
LEAF = """\
import flyte

env = flyte.TaskEnvironment(name="leaf_env")


@env.task
async def run() -> None:  # async: in the main thread, where signal handlers can be set
    exec(compile(open("code.py").read(), "code.py", "exec"), {"__name__": "code"})
"""


class Files:
    """The part of an object store that bundles need, over plain paths."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    async def get(self, uri: str, *, limit_bytes: int) -> bytes:
        data = _read(uri)
        if data is None:
            raise NotFound(f"{uri} is not there")
        if len(data) > limit_bytes:
            raise ResourceExhausted(f"{uri} is larger than {limit_bytes} bytes")
        self.fetched.append(uri)
        return data

    async def stat(self, uri: str) -> ObjectInfo | None:
        if _read(uri) is None:
            return None
        found = _stat(uri)
        return ObjectInfo(size_bytes=found.st_size, modified_at=datetime.fromtimestamp(found.st_mtime, UTC))


def _stat(path: str) -> os.stat_result:
    return Path(path).stat()


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None


def tarball(path: Path, members: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 347155200
            tar.addfile(info, io.BytesIO(data))
    return path


class Attempts:
    """One backend on a folder, and specs for it. `kind`: `forked`, `cold` or `portable`."""

    def __init__(self, folder: Path, kind: str = "forked", **settings: object) -> None:
        self.folder = folder
        self.kind = kind
        self.store = Files()
        self.settings = replace(
            LocalSettings(
                folder=folder / "data",
                endpoint="127.0.0.1:9",
                fork_server=kind == "forked",
                platform="portable" if kind == "portable" else "auto",
            ),
            **settings,  # type: ignore[arg-type]
        )
        self.outputs = folder / "outputs"
        self.backend = LocalBackend(self.settings, self.store)
        self._numbers = itertools.count()
        (folder / "inputs.pb").write_bytes(b"")

    async def clear(self) -> None:
        """End and forget every attempt, so that no test leaves a process behind."""
        present = list(Folders(self.settings.attempts).all())
        for attempt in present:
            await self.backend.stop(attempt, grace_seconds=0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while present:
                try:
                    await self.backend.forget(present[-1])
                    present.pop()
                except Unavailable:
                    await asyncio.sleep(0.01)

    async def restart(self) -> None:
        """Another server on the same folder."""
        await self.backend.stop_serving()
        self.backend = LocalBackend(self.settings, self.store)
        await self.backend.start()

    def code(self, text: str, **changes: object) -> AttemptSpec:
        """An attempt that runs `text`: as the body of a task of the SDK if forked, else under a bare Python,
        which costs a tenth of a cold `a0`."""
        if self.kind == "forked":
            return self.leaf(text, **changes)
        return self.command(sys.executable, "-c", text, **changes)

    def leaf(self, text: str = "", *, module: str = LEAF, **changes: object) -> AttemptSpec:
        name = f"n{next(self._numbers)}"
        bundle = tarball(self.folder / f"fast{name}.tar.gz", {"leaf.py": module, "code.py": text})
        outputs = self.outputs / name / "1"
        argv = (
            "a0",
            *("--inputs", str(self.folder / "inputs.pb"), "--outputs-path", str(outputs), "--version", "v1"),
            *(
                "--raw-data-path",
                str(outputs / "raw"),
                "--checkpoint-path",
                str(outputs / "cp"),
                "--prev-checkpoint",
                "",
            ),
            *("--run-name", "r1", "--name", name, "--run-start-time", "2026-11-30T20:24:11Z"),
            *("--tgz", str(bundle), "--dest", "."),
            *("--resolver", "flyte._internal.resolvers.default.DefaultTaskResolver"),
            *("mod", "leaf", "instance", "run"),
        )
        return self._spec(name, argv, bundle_uri=str(bundle), **changes)

    def command(self, *argv: str, **changes: object) -> AttemptSpec:
        return self._spec(f"n{next(self._numbers)}", argv, **changes)

    def _spec(self, name: str, argv: tuple[str, ...], **changes: object) -> AttemptSpec:
        variables = {
            "ACTION_NAME": name,
            "RUN_NAME": "r1",
            "FLYTE_INTERNAL_EXECUTION_PROJECT": "flytesnacks",
            "FLYTE_INTERNAL_EXECUTION_DOMAIN": "development",
            "_U_ORG_NAME": "default",
            "_U_RUN_BASE": str(self.outputs),
            "_U_USE_ACTIONS": "1",
            "FLYTE_ATTEMPT_NUMBER": "0",
            "LOG_LEVEL": "30",
        }
        extra = changes.pop("env", {})
        assert isinstance(extra, Mapping)
        spec = AttemptSpec(
            id=ActionId("flytesnacks", "development", "r1", name).attempt(1),
            nonce="nonce-1",
            argv=argv,
            env={**variables, **extra},
            image="auto",
        )
        return replace(spec, **changes)  # type: ignore[arg-type]

    async def run(self, spec: AttemptSpec) -> AttemptState:
        await self.backend.launch(spec)
        return await self.ended(spec)

    async def ended(self, spec: AttemptSpec) -> AttemptState:
        return await self.until(spec, AttemptPhase.EXITED, AttemptPhase.ABSENT)

    async def until(self, spec: AttemptSpec, *phases: AttemptPhase) -> AttemptState:
        """By the changes that the backend tells of, as the reconciler does it."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for attempt in self.backend.changed():
                if attempt == spec.id:
                    state = await self.backend.observe(spec.id, spec.nonce)
                    if state.phase in phases:
                        return state
        raise AssertionError(f"the backend stopped before {spec.id} was {phases}")

    async def lines(self, attempt: AttemptId, *, limit_lines: int = 1000) -> list[str]:
        """The whole log, to its end."""
        position, found = 0, list[str]()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                page = await self.backend.read(attempt, position, limit_lines=limit_lines)
                found += [line.text for line in page.lines]
                position = page.position
                if page.ended:
                    return found
                await self.backend.wait(attempt, position, timeout_seconds=DEADLINE_SECONDS)

    async def printed(self, spec: AttemptSpec, text: str) -> None:
        """Wait until the log holds `text`."""
        position, seen = 0, ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while text not in seen:
                page = await self.backend.read(spec.id, position, limit_lines=1000)
                seen += "".join(line.text for line in page.lines)
                position = page.position
                assert not page.ended or text in seen, seen
                if text not in seen:
                    await self.backend.wait(spec.id, position, timeout_seconds=DEADLINE_SECONDS)
