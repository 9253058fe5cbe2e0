"""Builds of images for tests: descriptions, files, and the program on them with a fake `uv`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from flyteidl2.imagebuilder import definition_pb2 as pb

from flyte_binary.executor.local.environments.build import build
from flyte_binary.executor.local.environments.library import BuildRun, Library
from flyte_binary.executor.local.environments.order import Order
from flyte_binary.executor.local.environments.recipe import Default
from tests.fakes.local_attempts import tarball
from tests.fakes.uv import FakeUv

DEFAULT = Default(python="3.11.7", sdk="2.12.1")
FLYTE_IMAGE = "ghcr.io/flyteorg/flyte:py3.11-v2.12.1"


def image(*layers: pb.Layer, base: str = FLYTE_IMAGE, python: str = "3.11") -> pb.ImageSpec:
    return pb.ImageSpec(base_image=base, python_version=python, layers=layers)


def packages(*names: str, **options: object) -> pb.Layer:
    pip = pb.PipOptions(**options)  # type: ignore[arg-type]
    return pb.Layer(pip_packages=pb.PipPackages(packages=names, options=pip))


def variables(**values: str) -> pb.Layer:
    return pb.Layer(env=pb.Env(env_variables=values))


def commands(*texts: str) -> pb.Layer:
    return pb.Layer(commands=pb.Commands(cmd=texts))


def copy(source: str, target: str) -> pb.Layer:
    return pb.Layer(copy_config=pb.CopyConfig(src=source, dst=target))


class Builds:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uv = FakeUv(folder / "uv")
        self.library = Library(folder / "library")
        self._count = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def prepare(
        self, spec: pb.ImageSpec, files: Mapping[str, str] | None = None, *, name: str = "flyte:1", force: bool = False
    ) -> Path:
        """The folder in which the program is to run."""
        self._count += 1
        work = self.folder / f"work{self._count}"
        work.mkdir()
        context = tarball(self.folder / "context.tar.gz", files).read_bytes() if files else None
        Order(
            image=name,
            library=self.folder / "library",
            uv=self.uv.path,
            python=Path(sys.executable),
            default=DEFAULT,
            context_limit_bytes=1_000_000,
            force=force,
            run=BuildRun(project="p", domain="d", run=f"r{self._count}"),
        ).place(work, spec.SerializeToString(), context)
        return work

    def build(self, spec: pb.ImageSpec, files: Mapping[str, str] | None = None, **options: object) -> int:
        """The exit code."""
        return build(self.prepare(spec, files, **options))  # type: ignore[arg-type]

    def start(self, work: Path) -> subprocess.Popen[bytes]:
        """The program as a process, its output in the file `log`."""
        with (work / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-u", "-m", "flyte_binary.executor.local.environments"],
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End what a test that failed has left behind."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
