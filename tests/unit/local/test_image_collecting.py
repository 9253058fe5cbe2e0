from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.executor.local.environments.collect import Kept, kept_in, to_remove
from flyte_binary.executor.local.environments.environments import Environments, EnvironmentSettings, Missing
from flyte_binary.executor.local.environments.library import Library
from tests.fakes.local_attempts import Files
from tests.unit.local.image_builds import Builds, image, packages

NOW = 1_000_000_000.0
HOUR = 3600.0


def kept(name: str, *, hours: float = 1, size: int = 1, complete: bool = True) -> Kept:
    return Kept(digest=name, folder=Path(f"/{name}"), complete=complete, used_at=NOW - hours * HOUR, size_bytes=size)


def removed(*environments: Kept, in_use: str = "", max_size: int = 100) -> list[str]:
    chosen = to_remove(
        environments,
        in_use=frozenset({Path(f"/{in_use}")}),
        now=NOW,
        unused_for=timedelta(days=1),
        max_size_bytes=max_size,
    )
    return [one.digest for one in chosen]


def test_what_was_used_lately_stays() -> None:
    assert removed(kept("a", hours=23), kept("b", hours=1)) == []


def test_what_was_not_used_for_long_goes() -> None:
    assert removed(kept("a", hours=25), kept("b", hours=1)) == ["a"]


def test_of_too_many_the_longest_unused_go() -> None:
    assert removed(kept("new", size=40), kept("old", hours=9, size=40), kept("older", hours=10, size=40)) == ["older"]


def test_what_an_attempt_runs_in_stays_whatever_its_age() -> None:
    assert removed(kept("a", hours=99, size=500), kept("b", hours=98), in_use="a") == ["b"]


def test_what_was_chosen_a_moment_ago_stays_whatever_its_size() -> None:
    assert removed(kept("a", hours=0.1, size=500)) == []


def test_what_a_killed_build_left_goes() -> None:
    assert removed(kept("a", hours=1, complete=False), kept("b", hours=0.1, complete=False)) == ["a"]


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    builds = Builds(tmp_path)
    yield builds
    builds.close()


def environments(builds: Builds) -> Environments:
    settings = EnvironmentSettings(folder=builds.folder / "library", uv=builds.uv.path, unused_for=timedelta(hours=2))
    return Environments(settings, Files())  # type: ignore[arg-type]  # a fake that nothing is written to


def age(folder: Path, hours: float) -> None:
    os.utime(folder, (time.time() - hours * HOUR,) * 2)


async def test_a_removed_environment_is_gone_for_new_runs_and_named_to_old_ones(builds: Builds) -> None:
    builds.build(image(packages("a")))
    served = environments(builds)
    found = served.of_task("local/flyte:1")
    assert found is not None
    age(found.folder, 3)

    await served.collect(frozenset())

    assert not found.folder.exists()
    assert await served.find_image("flyte:1") is None
    with pytest.raises(Missing, match="local/flyte:1 was removed"):
        served.of_task("local/flyte:1")


async def test_use_keeps_an_environment(builds: Builds) -> None:
    builds.build(image(packages("a")))
    served = environments(builds)
    (folder,) = (folder for _, folder in builds.library.folders())

    for use in (lambda: served.of_task("local/flyte:1"), None):
        age(folder, 3)
        if use is None:
            assert await served.find_image("flyte:1") is not None
        else:
            assert use() is not None
        await served.collect(frozenset())
        assert folder.exists()


async def test_an_environment_whose_python_is_gone_is_built_again(builds: Builds) -> None:
    builds.build(image(packages("a")))
    named = builds.library.find("flyte:1")
    assert named is not None and named.built is not None
    named.built.python.unlink()

    assert await environments(builds).find_image("flyte:1") is None
    builds.build(image(packages("a")))
    assert len(builds.uv.calls("venv")) == 2


def test_what_is_being_built_is_not_removed(builds: Builds) -> None:
    library = builds.library
    folder = library.new_folder("d1")
    with library.locked("d1", lambda: None):
        assert not Library(builds.folder / "library").remove("d1", folder)
    assert [one.folder for one in kept_in(library)] == [folder]
    assert library.remove("d1", folder)
    assert kept_in(library) == []


async def test_an_image_that_nobody_built_here_is_nobodys(builds: Builds) -> None:
    served = environments(builds)
    builds.build(image(packages("a")))

    assert served.of_task("registry.example.com/app:v1") is None
    assert served.of_task("local/app:v1") is None
    assert served.of_task("flyte:1") is None, "an image of that name elsewhere is another image"
    assert served.of_task("") is None


async def test_without_uv_every_image_is_taken_to_be_there(builds: Builds) -> None:
    served = Environments(EnvironmentSettings(folder=builds.folder / "library"), Files())  # type: ignore[arg-type]

    found = await served.find_image("flyte:1")
    assert found is not None
    assert found[0] == "local/flyte:1"
