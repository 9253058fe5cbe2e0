"""Code that cannot be unpacked: the run fails and names it, nothing lands elsewhere, one line in the log."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import httpx
import pytest
from flyteidl2.workflow import run_service_pb2
from google.protobuf.message import Message

from tests.sdk.sdk import Sdk
from tests.sdk.serving import Server
from tests.sdk.stores import Store
from tests.sdk.wire import RUNS, Watch, files_below, md5_of, post, settle, upload_url

NO_TAR = b"this is no archive"


def _climbing_tar() -> bytes:
    """An archive with a file that would be unpacked outside of its folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../escaped.py")
        archive.addfile(member, io.BytesIO(b""))
    return packed.getvalue()


@pytest.mark.parametrize(("bundle", "says"), [(NO_TAR, "tar"), (_climbing_tar(), "escaped.py")], ids=["text", "climbs"])
def test_a_bundle_that_is_no_proper_tar_fails_the_run_with_its_name(
    server: Server, sdk: Sdk, bundle: bytes, says: str
) -> None:
    uri = _upload(server, bundle, name="fastbad.tar.gz")
    model = sdk.run("hello.main", name="model").run
    settle(server)
    watch = Watch(server)
    ended = sdk.finish(_run_with_bundle(server, model, uri))

    assert ended.phase == "failed"
    assert "fastbad.tar.gz" in ended.error and says in ended.error
    assert not [path for path in files_below(server.folder) if path.name == "escaped.py"]
    assert "fastbad.tar.gz" in watch.one_line()["reason"]


def test_a_bundle_outside_of_the_store_is_not_read(server: Server, sdk: Sdk, store: Store, tmp_path: Path) -> None:
    (tmp_path / "fast.tar.gz").write_bytes(NO_TAR)
    elsewhere = f"{store.base_uri}/uploads/../../../{tmp_path.name}/fast.tar.gz"
    model = sdk.run("hello.main", name="model").run
    settle(server)
    watch = Watch(server)
    ended = sdk.finish(_run_with_bundle(server, model, elsewhere))

    assert ended.phase == "failed"
    assert elsewhere in ended.error
    assert elsewhere in watch.one_line()["reason"]


def _upload(server: Server, content: bytes, name: str) -> str:
    location = upload_url(server, filename=name, contentMd5=md5_of(content))
    httpx.put(location["signedUrl"], content=content, headers=location["headers"]).raise_for_status()
    return location["nativeUrl"]


def _run_with_bundle(server: Server, model: str, uri: str) -> str:
    """Another run of what `model` ran, but of the code at `uri`."""
    details = run_service_pb2.GetRunDetailsResponse()
    request = run_service_pb2.GetRunDetailsRequest()
    request.run_id.project, request.run_id.domain, request.run_id.name = "flytesnacks", "development", model
    _call(server, f"{RUNS}/GetRunDetails", request, details)
    create = run_service_pb2.CreateRunRequest(run_spec=details.details.run_spec)
    create.project_id.name, create.project_id.domain = "flytesnacks", "development"
    create.task_spec.CopyFrom(details.details.action.task)
    arguments = create.task_spec.task_template.container.args
    arguments[list(arguments).index("--tgz") + 1] = uri
    create.inputs.SetInParent()
    created = run_service_pb2.CreateRunResponse()
    _call(server, f"{RUNS}/CreateRun", create, created)
    return created.run.action.id.run.name


def _call(server: Server, method: str, request: Message, response: Message) -> None:
    answer = post(server, method, request.SerializeToString(), **{"content-type": "application/proto"})
    assert answer.status_code == 200, answer.text
    response.ParseFromString(answer.content)
