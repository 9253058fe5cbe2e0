"""What attempts get of the environment that was built for their image."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.local.environment import attempt_environment, base_environment, reason_to_run_cold
from flyte_binary.executor.local.environments.environments import Environments, EnvironmentSettings
from flyte_binary.executor.local.folders import Folders, copy_missing
from flyte_binary.executor.local.fork_servers import ForkServers
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.interpreters import Interpreters
from flyte_binary.executor.local.settings import LocalSettings
from tests.fakes.local_attempts import Files
from tests.unit.local.image_builds import Builds, copy, image, packages, variables
from tests.waiting import until

PYTHON = Path("/built/venv/bin/python")


def settings(**changes: object) -> LocalSettings:
    return LocalSettings(folder=Path("/data"), endpoint="127.0.0.1:30080", **changes)  # type: ignore[arg-type]


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    builds = Builds(tmp_path)
    yield builds
    builds.close()


def test_variables_of_the_image_are_below_those_of_the_settings_and_the_task() -> None:
    made = attempt_environment(
        settings(environment={"B": "settings", "C": "settings"}),
        PYTHON,
        Path("/data/attempt"),
        {"C": "task"},
        image={"A": "image", "B": "image", "C": "image", "_U_INSECURE": "maybe"},
    )
    assert (made["A"], made["B"], made["C"], made["_U_INSECURE"]) == ("image", "settings", "task", "true")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/opt/bin:$PATH", "/opt/bin:/built/venv/bin:/usr/local/bin:/usr/bin:/bin"),
        ("/opt/bin", "/built/venv/bin:/opt/bin"),
    ],
)
def test_the_programs_of_the_environment_stay_on_the_path(path: str, expected: str) -> None:
    assert base_environment(settings(), PYTHON, Path("/home"), {"PATH": path})["PATH"] == expected


def test_variables_of_the_image_that_python_reads_at_its_start_do_not_keep_attempts_from_the_fork_server() -> None:
    own = {"PYTHONHASHSEED": "7", "LC_ALL": "C"}
    forked_from = base_environment(settings(), PYTHON, Path("/home"), own)
    made = attempt_environment(settings(), PYTHON, Path("/data/attempt"), {}, image=own)
    assert reason_to_run_cold(made, forked_from, {}) == ""


async def test_tasks_of_a_built_image_run_in_its_environment_and_others_in_the_default_one(builds: Builds) -> None:
    builds.build(image(packages("a"), variables(COLOUR="green"), copy("x.txt", ".")), {"x.txt": "x"})
    environments = Environments(EnvironmentSettings(folder=builds.folder / "library"), Files())  # type: ignore[arg-type]
    chosen = Path("/chosen/bin/python")
    interpreters = Interpreters(
        settings(interpreter=Path("/default/bin/python"), interpreters={"mine:v1": chosen}), environments
    )

    built = await interpreters.of("local/flyte:1")
    assert built.path.is_relative_to(builds.folder / "library")
    assert built.variables == {"COLOUR": "green"}
    assert built.work is not None and (built.work / "x.txt").read_text() == "x"
    assert (await interpreters.of("mine:v1")).path == chosen
    for other in ("", "ghcr.io/flyteorg/flyte:py3.11-v2.12.1", "local/other:1"):
        assert (await interpreters.of(other)).path == Path("/default/bin/python")


def removed(builds: Builds) -> None:
    for digest, folder in builds.library.folders():
        builds.library.remove(digest, folder)


async def settled(interpreters: Interpreters) -> Interpreter:
    """What it comes to after the environment was being built again."""
    found = await interpreters.of("local/flyte:1")
    async with asyncio.timeout(30):
        while found.preparing:
            await asyncio.sleep(0.01)
            found = await interpreters.of("local/flyte:1")
    return found


async def test_a_removed_environment_is_built_again_for_the_task_that_needs_it(builds: Builds) -> None:
    builds.build(image(packages("a"), copy("x.txt", ".")), {"x.txt": "x"})
    removed(builds)
    environments = Environments(
        EnvironmentSettings(folder=builds.folder / "library", uv=builds.uv.path),
        Files(),  # type: ignore[arg-type]
    )
    interpreters = Interpreters(settings(), environments)

    first = await interpreters.of("local/flyte:1")
    assert first.preparing and "being built again" in first.problem
    found = await settled(interpreters)
    assert found.work is not None and (found.work / "x.txt").read_text() == "x"
    assert len(builds.uv.calls("venv")) == 2
    named = builds.library.find("flyte:1")
    assert named is not None and named.build_run.run == "r1", "the run that built it first"
    await environments.close()
    assert list((builds.folder / "library/scratch").iterdir()) == []


async def test_a_removed_environment_that_cannot_be_built_again_fails_the_attempt_with_uvs_words(
    builds: Builds,
) -> None:
    builds.build(image(packages("a")))
    removed(builds)
    named = builds.library.find("flyte:1")
    assert named is not None
    builds.library.keep_recipe(named.digest, image(packages("unfindable")).SerializeToString(), None)
    environments = Environments(
        EnvironmentSettings(folder=builds.folder / "library", uv=builds.uv.path),
        Files(),  # type: ignore[arg-type]
    )

    found = await settled(Interpreters(settings(), environments))
    assert "cannot be built again" in found.problem
    assert "there is no unfindable" in found.problem
    assert (await Interpreters(settings(), environments).of("local/flyte:1")).problem == found.problem


async def test_without_uv_a_removed_environment_is_a_problem_that_the_attempt_reports(builds: Builds) -> None:
    builds.build(image(packages("a")))
    removed(builds)
    environments = Environments(EnvironmentSettings(folder=builds.folder / "library"), Files())  # type: ignore[arg-type]

    interpreter = await Interpreters(settings(), environments).of("local/flyte:1")
    assert "was removed" in interpreter.problem and not interpreter.preparing


async def test_a_stopping_server_does_not_wait_for_a_build(builds: Builds) -> None:
    builds.build(image(packages("a")))
    removed(builds)
    builds.uv.hold()
    environments = Environments(
        EnvironmentSettings(folder=builds.folder / "library", uv=builds.uv.path),
        Files(),  # type: ignore[arg-type]
    )
    assert (await Interpreters(settings(), environments).of("local/flyte:1")).preparing
    await until(lambda: len(builds.uv.calls("venv")) == 2, seconds=30)

    await environments.close()
    assert builds.library.find("flyte:1") is not None
    assert list((builds.folder / "library/scratch").iterdir()) == []


def test_files_of_the_image_do_not_replace_those_of_the_code(tmp_path: Path) -> None:
    brought, work = tmp_path / "brought", tmp_path / "work"
    for folder, names in ((brought, ["a.py", "pkg/b.py", "pkg/c.py", "d/e.py"]), (work, ["a.py", "pkg/b.py", "d"])):
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(folder.name)
    (brought / "link").symlink_to("a.py")

    copy_missing(brought, work)

    found = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert found == {"a.py": "work", "pkg/b.py": "work", "pkg/c.py": "brought", "d": "work", "link": "work"}


def test_environments_of_living_attempts_are_in_use(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    for number in (1, 2):
        attempt = AttemptId(ActionId("p", "d", "r1", "a0"), number)
        lock = folders.claim(attempt, "n")
        assert lock is not None
        (folders.path(attempt) / "environment.json").write_text(json.dumps({"folder": f"/built/{number}"}))
        if number == 1:
            (folders.path(attempt) / "exit.json").write_text("{}")

    assert folders.environments_in_use() == {Path("/built/2")}


class Link:
    """A supervisor that does what it is told and says nothing."""

    alive = True

    def __init__(self) -> None:
        self.started: list[str] = []
        self.dismissed: list[str] = []

    def start_fork_server(self, name: str, argv: list[str], environment: dict[str, str], log: Path) -> None:
        self.started.append(name)

    def dismiss_fork_server(self, name: str) -> None:
        self.dismissed.append(name)


def test_a_fork_server_that_nobody_uses_is_ended_and_started_again_when_needed() -> None:
    link = Link()
    servers = ForkServers(settings(), lambda: link)  # type: ignore[arg-type,return-value]  # the part of it that is used
    default, built = Interpreter(path=Path("/default")), Interpreter(path=Path("/built"))
    for interpreter in (default, built):
        servers.warm_up(interpreter)

    servers.retire(keep=default.path, idle_seconds=60)
    assert link.dismissed == []
    servers.retire(keep=default.path, idle_seconds=0)
    assert link.dismissed == [link.started[1]]
    servers.warm_up(built)
    assert len(link.started) == 3
