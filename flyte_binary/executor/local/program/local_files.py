"""Files and folders that a task hands over by `from_local` end up in the raw data of the run, as they do on a cluster.

Where the raw data prefix is a plain path, the SDK saves itself the copy and refers to the file where it is: in the
attempt's own folder, or a temporary one, both gone by the time somebody reads it. So the copy is made here, and the
SDK refers to that.

`flyte.io` is loaded by tasks that need it; it is changed when that happens.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.machinery
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

_CLASSES = {"flyte.io._file": "File", "flyte.io._dir": "Dir"}
_METHODS = ("from_local", "from_local_sync")


def install() -> None:
    """Once in a process, before the task's own code is loaded."""
    sys.meta_path.insert(0, _Finder())
    for name in _CLASSES.keys() & sys.modules.keys():
        _change(sys.modules[name])


class _Finder:
    """Finds what Python's own finder does, and has it changed right after it was loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _CLASSES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _change(module)

            spec.loader.exec_module = exec_module
        return spec


def _change(module: ModuleType) -> None:
    """An SDK that is built differently stays as it is."""
    kind = getattr(module, _CLASSES[module.__name__], None)
    for name in _METHODS:
        method: Any = inspect.getattr_static(kind, name, None)  # Any: a class method, if it is there
        function: Any = getattr(method, "__func__", None)
        if function is not None and type(method) is classmethod:
            setattr(kind, name, classmethod(_with_copy(function)))


def _with_copy(original: Callable[..., Any]) -> Callable[..., Any]:  # Any: the SDK's own
    if inspect.iscoroutinefunction(inspect.unwrap(original)):

        @functools.wraps(original)
        async def from_local(cls: Any, local_path: Any, *rest: Any, **options: Any) -> Any:  # Any: as above
            if not _has_destination(rest, options):
                local_path = await asyncio.to_thread(_copied, local_path, _destination(local_path))
            return await original(cls, local_path, *rest, **options)

        return from_local

    @functools.wraps(original)
    def from_local_sync(cls: Any, local_path: Any, *rest: Any, **options: Any) -> Any:  # Any: as above
        if not _has_destination(rest, options):
            local_path = _copied(local_path, _destination(local_path))
        return original(cls, local_path, *rest, **options)

    return from_local_sync


def _has_destination(rest: Sequence[object], options: Mapping[str, object]) -> bool:
    return (rest[0] if rest else options.get("remote_destination")) is not None


def _destination(local_path: Any) -> str | None:  # Any: text or a path
    """Where a cluster would upload it to; None if the SDK uploads it itself, or there is no task around."""
    context = importlib.import_module("flyte._context").internal_ctx()
    if not context.has_raw_data:
        return None
    path = str(context.raw_data.get_random_remote_path(os.path.basename(os.path.normpath(str(local_path)))))
    return path if path.startswith("/") else None


def _copied(local_path: Any, destination: str | None) -> Any:  # Any: text or a path
    if destination is None:
        return local_path
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    if os.path.isdir(local_path):
        shutil.copytree(local_path, destination)
    else:
        shutil.copyfile(local_path, destination)
    return destination
