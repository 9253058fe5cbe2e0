"""The stores that the whole matrix of this folder runs on: the server's own disk, and S3 on a real server."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from flyte_binary.storage.s3.client import make_client
from flyte_binary.storage.s3.connection import S3Connection
from tests.parts import versitygw


class Store(Protocol):
    served: Path
    """The folder of the server."""
    settings: Mapping[str, str]
    """Of the server."""
    client: Mapping[str, str]
    """Variables that a user of the SDK needs to open what tasks return."""
    base_uri: str
    """Of everything that the server stores."""

    def fetched(self, uri: str, folder: Path) -> Path:
        """Where a file or folder can be read now."""
        ...


class DiskStore:
    """Where a server has it without being told."""

    def __init__(self, served: Path) -> None:
        self.served = served
        self.base_uri = str(served / "data/store")
        self.settings: Mapping[str, str] = {}
        self.client: Mapping[str, str] = {}

    def fetched(self, uri: str, folder: Path) -> Path:
        del folder
        return Path(uri)


class S3Store:
    """On a bucket of its own."""

    def __init__(self, served: Path) -> None:
        self.served = served
        endpoint = versitygw.shared_server().url
        connection = S3Connection(
            endpoint=endpoint,
            region=versitygw.REGION,
            access_key_id=versitygw.ACCESS_KEY,
            secret_key=versitygw.SECRET_KEY,
        )
        self._bucket = f"flyte-{secrets.token_hex(8)}"
        self._s3: Any = make_client(connection, connections=1)  # any: boto3 makes its clients at run time
        self._s3.create_bucket(Bucket=self._bucket, CreateBucketConfiguration={"LocationConstraint": versitygw.REGION})
        self.base_uri = f"s3://{self._bucket}/flyte"
        self.settings = {
            "runs.storagePrefix": self.base_uri,
            "storage.container": self._bucket,
            "storage.stow.config.endpoint": endpoint,
            "storage.stow.config.region": versitygw.REGION,
            "storage.stow.config.access_key_id": versitygw.ACCESS_KEY,
            "storage.stow.config.secret_key": versitygw.SECRET_KEY,
        }
        self.client = {
            "FLYTE_AWS_ENDPOINT": endpoint,
            "FLYTE_AWS_ACCESS_KEY_ID": versitygw.ACCESS_KEY,
            "FLYTE_AWS_SECRET_ACCESS_KEY": versitygw.SECRET_KEY,
            "AWS_REGION": versitygw.REGION,
        }

    def fetched(self, uri: str, folder: Path) -> Path:
        prefix = uri.removeprefix(f"s3://{self._bucket}/").rstrip("/")
        target = folder / secrets.token_hex(8)
        for key in self._keys(prefix):
            place = target if key == prefix else target / key.removeprefix(f"{prefix}/")
            place.parent.mkdir(parents=True, exist_ok=True)
            self._s3.download_file(self._bucket, key, str(place))
        return target

    def holds(self, end: str) -> bool:
        """Whether there is an object whose name ends so."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return any(found["Key"].endswith(end) for page in pages for found in page.get("Contents", []))

    def _keys(self, prefix: str) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
        return [key for key in keys if key == prefix or key.startswith(f"{prefix}/")]
