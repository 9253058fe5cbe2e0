from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from flyteidl2.imagebuilder import definition_pb2 as pb

from flyte_binary.executor.local.environments.library import Built
from tests.unit.local.image_builds import Builds, commands, copy, image, packages, variables
from tests.waiting import until


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    builds = Builds(tmp_path)
    builds.library.empty_trash()
    yield builds
    builds.close()


def folders(builds: Builds) -> list[Path]:
    return [folder for _, folder in builds.library.folders()]


def built(builds: Builds, name: str = "flyte:1") -> Built:
    named = builds.library.find(name)
    assert named is not None and named.built is not None
    return named.built


def test_the_sdk_of_the_base_image_comes_before_the_layers(builds: Builds) -> None:
    assert builds.build(image(packages("a==1"))) == 0

    venv, sdk, layer = builds.uv.calls()
    assert venv.startswith("venv --python ") and venv.endswith("/venv")
    assert [sdk, layer] == ["pip install flyte==2.12.1", "pip install a==1"]
    assert built(builds).python.exists()


def test_names_of_any_length_are_kept_apart(builds: Builds) -> None:
    names = [f"{':' * 250}{last}" for last in "ab"]
    builds.build(image(packages("a")), name=names[0])

    assert built(builds, names[0]).python.exists()
    assert builds.library.find(names[1]) is None
    assert builds.library.find("x" * 10_000) is None


def test_another_python_is_left_to_uv_to_find(builds: Builds) -> None:
    builds.build(image(base="ghcr.io/flyteorg/flyte:py3.13-v2.12.1", python="3.13"))

    assert builds.uv.calls("venv")[0].startswith("venv --python 3.13 ")


def test_equal_layers_are_built_once_and_known_by_both_names(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    builds.build(image(packages("a")), name="one:1")
    builds.build(image(packages("a")), name="two:2")

    assert len(builds.uv.calls("venv")) == 1
    assert built(builds, "one:1") == built(builds, "two:2")
    assert "built already" in capfd.readouterr().out
    second = builds.library.find("two:2")
    assert second is not None and second.build_run.run == "r2"


def test_a_forced_build_replaces_what_was_there_for_new_attempts_only(builds: Builds) -> None:
    builds.build(image(packages("a")))
    before = built(builds)
    builds.build(image(packages("a")), force=True)

    assert built(builds).folder != before.folder
    assert before.python.exists(), "attempts may still run in it"


def test_a_failed_build_says_what_uv_said_and_leaves_nothing(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    assert builds.build(image(packages("unfindable"))) == 1

    captured = capfd.readouterr()
    assert "error: there is no unfindable" in captured.err
    assert "`uv pip install unfindable` failed with exit code 1" in captured.out
    assert builds.library.find("flyte:1") is None
    assert folders(builds) == []


def test_a_failed_build_of_a_name_keeps_what_the_name_stood_for(builds: Builds) -> None:
    builds.build(image(packages("a")))
    before = built(builds)
    assert builds.build(image(packages("unfindable"))) == 1

    assert built(builds) == before


async def test_a_build_that_is_killed_leaves_nothing_that_is_taken_for_complete(builds: Builds) -> None:
    builds.uv.hold()
    process = builds.start(builds.prepare(image(packages("a"))))
    await until(lambda: builds.uv.calls("venv"), seconds=30)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    builds.uv.go_on()
    (remains,) = folders(builds)

    assert builds.library.find("flyte:1") is None
    assert builds.build(image(packages("a"))) == 0
    assert built(builds).folder != remains


async def test_two_builds_at_once_are_one(builds: Builds) -> None:
    builds.uv.hold()
    works = [builds.prepare(image(packages("a")), name=name) for name in ("one:1", "two:2")]
    first = builds.start(works[0])
    await until(lambda: builds.uv.calls("venv"), seconds=30)
    second = builds.start(works[1])
    await until(lambda: "waiting for it" in (works[1] / "log").read_text(), seconds=30)
    builds.uv.go_on()

    assert (first.wait(timeout=30), second.wait(timeout=30)) == (0, 0)
    assert len(builds.uv.calls("venv")) == 1
    assert built(builds, "one:1") == built(builds, "two:2")


def test_variables_count_for_the_layers_after_them_and_the_environment_is_ours(
    builds: Builds, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere/else")
    builds.build(image(packages("show"), variables(COLOUR="green"), packages("show"), variables(COLOUR="red")))

    venv = built(builds).folder / "venv"
    shown = [line for line in capfd.readouterr().out.splitlines() if line.startswith("COLOUR")]
    assert shown == [f"COLOUR is None VIRTUAL_ENV is {venv}", f"COLOUR is green VIRTUAL_ENV is {venv}"]
    assert built(builds).variables == {"COLOUR": "red"}


def test_a_secret_in_an_option_is_used_and_not_shown(
    builds: Builds, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_TOKEN", "s3cr3t")
    builds.build(image(packages("a", index_url="https://me:$INDEX_TOKEN@index/")))

    assert builds.uv.calls()[-1] == "pip install --index-url https://me:s3cr3t@index/ a"
    assert "s3cr3t" not in "".join(capfd.readouterr())


def test_a_secret_that_came_as_a_file_is_used_under_its_name(
    builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "secrets"
    (secrets / "group").mkdir(parents=True)
    (secrets / "my-token").write_text("s1")
    (secrets / "group" / "key").write_text("s2")
    (secrets / "binary").write_bytes(b"\xff\0")
    monkeypatch.setenv("FLYTE_SECRETS_DEFAULT_DIR", str(secrets))
    builds.build(image(packages("a", extra_args="--x $my_token-$MY_TOKEN --y $group_key-$GROUP_KEY --z $binary")))

    assert builds.uv.calls()[-1] == "pip install --x s1-s1 --y s2-s2 --z $binary a"


def test_files_that_come_along_are_kept_for_the_working_folder(builds: Builds) -> None:
    files = {"src/pkg/mod.py": "A = 1", "data.txt": "data"}
    layers = [copy("src", "."), copy("data.txt", "."), copy("data.txt", "other/name.txt"), copy("data.txt", "into/")]
    builds.build(image(*layers), files)

    work = built(builds).work
    kept = {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}
    assert kept == {"pkg/mod.py": "A = 1", "data.txt": "data", "other/name.txt": "data", "into/data.txt": "data"}


def test_what_was_not_uploaded_is_named(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    assert builds.build(image(copy("absent", "."))) == 1

    assert "'absent', which was not uploaded with it" in capfd.readouterr().out
    assert builds.uv.calls() == []


def test_what_is_no_description_of_an_image_is_refused(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    work = builds.prepare(image())
    (work / "spec.pb").write_bytes(b"\xff\xff")
    process = builds.start(work)

    assert process.wait(timeout=30) == 1
    assert "not the description of an image" in (work / "log").read_text()


def test_commands_run_in_the_working_folder_of_the_image(builds: Builds) -> None:
    builds.build(image(commands("uv show", "pip install 'x$y'")))

    assert builds.uv.calls()[-2:] == ["show", "pip install x$y"]


def test_an_uploaded_archive_with_a_way_out_is_refused(builds: Builds, capfd: pytest.CaptureFixture[str]) -> None:
    spec = image(pb.Layer(requirements=pb.Requirements(file="r.txt")))
    assert builds.build(spec, {"../r.txt": "a"}) == 1

    assert "leads outside" in capfd.readouterr().out
