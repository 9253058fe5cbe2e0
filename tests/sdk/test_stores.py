"""Stores of clouds from the outside: what a start says of one it cannot use, runs on them, a store that goes away."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from flyte_binary.storage.azure.client import make_client as make_azure_client
from flyte_binary.storage.azure.connection import AzureConnection
from tests.parts import azurite, versitygw
from tests.parts.gate import gate
from tests.sdk.sdk import Sdk, until
from tests.sdk.serving import Server, serving, write_client_config
from tests.sdk.stores import S3Store, Store
from tests.sdk.wire import DATA, UPLOAD, md5_of, post, upload_url

PROJECT = {"name": "flytesnacks", "domain": "development"}
TASK = {
    "taskTemplate": {
        "id": {"project": "flytesnacks", "domain": "development", "name": "t", "version": "v"},
        "container": {"args": ["a0"]},
    }
}
S3_ONLY = pytest.mark.parametrize("store", ["s3"], indirect=True)


def s3_settings(**config: str) -> Mapping[str, str]:
    keys = {"access_key_id": versitygw.ACCESS_KEY, "secret_key": versitygw.SECRET_KEY, "region": versitygw.REGION}
    config = {"endpoint": versitygw.shared_server().url, **keys, **config}
    return {f"storage.stow.config.{name}": value for name, value in config.items()}


@pytest.mark.parametrize(
    ("prefix", "config", "says"),
    [
        ("s3://no-such-bucket/flyte", {}, "the bucket no-such-bucket does not exist"),
        ("s3://no-such-bucket/flyte", {"secret_key": "wrong"}, "storage.stow.config.access_key_id, secret_key"),
        ("s3://no-such-bucket/flyte", {"endpoint": "http://127.0.0.1:9"}, "did not answer"),
    ],
    ids=["no bucket", "a wrong key", "nobody there"],
)
def test_a_store_that_cannot_be_used_stops_the_start_with_a_sentence(
    tmp_path: Path, prefix: str, config: dict[str, str], says: str
) -> None:
    server = Server(tmp_path, {"runs.storagePrefix": prefix, **s3_settings(**config)})
    process = server.spawn()
    code = process.wait(timeout=60)

    assert code != 0
    assert says in server.log()
    assert "Traceback" not in server.log()


def test_tasks_read_and_write_azure_blobs(tmp_path: Path) -> None:
    container = f"flyte-{secrets.token_hex(8)}"
    endpoint = f"{azurite.shared_server().url}/{azurite.ACCOUNT}"
    connection = AzureConnection(account=azurite.ACCOUNT, key=azurite.KEY, endpoint=endpoint)
    with make_azure_client(connection, None, connections=1, single_put_bytes=1024) as client:
        client.create_container(container)
        settings = {
            "runs.storagePrefix": f"abfs://{container}/flyte",
            "storage.stow.config.account": azurite.ACCOUNT,
            "storage.stow.config.key": azurite.KEY,
            "storage.stow.config.endpoint": endpoint,
        }
        with serving(tmp_path / "served", settings) as server:
            sdk = Sdk(write_client_config(server, tmp_path / "config.yaml"), tmp_path)
            (tmp_path / "text").write_text("flyte\n")
            run = sdk.run("data.both_ways", text={"$file": str(tmp_path / "text")})
            uri = run.result()["$file"]
            sdk.close()
        assert uri.startswith(f"abfs://{container}/flyte/")
        key = uri.removeprefix(f"abfs://{container}/")
        assert client.get_blob_client(container, key).download_blob().readall() == b"FLYTE\n"


@S3_ONLY
def test_an_upload_is_not_overwritten_by_other_content(server: Server, store: Store) -> None:
    name = {"filenameRoot": secrets.token_hex(8), "filename": "a.txt"}
    content = b"the content"
    location = upload_url(server, **name)
    assert location["nativeUrl"] == f"{store.base_uri}/uploads/flytesnacks/development/{name['filenameRoot']}/a.txt"
    httpx.put(location["signedUrl"], content=content, headers=location["headers"]).raise_for_status()

    assert upload_url(server, **name)["nativeUrl"] == location["nativeUrl"], "the same content again is fine"
    other = post(server, f"{DATA}/CreateUploadLocation", {**UPLOAD, **name, "contentMd5": md5_of(b"other")})
    assert other.json()["code"] == "already_exists", other.text


@S3_ONLY
def test_a_bucket_that_is_not_the_servers_is_refused(server: Server, store: Store) -> None:
    inputs = {"uri": "s3://somebody-elses/inputs.pb", "inputsHash": "x"}
    request = {"projectId": PROJECT, "offloadedInputData": inputs, "taskSpec": TASK}
    answer = post(server, "flyteidl2.workflow.RunService/CreateRun", request)
    assert answer.json()["code"] == "invalid_argument", answer.text
    assert store.base_uri in answer.json()["message"]


def test_a_run_outlives_an_outage_of_the_store(tmp_path: Path) -> None:
    """The server loses sight of the store while a task ends; the task does not, which writes by itself."""
    store = S3Store(tmp_path / "served")
    with gate(versitygw.shared_server().port) as door:
        settings = {
            **store.settings,
            "storage.stow.config.endpoint": door.url,
            "executor.environment": f"{{FLYTE_AWS_ENDPOINT: '{versitygw.shared_server().url}'}}",
        }
        with serving(store.served, settings) as server:
            sdk = Sdk(write_client_config(server, tmp_path / "config.yaml"), tmp_path, store.client)
            release = tmp_path / "release"
            run = sdk.start("misbehaving.talks_slowly", release=str(release))
            until(Path(f"{release}.begun").exists, "the task runs")
            door.shut()
            refused = post(server, f"{DATA}/UploadInputs", {"projectId": PROJECT, "taskSpec": TASK, "inputs": {}})
            release.touch()
            until(lambda: store.holds(f"{run}/a0/1/outputs.pb"), "the task has ended")
            door.open()

            assert refused.json()["code"] == "unavailable", refused.text
            assert sdk.finish(run).phase == "succeeded"
            sdk.close()
