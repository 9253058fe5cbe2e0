from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.app import app_definition_pb2
from flyteidl2.cluster.payload_pb2 import SelectClusterRequest
from flyteidl2.common import identifier_pb2
from flyteidl2.core import tasks_pb2
from flyteidl2.dataproxy.dataproxy_service_pb2 import (
    ARTIFACT_TYPE_CODE_BUNDLE,
    ARTIFACT_TYPE_REPORT,
    CreateDownloadLinkRequest,
    CreateDownloadLinkResponse,
)
from flyteidl2.imagebuilder.definition_pb2 import ImageIdentifier
from flyteidl2.imagebuilder.payload_pb2 import GetImageRequest
from flyteidl2.task import task_definition_pb2
from google.protobuf.duration_pb2 import Duration

from flyte_binary.domain.ids import ActionId, TaskId
from tests.rpc.dataproxy.conftest import ORIGIN, World

ACTION = ActionId("flytesnacks", "development", "r1", "a0")
TASK = TaskId("flytesnacks", "development", "env.main", "v1")


def of_attempt(kind: int, number: int = 1, **fields: Any) -> CreateDownloadLinkRequest:
    source = identifier_pb2.ActionAttemptIdentifier(action_id=ACTION.to_proto(), attempt=number)
    return CreateDownloadLinkRequest(artifact_type=kind, action_attempt_id=source, **fields)  # type: ignore[arg-type]


def of_task(kind: int = ARTIFACT_TYPE_CODE_BUNDLE) -> CreateDownloadLinkRequest:
    return CreateDownloadLinkRequest(artifact_type=kind, task_id=TASK.to_proto())  # type: ignore[arg-type]


async def refusal(world: World, request: CreateDownloadLinkRequest) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        await world.client.create_download_link(request)
    return caught.value


async def downloaded(world: World, answer: CreateDownloadLinkResponse) -> bytes:
    (url,) = answer.pre_signed_urls.signed_url
    assert url.startswith(f"{ORIGIN}/")
    got = await world.http.get(url)
    assert got.status_code == 200
    return got.content


async def test_the_report_of_an_attempt_can_be_downloaded(world: World) -> None:
    uri = f"{world.store.base_uri}/r1/a0/1/report.html"
    await world.store.put(uri, b"<h1>report</h1>")
    world.actions.update(ACTION.attempt(1), report_uri=uri)
    answer = await world.client.create_download_link(of_attempt(ARTIFACT_TYPE_REPORT))
    assert await downloaded(world, answer) == b"<h1>report</h1>"


async def test_the_code_of_an_attempt_and_of_a_task_can_be_downloaded(world: World) -> None:
    uri = f"{world.store.base_uri}/uploads/fast1.tar.gz"
    await world.store.put(uri, b"tar")
    world.actions.update(ACTION.attempt(2), bundle_uri=uri)
    container = tasks_pb2.Container(args=["a0", "--tgz", uri])
    world.tasks.specs[TASK] = task_definition_pb2.TaskSpec(task_template=tasks_pb2.TaskTemplate(container=container))
    for request in (of_attempt(ARTIFACT_TYPE_CODE_BUNDLE, 2), of_task()):
        assert await downloaded(world, await world.client.create_download_link(request)) == b"tar"


async def test_a_link_lives_as_long_as_asked_but_never_longer_than_the_limit(world: World) -> None:
    uri = f"{world.store.base_uri}/report.html"
    await world.store.put(uri, b"")
    world.actions.update(ACTION.attempt(1), report_uri=uri)
    now = world.clock.now.replace(tzinfo=None)
    for asked, given in ((60, 60), (7200, 3600), (None, 3600)):
        fields = {} if asked is None else {"expires_in": Duration(seconds=asked)}
        answer = await world.client.create_download_link(of_attempt(ARTIFACT_TYPE_REPORT, **fields))
        assert answer.pre_signed_urls.expires_at.ToDatetime() - now == timedelta(seconds=given)
    error = await refusal(world, of_attempt(ARTIFACT_TYPE_REPORT, expires_in=Duration(seconds=-1)))
    assert error.code == Code.INVALID_ARGUMENT


async def test_what_is_not_there_is_named(world: World) -> None:
    world.actions.update(ACTION.attempt(1), report_uri=f"{world.store.base_uri}/none/report.html")
    cases = [
        (of_attempt(ARTIFACT_TYPE_REPORT), "a report of attempt 1"),
        (of_attempt(ARTIFACT_TYPE_CODE_BUNDLE), "a code bundle of action flytesnacks/development/r1/a0"),
        (of_attempt(ARTIFACT_TYPE_REPORT, 2), "attempt 2 of action flytesnacks/development/r1/a0"),
        (of_task(), 'task "env.main" in version "v1"'),
    ]
    for request, words in cases:
        error = await refusal(world, request)
        assert error.code == Code.NOT_FOUND
        assert words in error.message


async def test_requests_without_a_meaning_are_told_why(world: World) -> None:
    app = CreateDownloadLinkRequest(
        artifact_type=ARTIFACT_TYPE_CODE_BUNDLE, app_id=app_definition_pb2.Identifier(name="a")
    )
    cases = [
        (CreateDownloadLinkRequest(), Code.INVALID_ARGUMENT, "artifact_type is required"),
        (of_attempt(17), Code.INVALID_ARGUMENT, "artifact_type is required"),
        (
            CreateDownloadLinkRequest(artifact_type=ARTIFACT_TYPE_REPORT),
            Code.INVALID_ARGUMENT,
            "action_attempt_id, app_id",
        ),
        (of_attempt(ARTIFACT_TYPE_REPORT, 0), Code.INVALID_ARGUMENT, "counted from 1"),
        (of_task(ARTIFACT_TYPE_REPORT), Code.INVALID_ARGUMENT, "a task has no report"),
        (app, Code.UNIMPLEMENTED, "apps"),
    ]
    for request, code, words in cases:
        error = await refusal(world, request)
        assert error.code == code
        assert words in error.message


async def test_a_task_cannot_name_a_file_of_the_server_as_its_code(world: World) -> None:
    metadata = tasks_pb2.TaskMetadata(code_bundle_uri="/etc/passwd")
    world.tasks.specs[TASK] = task_definition_pb2.TaskSpec(task_template=tasks_pb2.TaskTemplate(metadata=metadata))
    assert (await refusal(world, of_task())).code == Code.PERMISSION_DENIED


async def test_the_cluster_is_the_address_under_which_the_client_came(world: World) -> None:
    """Equal to the SDK's own endpoint, so that it keeps its session."""
    for operation in (1, 2, 3, 5, 6, 8, 9, 10):
        request = SelectClusterRequest(operation=operation)  # type: ignore[arg-type]
        assert (await world.cluster.select_cluster(request)).cluster_endpoint == ORIGIN
    answer = await world.cluster.select_cluster(SelectClusterRequest(), headers={"host": "flyte.example.com"})
    assert answer.cluster_endpoint == "http://flyte.example.com"


async def test_behind_a_proxy_that_is_not_trusted_the_answer_is_to_stay(world: World) -> None:
    headers = {"host": "flyte.example.com", "x-forwarded-proto": "https"}
    assert (await world.cluster.select_cluster(SelectClusterRequest(), headers=headers)).cluster_endpoint == ""


async def test_any_image_exists_under_a_local_name(world: World) -> None:
    for name in ("flyte:0123456789abcdef", "ghcr.io/org/image:py3.11-v2.12.1", "a/b@sha256:00"):
        answer = await world.images.get_image(GetImageRequest(id=ImageIdentifier(name=name), organization="127"))
        assert (answer.image.id.name, answer.image.fqin) == (name, f"local/{name}")


@pytest.mark.parametrize("name", ["", " ", "a b", "-rf", "a\nb", "x" * 256, "$(id)"])
async def test_what_is_no_image_name_is_refused(world: World, name: str) -> None:
    with pytest.raises(ConnectError, match=r"id\.name") as caught:
        await world.images.get_image(GetImageRequest(id=ImageIdentifier(name=name)))
    assert caught.value.code == Code.INVALID_ARGUMENT
