"""Which interpreter the tasks of an image run under."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from flyte_binary.executor.local.environments.environments import Environments, Missing
from flyte_binary.executor.local.environments.library import Built
from flyte_binary.executor.local.interpreter import Interpreter, inspect_interpreter
from flyte_binary.executor.local.settings import LocalSettings


class Interpreters:
    def __init__(self, settings: LocalSettings, environments: Environments | None) -> None:
        """Without `environments` there are no images but those of the settings."""
        self._settings = settings
        self._environments = environments
        self._known: dict[Path, Interpreter] = {}

    async def of(self, image: str) -> Interpreter:
        """The settings' choice, what was built for the image, or the default: a name that nobody has built anything
        for. One with a problem is asked again each time: it may have been mended."""
        path = self._settings.interpreter_of(image)
        built = None
        if self._environments is not None and image not in self._settings.interpreters:
            try:
                built = self._environments.of_task(image)
            except Missing as missing:
                default = await self._inspected(self._settings.interpreter, None)
                problem = self._environments.restore(missing, default)
                if problem is None:
                    return Interpreter(path=path, problem=f"{missing}, and is being built again", preparing=True)
                return Interpreter(path=path, problem=problem)
        return await self._inspected(path, None) if built is None else await self._inspected(built.python, built)

    async def _inspected(self, path: Path, built: Built | None) -> Interpreter:
        known = self._known.get(path)
        if known is not None and not known.problem:
            return known
        found = await inspect_interpreter(path)
        if built is not None:
            found = replace(found, variables=built.variables, work=built.work)
        self._known[path] = found
        return found
