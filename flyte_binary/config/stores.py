"""Which store a configuration means, and what it may be asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path

from flyte_binary.config.model import Config, StorageType, StoreAuth, StowConfig, StowKind


class StoreKind(Enum):
    """The schemes that mean it, the one for URIs of our own first."""

    DISK = ("file",)
    S3 = ("s3",)
    GCS = ("gs",)
    AZURE = ("abfs", "abfss")

    @property
    def scheme(self) -> str:
        return self.value[0]


SIGNED_PUT_LIMITS = {StoreKind.S3: 5 * 1024**3, StoreKind.AZURE: 5000 * 1024**2}
"""Bytes of the largest object that a single PUT may make there, and a signed URL is for a single PUT."""

SIGNED_URL_LIFETIMES = {
    StoreKind.S3: timedelta(days=7),
    StoreKind.GCS: timedelta(days=7),
    # A user delegation key lives a week, and begins a little before it is asked for.
    StoreKind.AZURE: timedelta(days=6),
}

_OF_STOW = {
    StowKind.S3: StoreKind.S3,
    StowKind.GOOGLE: StoreKind.GCS,
    StowKind.AZURE: StoreKind.AZURE,
    StowKind.LOCAL: StoreKind.DISK,
}
_OF_TYPE = {StorageType.LOCAL: StoreKind.DISK, StorageType.S3: StoreKind.S3, StorageType.MINIO: StoreKind.S3}


@dataclass(frozen=True, slots=True)
class StoreChoice:
    kind: StoreKind
    base_uri: str
    """On the local disk a plain absolute path, never `file://`, which the SDK misreads in a raw-data prefix. Without a
    slash at its end."""
    buckets: tuple[str, ...] = ()
    """Others that may be used as a whole."""


class WrongStorage(ValueError):
    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path = path
        """Of the setting that is wrong."""


def store_choice(config: Config) -> StoreChoice:
    """Raises `WrongStorage` for settings that contradict each other or name no place."""
    prefix, storage = config.runs.storage_prefix.rstrip("/"), config.storage
    scheme, separator, rest = prefix.partition("://")
    kind = _kind(config, scheme if separator else "")
    if separator and scheme not in kind.value:
        raise WrongStorage(
            "runs.storagePrefix",
            f"found a {scheme}:// address, but storage.type and storage.stow.kind mean {_shown(kind)}",
        )
    if kind is StoreKind.DISK:
        return StoreChoice(kind, _folder(config))
    if prefix and not separator:
        raise WrongStorage("runs.storagePrefix", f'found "{prefix}"; expected an address in {_shown(kind)}')
    bucket = rest.partition("/")[0]
    named = storage.metadata_container
    if prefix and named and bucket.partition("@")[0] != named:
        raise WrongStorage(
            "runs.storagePrefix",
            f'is in "{bucket}", but storage.metadataContainer says that everything goes to "{named}"; '
            "leave one of them out",
        )
    base = prefix or f"{kind.scheme}://{named or storage.container}"
    if base.endswith("://"):
        raise WrongStorage(
            "storage.metadataContainer", f"expected the name of a bucket, since storage.type means {_shown(kind)}"
        )
    others = (storage.container, *storage.allowed_containers)
    return StoreChoice(kind, base, tuple(name for name in others if name))


def signing_config(config: Config) -> StowConfig | None:
    """`storage.stow.config` as it is for signed URLs, or None if that is no different.

    Raises `WrongStorage` for a key or a value that is none.
    """
    override = config.storage.signed_url.stow_config_override
    return _overridden(config.storage.stow.config, override) if override else None


def _overridden(base: StowConfig, override: Mapping[str, str]) -> StowConfig:
    fields = {field.name: field for field in dataclasses.fields(StowConfig)}
    path = "storage.signedURL.stowConfigOverride"
    values: dict[str, object] = {}
    for key, text in override.items():
        name = key.lower().replace("-", "_")
        if name not in fields:
            raise WrongStorage(path, f'has a key "{key}"; known are those of storage.stow.config: {", ".join(fields)}')
        current = getattr(base, name)
        try:
            values[name] = _of_its_kind(name, current, text)
        except ValueError as error:
            raise WrongStorage(path, f'has "{text}" for {key}; expected another value') from error
    return dataclasses.replace(base, **values)  # pyright: ignore[reportArgumentType] -- each is made for its field


def _of_its_kind(name: str, current: object, text: str) -> object:
    if isinstance(current, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError("neither true nor false")
        return text.lower() == "true"
    if isinstance(current, StoreAuth):
        return StoreAuth(text.lower())
    if isinstance(current, int):
        return int(text)
    if isinstance(current, tuple):
        return tuple(item.strip() for item in text.split(","))
    return Path(text) if name.endswith("path") else text


def _kind(config: Config, scheme: str) -> StoreKind:
    storage = config.storage
    if storage.type in _OF_TYPE:
        return _OF_TYPE[storage.type]
    if storage.type is StorageType.STOW:
        return _OF_STOW[storage.stow.kind]
    if scheme:
        for kind in StoreKind:
            if scheme in kind.value:
                return kind
        raise WrongStorage(
            "runs.storagePrefix",
            f"found a {scheme}:// address; expected an absolute path, or s3://, gs:// or abfs:// and a bucket",
        )
    in_cloud = (storage.container or storage.metadata_container) and not config.runs.storage_prefix
    return _OF_STOW[storage.stow.kind] if in_cloud else StoreKind.DISK


def _folder(config: Config) -> str:
    prefix = config.runs.storage_prefix.removeprefix("file://").rstrip("/")
    folder = prefix or str(config.storage.stow.config.path or config.data_dir / "store")
    if not folder.startswith("/"):
        raise WrongStorage(
            "runs.storagePrefix", f'found "{prefix}"; expected an absolute path, such as "/var/lib/flyte/store"'
        )
    return folder


def _shown(kind: StoreKind) -> str:
    return "the local disk" if kind is StoreKind.DISK else f"a {kind.scheme}:// store"
