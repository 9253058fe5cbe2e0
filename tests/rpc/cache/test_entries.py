"""Get, Put and Delete of cached outputs."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2
from flyteidl2.cacheservice.v2.cacheservice_connect import CacheServiceClient
from flyteidl2.core import literals_pb2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.db.database import Database
from flyte_binary.db.rows import CacheRow
from flyte_binary.domain import topics
from flyte_binary.domain.cache_entries import KEY_LIMIT, stored_key
from flyte_binary.live.hub import Hub
from tests.fakes.manual_clock import ManualClock

PROJECT = v2.Identifier(org="local", project="flytesnacks", domain="development")


def get(key: str = "k", identifier: v2.Identifier = PROJECT) -> v2.GetCacheRequest:
    return v2.GetCacheRequest(base_request=v1.GetCacheRequest(key=key), identifier=identifier)


def put(
    uri: str = "/store/1/outputs.pb",
    *,
    key: str = "k",
    identifier: v2.Identifier = PROJECT,
    overwrite: v1.OverwriteOutput | None = None,
    metadata: v1.Metadata | None = None,
) -> v2.PutCacheRequest:
    output = v1.CachedOutput(output_uri=uri, metadata=metadata)
    return v2.PutCacheRequest(
        base_request=v1.PutCacheRequest(key=key, output=output, overwrite=overwrite), identifier=identifier
    )


async def refused(call: object, code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call  # type: ignore[misc]  # the client's coroutine
    assert caught.value.code is code
    return caught.value.message


async def test_what_was_put_is_got_with_its_metadata_and_times(cache: CacheServiceClient, clock: ManualClock) -> None:
    metadata = v1.Metadata(key_map=v1.KeyMapMetadata(values={"task-version": "v1"}))

    await cache.put(put(metadata=metadata))
    output = (await cache.get(get())).output

    assert output.output_uri == "/store/1/outputs.pb"
    assert output.metadata.key_map.values == {"task-version": "v1"}
    assert output.metadata.created_at.ToMicroseconds() == clock.now()
    assert output.metadata.last_updated_at.ToMicroseconds() == clock.now()


async def test_a_key_that_was_never_put_is_not_found(cache: CacheServiceClient) -> None:
    assert "'k'" in await refused(cache.get(get()), Code.NOT_FOUND)


async def test_an_entry_without_an_identifier_is_one_of_no_project(cache: CacheServiceClient) -> None:
    await cache.put(put(identifier=v2.Identifier()))

    without = v2.GetCacheRequest(base_request=v1.GetCacheRequest(key="k"))
    assert (await cache.get(without)).output.output_uri == "/store/1/outputs.pb"
    await refused(cache.get(get()), Code.NOT_FOUND)


async def test_the_organisation_does_not_count(cache: CacheServiceClient) -> None:
    await cache.put(put())

    other = v2.Identifier(org="127", project="flytesnacks", domain="development")
    assert (await cache.get(get(identifier=other))).output.output_uri


async def test_projects_whose_names_join_alike_do_not_share_entries(cache: CacheServiceClient) -> None:
    await cache.put(put(identifier=v2.Identifier(project="a-b", domain="c")))

    await refused(cache.get(get(identifier=v2.Identifier(project="a", domain="b-c"))), Code.NOT_FOUND)


async def test_a_second_put_is_refused_and_changes_nothing(cache: CacheServiceClient) -> None:
    await cache.put(put("/store/1/outputs.pb"))

    await refused(cache.put(put("/store/2/outputs.pb")), Code.ALREADY_EXISTS)

    assert (await cache.get(get())).output.output_uri == "/store/1/outputs.pb"


async def test_overwriting_keeps_the_time_of_creation(cache: CacheServiceClient, clock: ManualClock) -> None:
    await cache.put(put("/store/1/outputs.pb"))
    created = clock.now()
    clock.advance(seconds=60)

    await cache.put(put("/store/2/outputs.pb", overwrite=v1.OverwriteOutput(overwrite=True)))

    output = (await cache.get(get())).output
    assert output.output_uri == "/store/2/outputs.pb"
    assert output.metadata.created_at.ToMicroseconds() == created
    assert output.metadata.last_updated_at.ToMicroseconds() == clock.now()


async def test_the_time_of_creation_that_a_caller_gives_stands(cache: CacheServiceClient) -> None:
    given = v1.Metadata(created_at=Timestamp(seconds=1_600_000_000))

    await cache.put(put(metadata=given))

    assert (await cache.get(get())).output.metadata.created_at.seconds == 1_600_000_000


@pytest.mark.parametrize(("age_seconds", "replaced"), [(59, False), (60, False), (61, True)])
async def test_an_entry_older_than_the_caller_accepts_is_replaced(
    cache: CacheServiceClient, clock: ManualClock, age_seconds: int, replaced: bool
) -> None:
    await cache.put(put("/store/1/outputs.pb"))
    clock.advance(seconds=age_seconds)
    again = put("/store/2/outputs.pb", overwrite=v1.OverwriteOutput(max_age=Duration(seconds=60)))

    if replaced:
        await cache.put(again)
    else:
        await refused(cache.put(again), Code.ALREADY_EXISTS)

    assert (await cache.get(get())).output.output_uri == f"/store/{2 if replaced else 1}/outputs.pb"


async def test_a_deleted_entry_is_gone_and_a_second_delete_is_not_found(cache: CacheServiceClient) -> None:
    await cache.put(put())
    request = v2.DeleteCacheRequest(base_request=v1.DeleteCacheRequest(key="k"), identifier=PROJECT)

    await cache.delete(request)

    await refused(cache.get(get()), Code.NOT_FOUND)
    await refused(cache.delete(request), Code.NOT_FOUND)


async def test_a_new_entry_is_announced_under_its_stored_key(cache: CacheServiceClient, hub: Hub) -> None:
    with hub.subscribe(topics.CACHE) as subscription:
        await cache.put(put())

        assert subscription.take() == {(stored_key("flytesnacks", "development", "k"),)}


async def test_a_refused_put_is_not_announced(cache: CacheServiceClient, hub: Hub) -> None:
    await cache.put(put())
    with hub.subscribe(topics.CACHE) as subscription:
        await refused(cache.put(put()), Code.ALREADY_EXISTS)

        assert subscription.take() == set()


async def test_what_the_executor_stored_is_served_without_metadata_of_its_own(
    cache: CacheServiceClient, database: Database, clock: ManualClock
) -> None:
    key = stored_key("flytesnacks", "development", "k")
    row = CacheRow(
        key=key, output_uri="/o/outputs.pb", metadata=None, created_at=clock.now() - 5, updated_at=clock.now()
    )
    await database.write(lambda tx: tx.cache.put(row))

    output = (await cache.get(get())).output

    assert output.output_uri == "/o/outputs.pb"
    assert output.metadata.created_at.ToMicroseconds() == clock.now() - 5
    assert output.metadata.last_updated_at.ToMicroseconds() == clock.now()


async def test_a_key_that_just_fits_is_stored_and_one_character_more_is_refused(cache: CacheServiceClient) -> None:
    longest = KEY_LIMIT - len("flytesnacks/development/")

    await cache.put(put(key="k" * longest))

    assert "base_request.key" in await refused(cache.put(put(key="k" * (longest + 1))), Code.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (put(key=""), "base_request.key"),
        (put(key="a\0b"), "base_request.key"),
        (put(uri=""), "base_request.output.output_uri"),
        (put(uri="/a\0b"), "base_request.output.output_uri"),
        (put(identifier=v2.Identifier(project="a/b")), "identifier.project"),
        (put(identifier=v2.Identifier(domain="a/b")), "identifier.domain"),
        (put(metadata=v1.Metadata(created_at=Timestamp(seconds=2**62))), "metadata.created_at"),
        (v2.PutCacheRequest(identifier=PROJECT), "base_request.key"),
        (
            v2.PutCacheRequest(
                base_request=v1.PutCacheRequest(
                    key="k", output=v1.CachedOutput(output_literals=literals_pb2.LiteralMap())
                )
            ),
            "output_literals",
        ),
    ],
)
async def test_a_put_that_cannot_be_stored_names_the_field(
    cache: CacheServiceClient, request_: v2.PutCacheRequest, field: str
) -> None:
    assert field in await refused(cache.put(request_), Code.INVALID_ARGUMENT)
