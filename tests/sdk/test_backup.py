"""A backup of a server at work, and the server that is restored from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.marks import count
from tests.sdk.sdk import Look, Sdk, settled, until
from tests.sdk.serving import Server, serving, write_client_config


def command(*words: str, server: Server) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flyte_binary", *words, "--data-dir", str(server.data_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_backup_at_work_is_a_server_again(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    copy = tmp_path / "copy"
    with serving(tmp_path / "served") as server:
        sdk = Sdk(write_client_config(server, server.folder / "client.yaml"), server.folder)
        finished = sdk.run("hello.main", name="before").run
        run = sdk.start("caching.slowly", folder=str(marks), x=3)
        until(lambda: count(marks, "slowly") == 1, "a task runs")
        made = command("backup", str(copy), server=server)
        assert made.returncode == 0, made.stderr
        later = sdk.run("hello.main", name="after").run
        sdk.close()
        server.kill()
        shutil.rmtree(server.data_dir, ignore_errors=True)  # the task's keeper still writes there

        restored = command("restore", str(copy), server=server)
        assert restored.returncode == 0, restored.stderr
        server.start()
        sdk = Sdk(write_client_config(server, server.folder / "client.yaml"), server.folder)
        assert sdk.look(finished).result() == "Hello, before!"
        (marks / "go").touch()
        assert Look(**settled(sdk.begin("finish", run=run))).result() == 9
        assert count(marks, "slowly") == 2, "its process was not in the copy, so it was started again"
        with pytest.raises(AssertionError, match=r"not found|does not exist"):
            sdk.look(later)
        assert sdk.run("hello.main", name="again").result() == "Hello, again!"
        sdk.close()
    assert ((copy / "keys" / "url-signing.key").stat().st_mode & 0o777) == 0o600


def test_a_damaged_or_misplaced_backup_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with serving(tmp_path / "served") as server:
        sdk = Sdk(write_client_config(server, server.folder / "client.yaml"), server.folder)
        sdk.run("hello.main", name="once")
        sdk.close()
        assert command("backup", str(copy), server=server).returncode == 0
        assert "is not empty" in command("backup", str(copy), server=server).stderr
    assert "is there already" in command("restore", str(copy), server=server).stderr
    elsewhere = Server(tmp_path / "elsewhere")
    assert "restore to where the backup was made" in command("restore", str(copy), server=elsewhere).stderr
    assert not elsewhere.data_dir.exists()

    shutil.rmtree(server.data_dir)
    first = json.loads((copy / "files.sha256").read_text().splitlines()[0].split(" ", 2)[2])
    with (copy / "store" / first).open("ab") as file:
        file.write(b"x")
    refused = command("restore", str(copy), server=server)
    assert refused.returncode == 2 and "is damaged" in refused.stderr
    assert not (server.data_dir / "flyte.db").exists()
    (copy / "backup.json").unlink()
    assert "is no complete backup" in command("restore", str(copy), server=server).stderr
