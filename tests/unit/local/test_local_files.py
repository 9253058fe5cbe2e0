"""What a task hands over by `from_local` is copied to the raw data of its run, whatever becomes of the original."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.local_attempts import Attempts

HANDS_OVER = """
import asyncio, os, tempfile
from flyte.io import Dir, File

with tempfile.TemporaryDirectory() as folder:
    os.mkdir(f"{folder}/tree")
    for name in ("a", "b", "tree/c"):
        open(f"{folder}/{name}", "w").write(name)
    made = [File.from_local_sync(f"{folder}/a"), Dir.from_local_sync(f"{folder}/tree")]
    there = File.from_local_sync(f"{folder}/a", "PLACE")

    def in_thread():
        return asyncio.run(both())

    async def both():
        return [await File.from_local(f"{folder}/b"), await Dir.from_local(f"{folder}/tree/")]

    import contextvars, threading
    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: made.extend(context.run(in_thread)))
    thread.start(); thread.join()
for each in (*made, there):
    print("MADE", each.path)
"""


@pytest.mark.parametrize("kind", [pytest.param("forked", marks=pytest.mark.linux), "cold"])
async def test_files_and_folders_handed_over_are_copied_to_the_raw_data(tmp_path: Path, kind: str) -> None:
    attempts = Attempts(tmp_path, kind)
    await attempts.backend.start()
    try:
        spec = attempts.leaf(HANDS_OVER.replace("PLACE", str(tmp_path / "place")))
        state = await attempts.run(spec)
        lines = await attempts.lines(spec.id)
        assert state.exit_code == 0, lines
    finally:
        await attempts.clear()
        await attempts.backend.stop_serving()

    *made, there = [Path(line.split()[1]) for line in lines if line.startswith("MADE ")]
    raw = attempts.outputs / spec.id.action.name / "1" / "raw"
    assert all(path.is_relative_to(raw) for path in made), made
    assert [path.name for path in made] == ["a", "tree", "b", "tree"]
    assert [(made[0]).read_text(), (made[1] / "c").read_text(), (made[2]).read_text(), (made[3] / "c").read_text()] == [
        *("a", "tree/c", "b", "tree/c")
    ]
    assert there == tmp_path / "place", "a destination that the task chose stays"
