"""The keys of the secrets: rotated beside a server at work, and a start without the right ones."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.sdk.serving import Server, serving


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        yield server


def call(server: Server, method: str, **request: object) -> httpx.Response:
    return httpx.post(f"{server.url}/flyteidl2.secret.SecretService/{method}", json=request, timeout=30)


def create(server: Server, name: str) -> None:
    spec = {"binaryValue": b64encode(b"a value").decode()}
    assert call(server, "CreateSecret", id={"name": name}, secretSpec=spec).status_code == 200


def rotate(server: Server) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).parent / "flyte-binary")
    return subprocess.run(
        [program, "secrets", "rotate-key", "--data-dir", str(server.data_dir)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def keys_in(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="ascii").splitlines() if line and not line.startswith("#")]


def test_the_key_is_rotated_beside_a_server_that_goes_on(own_server: Server) -> None:
    path = own_server.data_dir / "secrets.key"
    assert not path.exists()
    create(own_server, "one")
    create(own_server, "two")
    (first,) = keys_in(path)

    done = rotate(own_server)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Encrypted again: 2 secrets, with the key ")
    assert keys_in(path)[0] == first and len(keys_in(path)) == 2
    assert not any(key in done.stdout for key in keys_in(path))
    create(own_server, "three")
    assert rotate(own_server).stdout.startswith("Encrypted again: 3 secrets")
    own_server.kill()
    own_server.start()
    assert call(own_server, "GetSecret", id={"name": "three"}).status_code == 200


def test_a_server_does_not_start_without_the_key_and_loses_nothing(own_server: Server) -> None:
    create(own_server, "kept")
    own_server.stop()
    path = own_server.data_dir / "secrets.key"
    away = path.rename(own_server.folder / "away")
    before = own_server.log_size()

    with pytest.raises(AssertionError, match="did not get ready"):
        own_server.start()
    assert "the database has 1 secret encrypted with the key" in own_server.log(before)
    assert f"which is not in {path}: put it back from a backup" in own_server.log(before)
    refused = rotate(own_server)
    assert refused.returncode == 2 and "put it back from a backup" in refused.stderr
    assert not path.exists()

    away.rename(path)
    own_server.start()
    assert call(own_server, "GetSecret", id={"name": "kept"}).status_code == 200


def test_a_wrong_key_in_the_configuration_is_refused_without_being_shown(own_server: Server) -> None:
    own_server.stop()
    before = own_server.log_size()
    own_server.settings = {"secret.keys": "bm90IGEga2V5"}

    with pytest.raises(AssertionError, match="did not get ready"):
        own_server.start()
    assert "entry 1 of secret.keys is no key for secrets: expected 32 bytes in base64" in own_server.log(before)
    assert "bm90IGEga2V5" not in own_server.log(before)
