"""Which store a configuration means."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyte_binary.config.errors import ConfigError
from flyte_binary.config.load import load_config
from flyte_binary.config.model import Config, StoreAuth
from flyte_binary.config.show import show
from flyte_binary.config.stores import StoreKind, signing_config, store_choice

S3, GCS, AZURE, DISK = StoreKind.S3, StoreKind.GCS, StoreKind.AZURE, StoreKind.DISK


def loaded(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    return load_config(files=[str(file)], environ={}).config


@pytest.mark.parametrize(
    ("text", "kind", "base_uri", "buckets"),
    [
        ("runs: {storagePrefix: 's3://b/flyte/'}", S3, "s3://b/flyte", ()),
        ("runs: {storagePrefix: 'gs://b'}", GCS, "gs://b", ()),
        ("runs: {storagePrefix: 'abfs://c@a.dfs.core.windows.net/x'}", AZURE, "abfs://c@a.dfs.core.windows.net/x", ()),
        ("runs: {storagePrefix: 'abfss://c/x'}", AZURE, "abfss://c/x", ()),
        ("runs: {storagePrefix: /data}", DISK, "/data", ()),
        ("storage: {metadataContainer: b}", S3, "s3://b", ()),
        ("storage: {container: b}", S3, "s3://b", ("b",)),
        ("storage: {metadataContainer: m, container: b}", S3, "s3://m", ("b",)),
        ("storage: {type: minio, container: b}", S3, "s3://b", ("b",)),
        ("storage: {type: stow, container: b, stow: {kind: google}}", GCS, "gs://b", ("b",)),
        ("storage: {type: stow, container: b, stow: {kind: gcs}}", GCS, "gs://b", ("b",)),
        ("storage: {container: c, stow: {kind: azure}}", AZURE, "abfs://c", ("c",)),
        ("storage: {type: stow, stow: {kind: local, config: {path: /srv/flyte}}}", DISK, "/srv/flyte", ()),
        ("{runs: {storagePrefix: 's3://b/x'}, storage: {container: b}}", S3, "s3://b/x", ("b",)),
        ("{runs: {storagePrefix: 's3://b/x'}, storage: {metadataContainer: b}}", S3, "s3://b/x", ()),
        ("{runs: {storagePrefix: 's3://b/x'}, storage: {allowedContainers: [c, d]}}", S3, "s3://b/x", ("c", "d")),
    ],
)
def test_the_store_is_what_the_settings_mean(
    tmp_path: Path, text: str, kind: StoreKind, base_uri: str, buckets: tuple[str, ...]
) -> None:
    choice = store_choice(loaded(tmp_path, text))
    assert (choice.kind, choice.base_uri, choice.buckets) == (kind, base_uri, buckets)


REFERENCE = """
storage:
  type: stow
  stow:
    kind: s3
    config: {region: us-east-1, disable_ssl: "true", v2_signing: "false", endpoint: "http://minio:9000",
             auth_type: accesskey, access_key_id: key, secret_key: hidden-secret}
  container: flyte-data
  enable-multicontainer: false
  signedURL: {stowConfigOverride: {endpoint: "https://s3.example.com", disable_ssl: "false"}}
  limits: {maxDownloadMBs: 10}
runs: {storagePrefix: "s3://flyte-data"}
"""


def test_a_configuration_of_the_reference_backend_is_understood(tmp_path: Path) -> None:
    config = loaded(tmp_path, REFERENCE)
    assert store_choice(config).base_uri == "s3://flyte-data"
    assert config.storage.stow.config.auth_type is StoreAuth.ACCESSKEY
    assert config.storage.stow.config.disable_ssl is True
    assert config.storage.limits.max_download_mbs == 10
    signing = signing_config(config)
    assert signing is not None
    assert (signing.endpoint, signing.disable_ssl) == ("https://s3.example.com", False)
    assert (signing.access_key_id, signing.region) == ("key", "us-east-1")


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(REFERENCE)
    text = show(load_config(files=[str(tmp_path / "config.yaml")], environ={}))
    assert "hidden-secret" not in text
    assert "storage.stow.config.secret_key: ********" in text


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("runs: {storagePrefix: 'ftp://host/x'}", "runs.storagePrefix", "s3://, gs:// or abfs://"),
        ("{runs: {storagePrefix: 's3://b'}, storage: {type: local}}", "runs.storagePrefix", "the local disk"),
        ("{runs: {storagePrefix: 'gs://b'}, storage: {type: s3}}", "runs.storagePrefix", "a s3:// store"),
        ("{runs: {storagePrefix: /data}, storage: {type: s3}}", "runs.storagePrefix", "a s3:// store"),
        (
            "{runs: {storagePrefix: 's3://other/x'}, storage: {metadataContainer: b}}",
            "runs.storagePrefix",
            'everything goes to "b"',
        ),
        ("storage: {type: s3}", "storage.metadataContainer", "the name of a bucket"),
        ("storage: {type: redis}", "storage.type", "one of auto, stow, local, s3, minio"),
        (
            "{storage: {container: b, signedURL: {stowConfigOverride: {endpont: x}}}}",
            "storage.signedURL.stowConfigOverride",
            'a key "endpont"',
        ),
        (
            "{storage: {container: b, signedURL: {stowConfigOverride: {disable_ssl: maybe}}}}",
            "storage.signedURL.stowConfigOverride",
            '"maybe"',
        ),
        ("{storage: {container: b}, dataproxy: {upload: {maxSize: 6Gi}}}", "dataproxy.upload.maxSize", "5Gi"),
        (
            "{storage: {container: b}, dataproxy: {download: {maxExpiresIn: 8d}}}",
            "dataproxy.download.maxExpiresIn",
            "7d",
        ),
        ("storage: {limits: {maxDownloadMBs: 4000}}", "storage.limits.maxDownloadMBs", "between 0 and 2047"),
    ],
)
def test_what_contradicts_itself_stops_the_start(tmp_path: Path, text: str, path: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, text)
    (problem,) = refused.value.problems
    assert problem.path == path
    assert says in str(refused.value)
