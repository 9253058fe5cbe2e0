"""Artifacts by the unmodified SDK: published, found by partitions and attributes, and read back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import PROGRAMS, client_environment
from tests.sdk.stores import Store

SECONDS = 90


def test_published_artifacts_are_found_by_their_partitions_and_attributes(
    client_config: Path, store: Store, flyte: Flyte, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "publishing.py"), str(client_config), str(tmp_path)],
        cwd=tmp_path,
        env={**client_environment(tmp_path), **store.client},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "latest": "v3",
        "content": "events",
        "partitions": {"date": "2026-09-17", "region": "eu"},
        "per_partition": ["v2", "v3"],
        "of_team": ["v1", "v2", "v3"],
        "names": [["events", 3]],
        "regions": ["eu", "us"],
        "dates": ["2026-09-17"],
        "schema": ["date", "region"],
    }
    listed = flyte("get", "artifact", "events")
    assert listed.code == 0, listed.text
    assert "v3" in listed.text
