"""What the server tells the program that builds: one file in the attempt's working folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from flyte_binary.executor.local.environments.library import BuildRun
from flyte_binary.executor.local.environments.recipe import Default
from flyte_binary.executor.local.program.files import read_json, write_json

ORDER = "build.json"
SPEC = "spec.pb"
CONTEXT = "context.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    image: str
    """The name that the environment gets, `name:tag`."""
    library: Path
    uv: Path
    python: Path
    """The default interpreter."""
    default: Default
    context_limit_bytes: int
    force: bool
    """Build even if equal layers are built already."""
    run: BuildRun

    def place(self, folder: Path, description: bytes, context: bytes | None) -> None:
        """All that the program needs: the order, the `ImageSpec`, the archive of its files. Blocking."""
        (folder / SPEC).write_bytes(description)
        if context is not None:
            (folder / CONTEXT).write_bytes(context)
        paths = {"library": str(self.library), "uv": str(self.uv), "python": str(self.python)}
        write_json(str(folder / ORDER), {**asdict(self), **paths})

    @classmethod
    def read(cls, folder: Path) -> Order:
        record = read_json(str(folder / ORDER))
        if record is None:
            raise FileNotFoundError(folder / ORDER)
        record |= {name: Path(record[name]) for name in ("library", "uv", "python")}
        record |= {"default": Default(**record["default"]), "run": BuildRun(**record["run"])}
        return cls(**record)
