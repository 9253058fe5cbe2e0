"""Images with layers: built by the server on the SDK's behalf, used, used again, and what is said when they fail.

These tests install small packages from the package index that this machine is set up for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flyte_binary.executor.local.environments.library import Library
from flyte_binary.executor.local.environments.uv import build_environment
from tests.sdk.sdk import Look, Sdk, SdkError, settled
from tests.sdk.serving import Server, serving, write_client_config

BUILD_SECONDS = 300
"""Packages are downloaded once for all tests."""

BUILT = "executor/environments/built"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With the settings of this machine's index, and a cache that tests share with the developer's own uv."""
    own = {name: value for name, value in build_environment(os.environ).items() if name not in ("HOME", "PATH")}
    own.setdefault("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))
    with serving(tmp_path_factory.mktemp("images"), environment=own) as server:
        yield server


@pytest.fixture(scope="module")
def sdk(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    folder = tmp_path_factory.mktemp("client")
    sdk = Sdk(write_client_config(server, folder / "config.yaml"), folder)
    yield sdk
    sdk.close()


def run(sdk: Sdk, task: str, **inputs: object) -> Look:
    name = settled(sdk.begin("start", task=f"images.{task}", inputs=inputs, options=None), BUILD_SECONDS)
    return finished(sdk, name)


def finished(sdk: Sdk, run: str) -> Look:
    return Look(**settled(sdk.begin("finish", run=run), BUILD_SECONDS))


def build_runs(sdk: Sdk) -> list[str]:
    return [
        name for name in sdk.call("runs") if sdk.look(name).details["metadata"]["task"]["id"]["name"] == "build-image"
    ]


def built(server: Server) -> list[Path]:
    return sorted((server.data_dir / BUILT).glob("*/venv"))


def test_a_task_finds_the_packages_and_variables_of_its_image(sdk: Sdk, server: Server) -> None:
    answer = run(sdk, "look", names=["COLOUR", "BOTH"]).result()

    assert answer[0] == "2.0.0"
    assert answer[1] == "2.12.1"
    assert Path(answer[2]).is_relative_to(server.data_dir / BUILT)
    assert answer[3:] == ["green", "task"], "what the task sets stands above what its image sets"
    (build,) = build_runs(sdk)
    log = "".join(sdk.call("logs", run=build))
    assert "+ iniconfig==2.0.0" in log, "the log of the build is uv's own output"


def test_an_image_that_is_there_is_not_built_again(sdk: Sdk, server: Server) -> None:
    first = run(sdk, "look", names=[]).result()
    builds = build_runs(sdk)

    assert run(sdk, "look", names=[]).result() == first
    assert build_runs(sdk) == builds


def test_equal_layers_under_another_name_are_built_once(sdk: Sdk, server: Server) -> None:
    python = run(sdk, "look", names=[]).result()[2]
    there = built(server)

    assert run(sdk, "look_same").result() == python
    assert built(server) == there
    assert "built already" in "".join(sdk.call("logs", run=build_runs(sdk)[-1]))


def test_a_fork_server_of_its_own_makes_the_processes_of_an_image(sdk: Sdk, server: Server) -> None:
    run(sdk, "look", names=[])

    ready = [entry for entry in server.log_entries() if entry["event"] == "fork_server_ready"]
    assert len(ready) >= 2, "the default one and that of the image"
    assert not [entry for entry in server.log_entries() if entry["event"] == "fork_server_not_possible"]


def test_a_build_that_fails_says_what_uv_said(sdk: Sdk, server: Server) -> None:
    there = built(server)
    with pytest.raises(SdkError, match="Build failed") as caught:
        run(sdk, "never")

    assert caught.value.type == "ImageBuildError"
    failed = sdk.look(build_runs(sdk)[-1])
    assert failed.phase == "failed"
    assert "no version of iniconfig==99.99.99" in failed.error
    assert "was not built" in failed.error
    assert built(server) == there, "nothing of it is left"


def test_two_runs_at_once_build_an_image_once(sdk: Sdk, server: Server) -> None:
    """Two clients, since one has the image built only once anyway."""
    there = built(server)
    folder = server.folder / "second client"
    folder.mkdir()
    other = Sdk(write_client_config(server, folder / "config.yaml"), folder)
    try:
        starts = [one.begin("start", task="images.quick", inputs={}, options=None) for one in (sdk, other)]
        first, second = (sdk.finish(settled(start, BUILD_SECONDS)).result() for start in starts)
    finally:
        other.close()

    assert first == second
    assert first.startswith("1.1.1 ")
    assert len(built(server)) == len(there) + 1


def test_files_requirements_and_commands_are_honoured_and_the_rest_is_named(sdk: Sdk) -> None:
    answer = run(sdk, "brought").result()

    assert answer == ["brought along", "2.0.0", "0.4.6", "iniconfig==2.0.0\n"]
    log = "".join(sdk.call("logs", run=build_runs(sdk)[-1]))
    assert "Left out: apt packages (cowsay)" in log
    assert "Left out: the command `apt-get install -y cowsay && echo done`" in log


def test_a_uv_project_is_installed_with_what_it_depends_on(sdk: Sdk) -> None:
    assert run(sdk, "project").result() == ["made by uv", "2.0.0"]


def test_what_a_poetry_lock_names_is_installed(sdk: Sdk) -> None:
    assert run(sdk, "poetry").result() == "2.0.0"


def test_a_module_that_an_unbuilt_image_would_have_is_missing_with_a_hint(sdk: Sdk) -> None:
    failed = run(sdk, "lacking")

    assert failed.phase == "failed"
    assert "No module named 'no_such_module_anywhere'" in failed.error
    assert "Nothing was built on this server for the image registry.example.com/team/app:v1" in failed.error
    assert "image.builder to remote" in failed.error
    assert "is not built on this server" in "".join(sdk.call("logs", run=failed.run))


def test_an_environment_that_was_removed_is_built_again_for_a_run_that_is_repeated(sdk: Sdk, server: Server) -> None:
    first = run(sdk, "look", names=["COLOUR"])
    library = Library(server.data_dir / "executor/environments")
    gone = Path(first.result()[2]).parents[2]
    assert library.remove(gone.name.rpartition("-")[0], gone)
    builds = build_runs(sdk)

    again = finished(sdk, sdk.call("rerun", run=first.run, inputs={"names": ["COLOUR"]})).result()
    assert again[:2] == first.result()[:2] and again[3] == "green"
    assert again[2] != first.result()[2]
    assert build_runs(sdk) == builds, "no run of its own: nobody asked for the image"


def test_a_built_image_survives_a_restart_of_the_server(sdk: Sdk, server: Server) -> None:
    first = run(sdk, "look", names=[]).result()
    builds = build_runs(sdk)

    server.stop()
    server.start()

    assert run(sdk, "look", names=[]).result() == first
    assert build_runs(sdk) == builds
