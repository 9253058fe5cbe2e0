"""The object store that the configuration means, and what else of the server depends on which one it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from starlette.routing import BaseRoute

from flyte_binary.composition.store_connections import azure_connection, gcs_connection, s3_connection
from flyte_binary.composition.store_environment import task_environment
from flyte_binary.config.model import Config
from flyte_binary.config.stores import StoreChoice, StoreKind, signing_config, store_choice
from flyte_binary.dataproxy.signed_routes import signed_routes
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import UrlSigner
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.threads import CLOUD_THREADS, StoreThreads


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStore:
    store: ObjectStore
    routes: Sequence[BaseRoute] = ()
    """Where signed URLs lead that lead to this server."""
    task_environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables by which tasks of this machine reach the store."""


class CloudStore(ObjectStore, Protocol):
    async def prepare(self) -> None: ...

    def close(self) -> None: ...


async def open_store(
    config: Config, signer: UrlSigner, stack: AsyncExitStack, environ: Mapping[str, str]
) -> OpenedStore:
    """Tried out, and closed with `stack`. Raises `FlyteError` with a sentence for a store that cannot be used."""
    choice = store_choice(config)
    if choice.kind is StoreKind.DISK:
        disk = DiskStore(Path(choice.base_uri), signer)
        await disk.prepare()
        stack.callback(disk.close)
        routes = signed_routes(disk, signer, max_upload_bytes=config.dataproxy.upload.max_size_bytes)
        return OpenedStore(store=disk, routes=routes)
    store = _cloud_store(config, choice)
    stack.callback(store.close)
    await store.prepare()
    return OpenedStore(store=store, task_environment=task_environment(config, choice, environ))


def _cloud_store(config: Config, choice: StoreChoice) -> CloudStore:
    makers: dict[StoreKind, tuple[str, Callable[[Config, StoreChoice], CloudStore]]] = {
        StoreKind.S3: ("s3", _s3_store),
        StoreKind.GCS: ("gcs", _gcs_store),
        StoreKind.AZURE: ("azure", _azure_store),
    }
    extra, make = makers[choice.kind]
    try:
        return make(config, choice)
    except ModuleNotFoundError as error:
        raise FailedPrecondition(
            f"a {choice.kind.scheme}:// store needs a part that is not installed ({error.name}): "
            f"pip install 'flyte-binary[{extra}]'"
        ) from error


def _s3_store(config: Config, choice: StoreChoice) -> CloudStore:
    # The SDK of a cloud takes half a second and tens of megabytes that the other stores can do without.
    from flyte_binary.storage.s3.store import S3Store  # noqa: PLC0415

    signing = signing_config(config)
    return S3Store(
        _buckets(config, choice),
        s3_connection(config, config.storage.stow.config),
        signing=None if signing is None else s3_connection(config, signing),
        threads=StoreThreads(CLOUD_THREADS),
    )


def _gcs_store(config: Config, choice: StoreChoice) -> CloudStore:
    from flyte_binary.storage.gcs.store import GcsStore  # noqa: PLC0415  # as above

    signing = signing_config(config)
    return GcsStore(
        _buckets(config, choice),
        gcs_connection(config.storage.stow.config),
        signing=None if signing is None else gcs_connection(signing),
        threads=StoreThreads(CLOUD_THREADS),
    )


def _azure_store(config: Config, choice: StoreChoice) -> CloudStore:
    from flyte_binary.storage.azure.store import AzureStore  # noqa: PLC0415  # as above

    signing = signing_config(config)
    connection = azure_connection(choice, config.storage.stow.config)
    return AzureStore(
        replace(_buckets(config, choice), account_host=connection.host_in_uris),
        connection,
        signing=None if signing is None else azure_connection(choice, signing),
        threads=StoreThreads(CLOUD_THREADS),
    )


def _buckets(config: Config, choice: StoreChoice) -> Buckets:
    return Buckets(
        schemes=choice.kind.value,
        base_uri=choice.base_uri,
        also_allowed=choice.buckets,
        any_allowed=config.storage.enable_multicontainer,
    )
