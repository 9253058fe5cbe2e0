"""The Python that tasks run under: what it is, whether the SDK is there, whether its packages have changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_SECONDS = 30
_QUESTION = """
import json, sys, sysconfig
try:
    from importlib.metadata import version
    flyte = version("flyte")
except Exception:
    flyte = ""
folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
print(json.dumps({"python": ".".join(map(str, sys.version_info[:3])), "flyte": flyte, "folders": folders}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    path: Path
    python: str = ""
    """Version, empty if it does not run."""
    flyte: str = ""
    """Version of the SDK, empty if it is not installed."""
    folders: tuple[Path, ...] = ()
    """Where its packages are installed."""
    problem: str = ""
    """One sentence if tasks cannot run under it."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the image that it was built for sets, for every task of that image."""
    preparing: bool = False
    """The problem is about to be over."""
    work: Path | None = None
    """Files that the image brings into the working folder of its tasks."""

    def state(self) -> tuple[object, ...]:
        """Differs after a package was installed, upgraded or removed, which touches the folder (the
        `dist-info` entry is made or removed), or the interpreter was replaced. A few `stat` calls."""
        return tuple(_stamp(path) for path in (self.path, *self.folders))

    def describe(self) -> str:
        return self.problem or f"Tasks run under {self.path} (Python {self.python}, flyte {self.flyte})."

    def command(self, argv: tuple[str, ...]) -> list[str] | None:
        """The full command for a template's `argv`; None if the SDK's programs are asked for by other names."""
        program, module = self.path.parent / argv[0], _MODULES.get(argv[0])
        if module is None:
            return None
        if program.is_file():
            return [str(program), *argv[1:]]
        name = [argv[0]] if argv[0] == "a0" else []
        return [str(self.path), "-m", module, *name, *argv[1:]]


_MODULES = {"a0": "flyte._bin.runtime", "clustered": "flyte._bin.clustered", "fserve": "flyte._bin.serve"}
"""The SDK's programs, each with the module that it runs."""


async def inspect_interpreter(path: Path) -> Interpreter:
    """Ask it. Never raises for what is wrong with it: that is in `problem`."""
    try:
        process = await asyncio.create_subprocess_exec(
            str(path),
            "-I",
            "-c",
            _QUESTION,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return Interpreter(path=path, problem=f"Tasks cannot run: there is no interpreter {path} ({error.strerror}).")
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            answer, complaint = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return Interpreter(path=path, problem=f"Tasks cannot run: {path} did not answer in {_TIMEOUT_SECONDS} s.")
    try:
        facts = json.loads(answer)
    except ValueError:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        return Interpreter(path=path, problem=f"Tasks cannot run: {path} is no working Python: {last}")
    problem = ""
    if not facts["flyte"]:
        problem = (
            f"Tasks cannot run: the package flyte is not installed for {path} (Python {facts['python']});"
            f" install it there, or set executor.interpreter to the Python of your project."
        )
    return Interpreter(
        path=path,
        python=facts["python"],
        flyte=facts["flyte"],
        folders=tuple(Path(folder) for folder in facts["folders"]),
        problem=problem,
    )


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns)
