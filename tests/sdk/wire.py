"""Plain HTTP to a server, and what it leaves behind in store, database and log."""

from __future__ import annotations

import base64
import hashlib
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.sdk.sdk import until
from tests.sdk.serving import Server

RUNS = "flyteidl2.workflow.RunService"
DATA = "flyteidl2.dataproxy.DataProxyService"
TASKS = "flyteidl2.task.TaskService"


def files_below(folder: Path) -> list[Path]:
    """Also while folders of attempts come and go, which `rglob` does not bear."""
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def md5_of(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


CONTENT = b"the content"
UPLOAD = {
    "project": "flytesnacks",
    "domain": "development",
    "filename": "a.txt",
    "contentMd5": md5_of(CONTENT),
}
"""A request for a place to upload `CONTENT` to."""


def post(server: Server, method: str, content: bytes | dict[str, Any], **headers: str) -> httpx.Response:
    """JSON unless a content type is given."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        if isinstance(content, dict):
            return client.post(f"/{method}", json=content, headers=headers)
        return client.post(f"/{method}", content=content, headers={"content-type": "application/json", **headers})


def upload_url(server: Server, **fields: Any) -> dict[str, Any]:
    """The answer to `UPLOAD` with other fields."""
    return post(server, f"{DATA}/CreateUploadLocation", {**UPLOAD, **fields}).raise_for_status().json()


@dataclass
class Watch:
    """Sees that a request has changed nothing and is told of in one line."""

    server: Server

    def __post_init__(self) -> None:
        self._before = self._kept()
        self._size = self.server.log_size()

    def nothing_was_written(self) -> None:
        assert self._kept() == self._before

    def one_line(self) -> dict[str, Any]:
        until(lambda: self.server.log_entries(self._size), "the line is there")
        entries = self.server.log_entries(self._size)
        assert len(entries) == 1, entries
        assert "Traceback" not in self.server.log(self._size)
        return entries[0]

    def _kept(self) -> tuple[list[Path], dict[str, int]]:
        files = files_below(self.server.data_dir / "store")
        with closing(sqlite3.connect(f"file:{self.server.data_dir}/flyte.db?mode=ro", uri=True)) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            return files, {name: database.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}


def settle(server: Server) -> None:
    """Wait until what ran before leaves no more traces."""

    def nothing_is_left_to_do() -> bool:
        if "fork_server_ready" not in server.log():
            return False
        with closing(sqlite3.connect(f"file:{server.data_dir}/flyte.db?mode=ro", uri=True)) as database:
            return not database.execute("select count(*) from attempts where archived_at is null").fetchone()[0]

    until(nothing_is_left_to_do, "all that ran before is done with")
