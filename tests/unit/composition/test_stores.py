"""From configuration to how a store is reached, by this server and by its tasks."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from flyte_binary.composition.store_connections import azure_connection, gcs_connection, s3_connection
from flyte_binary.composition.store_environment import task_environment
from flyte_binary.config.load import load_config
from flyte_binary.config.model import Config
from flyte_binary.config.stores import store_choice
from flyte_binary.domain.errors import FailedPrecondition

BUCKET = "runs.storagePrefix=s3://b/flyte"
KEYS = ("storage.stow.config.access_key_id=key", "storage.stow.config.secret_key=secret")


@pytest.fixture
def config(tmp_path: Path):
    def make(*settings: str) -> Config:
        return load_config(environ={}, assignments=[f"dataDir={tmp_path}", *settings]).config

    return make


def variables(config: Config, environ: dict[str, str] | None = None) -> dict[str, str]:
    return task_environment(config, store_choice(config), environ or {})


def test_keys_and_address_reach_server_and_tasks(config) -> None:
    chosen = config(BUCKET, *KEYS, "storage.stow.config.endpoint=minio:9000", "storage.stow.config.disable_ssl=true")
    connection = s3_connection(chosen, chosen.storage.stow.config)
    assert connection.endpoint == "http://minio:9000"
    assert (connection.access_key_id, connection.secret_key) == ("key", "secret")
    assert variables(chosen, {"AWS_PROFILE": "mine"}) == {
        "FLYTE_AWS_ENDPOINT": "http://minio:9000",
        "FLYTE_AWS_ACCESS_KEY_ID": "key",
        "FLYTE_AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


def test_the_older_connection_section_fills_what_is_left_open(config) -> None:
    older = [
        f"storage.connection.{name}"
        for name in ("endpoint=https://s3", "region=eu-west-1", "access-key=k", "secret-key=s")
    ]
    chosen = config(BUCKET, *older)
    connection = s3_connection(chosen, chosen.storage.stow.config)
    assert (connection.endpoint, connection.region) == ("https://s3", "eu-west-1")
    assert (connection.access_key_id, connection.secret_key) == ("k", "s")


def test_a_secret_key_may_lie_in_a_file(config, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from the file\n")
    chosen = config(BUCKET, KEYS[0], f"storage.stow.config.secret_key_path={tmp_path}/secret")
    assert s3_connection(chosen, chosen.storage.stow.config).secret_key == "from the file"
    gone = config(BUCKET, KEYS[0], "storage.stow.config.secret_key_path=/nonexistent/secret")
    with pytest.raises(FailedPrecondition, match="secret_key_path"):
        s3_connection(gone, gone.storage.stow.config)


def test_the_role_of_the_machine_is_used_although_keys_are_there_if_iam_is_said(config) -> None:
    chosen = config(BUCKET, *KEYS, "storage.stow.config.auth_type=iam")
    assert s3_connection(chosen, chosen.storage.stow.config).access_key_id == ""


def test_access_keys_that_are_said_and_missing_are_told(config) -> None:
    chosen = config(BUCKET, "storage.stow.config.auth_type=accesskey")
    with pytest.raises(FailedPrecondition, match="access_key_id"):
        s3_connection(chosen, chosen.storage.stow.config)


def test_tasks_get_the_servers_own_credentials_where_none_are_configured(config, tmp_path: Path) -> None:
    environ = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "PATH": "/bin", "HOME": str(tmp_path)}
    assert variables(config(BUCKET), environ) == {
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
    }
    assert variables(config(BUCKET, "storage.shareCredentials=false"), environ) == {"AWS_REGION": "us-east-1"}


def test_tasks_look_in_the_region_in_which_the_server_looks(config) -> None:
    assert variables(config(BUCKET), {"AWS_REGION": "eu-north-1"})["AWS_REGION"] == "eu-north-1"
    chosen = config(BUCKET, "storage.stow.config.region=eu-west-1")
    assert variables(chosen, {"AWS_REGION": "eu-north-1"})["AWS_REGION"] == "eu-west-1"


def test_tasks_find_the_files_of_the_user_that_runs_the_server(config, tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    found = variables(config(BUCKET), {"HOME": str(tmp_path), "AWS_PROFILE": "work"})
    assert found["AWS_PROFILE"] == "work"
    assert found["AWS_CONFIG_FILE"] == f"{tmp_path}/.aws/config"
    assert found["AWS_SHARED_CREDENTIALS_FILE"] == f"{tmp_path}/.aws/credentials"


def test_googles_credentials_may_be_text_or_a_file_and_tasks_get_a_file(config, tmp_path: Path) -> None:
    text = json.dumps({"type": "service_account"})
    (tmp_path / "key.json").write_text(text)
    for given in (text, f"{tmp_path}/key.json"):
        chosen = config("runs.storagePrefix=gs://b", f"storage.stow.config.json={given}")
        assert gcs_connection(chosen.storage.stow.config).credentials_json == text
        file = Path(variables(chosen)["GOOGLE_APPLICATION_CREDENTIALS"])
        assert file.read_text() == text
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_tasks_get_googles_application_default_credentials_of_the_server(config, tmp_path: Path) -> None:
    chosen = config("runs.storagePrefix=gs://b")
    assert variables(chosen, {"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}) == {
        "GOOGLE_APPLICATION_CREDENTIALS": "/key.json"
    }
    assert variables(chosen, {"HOME": str(tmp_path)}) == {}
    own = tmp_path / ".config/gcloud/application_default_credentials.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    assert variables(chosen, {"HOME": str(tmp_path)}) == {"GOOGLE_APPLICATION_CREDENTIALS": str(own)}


def test_azures_account_comes_from_the_settings_or_from_the_uri(config) -> None:
    named = config("runs.storagePrefix=abfs://c", "storage.stow.config.account=acc", "storage.stow.config.key=a2V5")
    assert variables(named) == {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}
    in_uri = config("runs.storagePrefix=abfs://c@acc.dfs.core.windows.net/x")
    connection = azure_connection(store_choice(in_uri), in_uri.storage.stow.config)
    assert connection.url == "https://acc.blob.core.windows.net"
    assert variables(in_uri, {"AZURE_CLIENT_ID": "id", "HOME": "/x"}) == {
        "AZURE_STORAGE_ACCOUNT_NAME": "acc",
        "AZURE_CLIENT_ID": "id",
    }
    nameless = config("runs.storagePrefix=abfs://c/x")
    with pytest.raises(FailedPrecondition, match=r"storage\.stow\.config\.account"):
        azure_connection(store_choice(nameless), nameless.storage.stow.config)


def test_a_server_on_its_own_disk_loads_no_cloud() -> None:
    """Each of them takes half a second and tens of megabytes."""
    clouds = ["boto3", "botocore", "google.auth", "google.cloud", "azure.core"]
    program = f"import sys, flyte_binary.composition.serve; print([name for name in {clouds} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
