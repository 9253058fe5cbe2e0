"""The command line: what each command does, and how it refuses."""

from __future__ import annotations

import os
import resource
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flyte_binary import __version__
from flyte_binary.cli import main
from flyte_binary.db.migrate import HEAD


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flyte_binary", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        timeout=30,
        check=False,
    )


def test_version_names_the_program_and_what_it_speaks(capsys: pytest.CaptureFixture[str]):
    for arguments in (["version"], ["--version"]):
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith(f"flyte-binary {__version__} (Python 3.")


def test_version_loads_neither_the_configuration_nor_the_server():
    code = (
        "import sys; from flyte_binary.cli import main; main(['version']);"
        "heavy = {'yaml', 'sqlalchemy', 'starlette', 'uvicorn', 'connectrpc', 'google.protobuf', 'asyncio', 'flyte'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_version_answers_at_once():
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("version").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Of the processor, and the best of a few: other processes may have the machine meanwhile.
    assert min(seconds() for _ in range(5)) < 0.2


def test_check_config_prints_every_setting_and_where_it_comes_from(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    arguments = ["check-config", "--data-dir", str(tmp_path), "--set", "dataproxy.upload.maxSize=1Gi"]

    assert main(arguments) == 0

    lines = capsys.readouterr().out.splitlines()
    assert f"dataDir: {tmp_path}  # --data-dir" in lines
    assert "dataproxy.upload.maxSize: 1Gi  # --set" in lines
    assert "dataproxy.upload.maxExpiresIn: 1h" in lines
    assert "runs.server.allowUnauthenticated: false" in lines


def test_a_wrong_configuration_exits_with_2_and_sentences_and_no_traceback():
    done = run("check-config", "--port", "x", "--set", "runs.server.prot=1", FLYTE_BINARY__EXECUTOR__STOPGRACE="5")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "flyte-binary: the configuration has 3 problems:",
        "  runs.server.prot (--set): no such key; did you mean runs.server.port?",
        '  runs.server.port (--port): found "x"; expected a whole number',
        '  executor.stopGrace (FLYTE_BINARY__EXECUTOR__STOPGRACE): found "5"; expected a duration with its unit (ms, '
        's, m, h or d), such as "30s" or "1h30m"; a bare number has no unit, write for instance "5s"',
    ]


def test_serving_on_a_port_in_use_exits_with_2_and_says_what_to_do(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = run("--data-dir", str(tmp_path), "--port", str(listener.getsockname()[1]))

    assert done.returncode == 2
    assert "is in use, perhaps by another flyte-binary" in done.stderr
    assert "Traceback" not in done.stderr


def test_serving_from_a_folder_that_cannot_be_made_exits_with_2(tmp_path: Path):
    (tmp_path / "file").touch()
    done = run("serve", "--port", "0", "--data-dir", f"{tmp_path}/file/data")

    assert done.returncode == 2
    assert done.stderr == (
        f"flyte-binary: dataDir (--data-dir): cannot use {tmp_path}/file/data: {tmp_path}/file is not a folder\n"
    )


@pytest.mark.linux
def test_serving_from_a_place_where_nobody_makes_folders_is_one_sentence():
    """Even for a user who may write everywhere."""
    done = run("--data-dir", "/proc/nowhere/data", "--port", "0")
    assert done.returncode != 0
    assert "/proc/nowhere/data" in done.stderr and "Traceback" not in done.stderr


def test_flags_may_stand_on_either_side_of_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    arguments = ["--set", "executor.cores=2", "check-config", "--set", "executor.maxRetries=7"]

    assert main([*arguments, "--data-dir", str(tmp_path)]) == 0

    out = capsys.readouterr().out
    assert "executor.cores: 2.0  # --set" in out
    assert "executor.maxRetries: 7  # --set" in out


def test_an_unknown_command_is_refused_by_name(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        main(["server"])
    assert stopped.value.code == 2
    assert "invalid choice: 'server'" in capsys.readouterr().err


def test_migrate_makes_the_database_and_a_second_time_finds_it_current(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    arguments = ["migrate", "--data-dir", str(tmp_path / "data")]

    assert main(arguments) == 0
    assert f"{tmp_path}/data/flyte.db is now at schema revision" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "was already at schema revision" in capsys.readouterr().out


def test_migrate_check_says_what_is_needed_and_changes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    folder = ["--data-dir", str(tmp_path / "data")]

    assert main(["migrate", "--check", *folder]) == 1
    assert f"flyte.db has no schema yet; `flyte-binary migrate` brings it to {HEAD}" in capsys.readouterr().out
    assert not (tmp_path / "data" / "flyte.db").exists()
    assert main(["migrate", *folder]) == 0
    capsys.readouterr()
    assert main(["migrate", "--check", *folder]) == 0
    assert f"is at schema revision {HEAD}, this program's" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "--check"], ["serve", "--port", "0"]])
def test_a_schema_that_is_newer_than_the_program_is_refused_in_a_sentence_and_left_alone(
    tmp_path: Path, command: list[str]
):
    assert main(["migrate", "--data-dir", str(tmp_path)]) == 0
    with closing(sqlite3.connect(tmp_path / "flyte.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()

    refused = run(*command, "--data-dir", str(tmp_path))

    assert refused.returncode == 2
    assert "the database is at schema revision 9999, newer than this program's" in refused.stderr
    assert "start the newer flyte-binary, or restore the backup" in refused.stderr
    assert "Traceback" not in refused.stderr
    with closing(sqlite3.connect(tmp_path / "flyte.db")) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["secrets"], "expected `flyte-binary secrets rotate-key`"),
        (["secrets", "rotate"], "expected `flyte-binary secrets rotate-key`"),
        (["migrate", "rotate-key"], "migrate takes no 'rotate-key'"),
        (["serve", "--check"], "serve takes no --check"),
        (["backup", "/mnt/x", "--check"], "backup takes no --check"),
    ],
)
def test_an_operation_belongs_to_its_command(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
