"""A migrated database for each test, at the price of copying a file."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from flyte_binary.db.migrate import upgrade
from flyte_binary.db.sqlite import make_engine


def migrated(path: Path) -> Path:
    """Make the SQLite file at `path`, empty but for the schema."""
    path.write_bytes(_template())
    return path


@functools.cache
def _template() -> bytes:
    """The migrations run once a test process; they take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        engine = make_engine(path)
        upgrade(engine)
        engine.dispose()
        return path.read_bytes()
