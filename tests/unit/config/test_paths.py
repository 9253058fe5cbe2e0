"""Folders, files and addresses that the configuration names, asked before the start."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from flyte_binary.config.model import Config, Database, Executor, Runs, Server, Sqlite
from flyte_binary.config.paths import check_address, check_paths, task_interpreter


def listening_at(host: str, port: int) -> Config:
    return Config(runs=Runs(server=Server(host=host, port=port)))


def venv(folder: Path, *programs: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    for program in programs:
        (folder / "bin" / program).touch(mode=0o755)
    return folder


def test_a_folder_that_is_there_or_can_be_made_is_no_problem(tmp_path: Path):
    assert check_paths(Config(data_dir=tmp_path), {}) == []
    assert check_paths(Config(data_dir=tmp_path / "to/be/made"), {}) == []
    assert not (tmp_path / "to").exists()


def test_a_folder_below_a_file_is_refused_with_the_key_and_its_origin(tmp_path: Path):
    (tmp_path / "file").touch()
    config = Config(data_dir=tmp_path / "file/data")

    (problem,) = check_paths(config, {"dataDir": "--data-dir"})

    assert str(problem) == (f"dataDir (--data-dir): cannot use {tmp_path}/file/data: {tmp_path}/file is not a folder")


def test_a_folder_that_this_user_may_not_write_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Root may write everywhere, and tests may run as root.
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path)

    (there,) = check_paths(Config(data_dir=tmp_path), {})
    (to_be_made,) = check_paths(Config(data_dir=tmp_path / "a/b"), {})

    assert there.text == f"cannot write to {tmp_path}: this user may not write in {tmp_path}"
    assert to_be_made.text == f"cannot create {tmp_path}/a/b: this user may not write in {tmp_path}"


def test_store_database_and_interpreter_are_asked_too(tmp_path: Path):
    (tmp_path / "file").touch()
    config = Config(
        data_dir=tmp_path,
        runs=Runs(storage_prefix=f"{tmp_path}/file", database=Database(sqlite=Sqlite(path=tmp_path / "file/flyte.db"))),
        executor=Executor(interpreter=tmp_path / "file"),
    )

    assert [problem.path for problem in check_paths(config, {})] == [
        "runs.storagePrefix",
        "runs.database.sqlite.path",
        "executor.interpreter",
    ]


def test_a_database_path_that_is_a_folder_is_refused(tmp_path: Path):
    config = Config(data_dir=tmp_path, runs=Runs(database=Database(sqlite=Sqlite(path=tmp_path))))
    (problem,) = check_paths(config, {})
    assert "is a folder; expected the path of a file" in problem.text


def test_a_port_in_use_is_refused_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (problem,) = check_address(listening_at("127.0.0.1", port), {"runs.server.port": "--port"})

    assert str(problem).startswith(f"runs.server.port (--port): port {port} of 127.0.0.1 is in use")
    assert "--port (0 takes a free one)" in problem.text


def test_a_port_whose_last_connections_linger_is_free():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        server, _ = listener.accept()
        server.close()  # the side that closes first is the one that lingers
        client.close()

    assert check_address(listening_at("127.0.0.1", port), {}) == []


def test_any_free_port_is_no_problem():
    assert check_address(listening_at("127.0.0.1", 0), {}) == []


def test_an_address_of_another_machine_is_refused():
    (problem,) = check_address(listening_at("192.0.2.1", 0), {})
    assert problem.path == "runs.server.host"
    assert "expected an address of this machine" in problem.text


def test_tasks_run_under_the_configured_interpreter_first(tmp_path: Path):
    active = venv(tmp_path / "active", "python", "a0")
    executor = Executor(interpreter=Path("/opt/python"))
    assert task_interpreter(executor, {"VIRTUAL_ENV": str(active)}, Path("/own")) == Path("/opt/python")


def test_tasks_run_in_the_active_virtual_environment_that_has_the_sdk(tmp_path: Path):
    active = venv(tmp_path / "active", "python", "a0")
    assert task_interpreter(Executor(), {"VIRTUAL_ENV": str(active)}, Path("/own")) == active / "bin/python"


def test_an_active_environment_without_the_sdk_leaves_tasks_with_the_servers_own(tmp_path: Path):
    active = venv(tmp_path / "active", "python")
    assert task_interpreter(Executor(), {"VIRTUAL_ENV": str(active)}, Path("/own")) == Path("/own")
    assert task_interpreter(Executor(), {}, Path("/own")) == Path("/own")
