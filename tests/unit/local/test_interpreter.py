from __future__ import annotations

import sys
import venv
from pathlib import Path

from flyte_binary.executor.local.interpreter import Interpreter, inspect_interpreter
from tests.fakes.local_attempts import Attempts


async def test_a_python_with_the_sdk_tells_its_versions() -> None:
    found = await inspect_interpreter(Path(sys.executable))

    assert found.problem == ""
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert found.flyte.startswith("2.")
    assert found.describe() == f"Tasks run under {sys.executable} (Python {found.python}, flyte {found.flyte})."


async def test_a_python_without_the_sdk_is_a_problem_with_its_remedy(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    found = await inspect_interpreter(tmp_path / "venv/bin/python")

    assert "flyte is not installed" in found.problem
    assert "executor.interpreter" in found.problem


async def test_what_is_no_python_is_a_problem(tmp_path: Path) -> None:
    assert "there is no interpreter" in (await inspect_interpreter(tmp_path / "none")).problem
    assert "no working Python" in (await inspect_interpreter(Path("/bin/false"))).problem


async def test_attempts_under_a_python_without_the_sdk_say_so_until_it_is_mended(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    attempts = Attempts(tmp_path, "cold", interpreter=tmp_path / "venv/bin/python")
    assert (await attempts.backend.start()).problem
    try:
        spec = attempts.leaf("")
        state = await attempts.run(spec)
        assert state.invalid
        assert "flyte is not installed" in state.reason

        (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
        (packages / "sdk.pth").write_text(str(Path(next(p for p in sys.path if p.endswith("site-packages")))))
        assert (await attempts.run(attempts.leaf(""))).exit_code == 0
    finally:
        await attempts.clear()
        await attempts.backend.stop_serving()


async def test_a_change_of_packages_shows_in_the_state(tmp_path: Path) -> None:
    interpreter = Interpreter(path=tmp_path / "python", folders=(tmp_path / "site",))
    (tmp_path / "site").mkdir()
    before = interpreter.state()
    (tmp_path / "site/new-1.0.dist-info").mkdir()
    after = interpreter.state()
    (tmp_path / "python").touch()

    assert before != after != interpreter.state()
    assert interpreter.state() == interpreter.state()


def test_the_sdks_programs_are_found_beside_the_interpreter_or_run_as_modules(tmp_path: Path) -> None:
    interpreter = Interpreter(path=tmp_path / "python")

    assert interpreter.command(("a0", "--x")) == [str(tmp_path / "python"), "-m", "flyte._bin.runtime", "a0", "--x"]
    (tmp_path / "a0").touch()
    assert interpreter.command(("a0", "--x")) == [str(tmp_path / "a0"), "--x"]
    assert interpreter.command(("sh", "-c")) is None
