"""Cached outputs: when an entry may be replaced, and what is remembered about it."""

from __future__ import annotations

from flyteidl2.cacheservice import cacheservice_pb2 as v1
from google.protobuf.message import DecodeError

from flyte_binary.db.rows import CacheRow
from flyte_binary.domain.errors import Internal
from flyte_binary.domain.timestamps import micros_to_proto, proto_to_micros


def may_replace(existing: CacheRow, wish: v1.OverwriteOutput, *, now: int) -> bool:
    """Only if the caller insists, or if the entry is older than the caller accepts. `now` is in microseconds."""
    if wish.overwrite:
        return True
    if not wish.HasField("max_age"):
        return False
    max_age = wish.max_age.seconds * 1_000_000 + wish.max_age.nanos // 1000
    return now - existing.updated_at > max_age


def make_row(key: str, output: v1.CachedOutput, existing: CacheRow | None, *, now: int) -> CacheRow:
    """The entry to store: created when the caller says, else when the replaced entry was, else now."""
    created_at = now
    if output.metadata.HasField("created_at"):
        created_at = proto_to_micros(output.metadata.created_at)
    elif existing is not None:
        created_at = existing.created_at
    metadata = v1.Metadata()
    metadata.CopyFrom(output.metadata)
    metadata.created_at.CopyFrom(micros_to_proto(created_at))
    metadata.last_updated_at.CopyFrom(micros_to_proto(now))
    return CacheRow(
        key=key,
        output_uri=output.output_uri,
        metadata=metadata.SerializeToString(),
        created_at=created_at,
        updated_at=now,
    )


def output_from_row(row: CacheRow) -> v1.CachedOutput:
    """Raises `Internal` if the stored metadata cannot be read.

    Entries that the executor wrote without metadata still tell when they were written.
    """
    output = v1.CachedOutput(output_uri=row.output_uri)
    try:
        output.metadata.MergeFromString(row.metadata or b"")
    except DecodeError as error:
        raise Internal(f"the metadata of cache entry {row.key} cannot be read") from error
    if not output.metadata.HasField("created_at"):
        output.metadata.created_at.CopyFrom(micros_to_proto(row.created_at))
    output.metadata.last_updated_at.CopyFrom(micros_to_proto(row.updated_at))
    return output
