from __future__ import annotations

import base64
import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.dataproxy.dataproxy_service_pb2 import CreateUploadLocationRequest
from google.protobuf.duration_pb2 import Duration

from tests.rpc.dataproxy.conftest import MAX_UPLOAD_BYTES, ORIGIN, World

CONTENT = b"the content"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).digest()
MD5_HEADER = base64.b64encode(MD5).decode()


def asked(**fields: Any) -> CreateUploadLocationRequest:
    given = {"project": "flytesnacks", "domain": "development", "filename": "a.txt", "content_md5": MD5, **fields}
    return CreateUploadLocationRequest(**given)


def objects(world: World) -> list[str]:
    root = Path(world.store.base_uri)
    return [str(path) for path in root.rglob("*") if path.is_file()]


async def refusal(world: World, request: CreateUploadLocationRequest) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        await world.client.create_upload_location(request)
    return caught.value


async def test_the_sdk_uploads_a_bundle_and_finds_it_under_its_native_url(world: World) -> None:
    request = asked(filename="fast1.tar.gz", expires_in=Duration(seconds=900), add_content_md5_metadata=True, org="127")
    answer = await world.client.create_upload_location(request)
    assert answer.signed_url.startswith(f"{ORIGIN}/")
    assert dict(answer.headers) == {"Content-MD5": MD5_HEADER}
    assert answer.expires_at.ToDatetime() == world.clock.now.replace(tzinfo=None) + timedelta(seconds=900)
    headers = {**answer.headers, "Content-Length": str(len(CONTENT)), "Content-MD5": MD5_HEADER}
    put = await world.http.put(answer.signed_url, content=CONTENT, headers=headers)
    assert put.status_code == 200
    assert await world.store.get(answer.native_url, limit_bytes=100) == CONTENT
    assert answer.native_url.startswith(f"{world.store.base_uri}/uploads/flytesnacks/development/")


async def test_the_same_content_gets_the_same_place_and_may_be_sent_again(world: World) -> None:
    first = await world.client.create_upload_location(asked())
    second = await world.client.create_upload_location(asked())
    assert first.native_url == second.native_url
    for answer in (first, second, first):
        assert (await world.http.put(answer.signed_url, content=CONTENT)).status_code == 200
    assert objects(world) == [first.native_url]


async def test_a_root_stands_in_the_native_url_as_it_was_sent(world: World) -> None:
    """`upload_dir` of the SDK cuts the URL there."""
    for root in ("0a1b2c", "tracked-runs/r1/a0", "with space/ü", "100%/a+b"):
        answer = await world.client.create_upload_location(asked(filename_root=root))
        assert answer.native_url == f"{world.store.base_uri}/uploads/flytesnacks/development/{root}/a.txt"
        assert (await world.http.put(answer.signed_url, content=CONTENT)).status_code == 200
        assert await world.store.get(answer.native_url, limit_bytes=100) == CONTENT


@pytest.mark.parametrize(
    "name", ["späße 数据.txt", "a b", "100%", "a?b#c&d=e", "%2e%2e", "..a", "-rf", "a\\b", "sub/a.txt"]
)
async def test_odd_names_are_stored_under_just_that_name(world: World, name: str) -> None:
    answer = await world.client.create_upload_location(asked(filename=name))
    assert answer.native_url.endswith(f"/{name}")
    assert (await world.http.put(answer.signed_url, content=CONTENT)).status_code == 200
    assert objects(world) == [answer.native_url]


@pytest.mark.parametrize("field", ["filename", "filename_root", "project", "domain"])
@pytest.mark.parametrize(
    "value", ["../../e.txt", "..", "a/../b", ".", "a//b", "/etc/passwd", "a\nb", "a\0b", "a\x7fb", "x" * 256]
)
async def test_names_that_lead_elsewhere_are_refused_with_the_field(world: World, field: str, value: str) -> None:
    error = await refusal(world, asked(**{field: value}))
    assert error.code == Code.INVALID_ARGUMENT
    assert field in error.message
    assert objects(world) == []


async def test_a_key_that_no_store_takes_is_refused(world: World) -> None:
    error = await refusal(world, asked(filename_root="/".join(["x" * 200] * 6)))
    assert (error.code, "too long" in error.message) == (Code.INVALID_ARGUMENT, True)


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"content_md5": b""}, Code.INVALID_ARGUMENT, "either filename_root or content_md5"),
        ({"content_md5": b"short"}, Code.INVALID_ARGUMENT, "content_md5 has 5 bytes"),
        ({"expires_in": Duration(seconds=7200)}, Code.INVALID_ARGUMENT, "expires_in is 7200 s; the most is 3600 s"),
        ({"expires_in": Duration(seconds=0)}, Code.INVALID_ARGUMENT, "above zero"),
        ({"expires_in": Duration(seconds=-5)}, Code.INVALID_ARGUMENT, "above zero"),
        ({"expires_in": Duration(seconds=10**12)}, Code.INVALID_ARGUMENT, "expires_in"),
        ({"content_length": 2**40}, Code.INVALID_ARGUMENT, "content_length is 1099511627776 bytes"),
        ({"content_length": -1}, Code.INVALID_ARGUMENT, "negative"),
        ({"project": ""}, Code.INVALID_ARGUMENT, "project"),
        ({"domain": ""}, Code.INVALID_ARGUMENT, "domain"),
        ({"project": "nope"}, Code.NOT_FOUND, 'project "nope" not found'),
        ({"domain": "nope"}, Code.NOT_FOUND, "this server has development, production, staging"),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(
    world: World, fields: dict[str, Any], code: Code, words: str
) -> None:
    error = await refusal(world, asked(**fields))
    assert error.code == code
    assert words in error.message


async def test_an_empty_request_is_an_invalid_one(world: World) -> None:
    assert (await refusal(world, CreateUploadLocationRequest())).code == Code.INVALID_ARGUMENT


async def test_without_a_filename_the_object_still_gets_a_name(world: World) -> None:
    by_md5 = await world.client.create_upload_location(asked(filename=""))
    assert (await world.http.put(by_md5.signed_url, content=CONTENT)).status_code == 200
    named = await world.client.create_upload_location(asked(filename="a.txt"))
    assert (await world.http.put(named.signed_url, content=CONTENT)).status_code == 200
    assert by_md5.native_url != named.native_url
    by_root = await world.client.create_upload_location(asked(filename="", filename_root="root", content_md5=b""))
    assert "/root/" in by_root.native_url
    assert not by_root.headers


async def test_an_object_under_a_chosen_name_is_not_overwritten_by_other_content(world: World) -> None:
    answer = await world.client.create_upload_location(asked(filename_root="root"))
    await world.http.put(answer.signed_url, content=CONTENT)
    again = await world.client.create_upload_location(asked(filename_root="root"))
    assert again.native_url == answer.native_url
    for other in (b"o" * 16, b""):
        error = await refusal(world, asked(filename_root="root", content_md5=other))
        assert error.code == Code.ALREADY_EXISTS


async def test_the_url_leads_to_wherever_the_client_reached_the_server(world: World) -> None:
    answer = await world.client.create_upload_location(asked(), headers={"host": "flyte.example.com:8443"})
    assert answer.signed_url.startswith("http://flyte.example.com:8443/")


async def test_content_larger_than_the_limit_is_refused_although_its_length_was_not_announced(world: World) -> None:
    content = b"x" * (MAX_UPLOAD_BYTES + 1)
    md5 = hashlib.md5(content, usedforsecurity=False).digest()
    answer = await world.client.create_upload_location(asked(content_md5=md5))
    put = await world.http.put(answer.signed_url, content=content)
    assert put.status_code == 413
    assert objects(world) == []
