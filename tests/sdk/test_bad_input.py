"""Requests that are wrong, on the real port: a specific error, nothing written, one line in the log, no traceback."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.sdk.sdk import Sdk, until
from tests.sdk.serving import Server
from tests.sdk.wire import CONTENT, DATA, RUNS, TASKS, UPLOAD, Watch, md5_of, post, settle, upload_url

# They look at the files of the store, and at signed URLs that lead to the server itself.
pytestmark = pytest.mark.parametrize("store", ["disk"], indirect=True)

PROJECT = {"name": "flytesnacks", "domain": "development"}
RUN = {"project": "flytesnacks", "domain": "development", "name": "no-such-run"}
LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Case:
    method: str
    body: dict[str, Any]
    code: str
    says: str
    """Must occur in the message: the field or the name that is wrong."""


CASES = {
    "no id at all": Case(f"{RUNS}/GetRunDetails", {}, "invalid_argument", "run_id"),
    "an action without a name": Case(
        f"{RUNS}/GetActionDetails", {"actionId": {"run": RUN}}, "invalid_argument", "name"
    ),
    "a run without a project": Case(f"{RUNS}/CreateRun", {"taskSpec": {}}, "invalid_argument", "project_id"),
    "a run without a task": Case(f"{RUNS}/CreateRun", {"projectId": PROJECT}, "invalid_argument", "task"),
    "a run of a task that nobody deployed": Case(
        f"{RUNS}/CreateRun",
        {"projectId": PROJECT, "taskId": {**RUN, "name": "no.task", "version": "v"}, "inputs": {}},
        "not_found",
        "no.task",
    ),
    "a run name that is too long": Case(
        f"{RUNS}/CreateRun", {"runId": {**RUN, "name": "x" * 64}, "taskSpec": {}}, "invalid_argument", "30"
    ),
    "a run name with a path in it": Case(
        f"{RUNS}/CreateRun", {"runId": {**RUN, "name": "../../etc"}, "taskSpec": {}}, "invalid_argument", "run_id.name"
    ),
    "a task name that is too long": Case(
        f"{TASKS}/DeployTask",
        {"taskId": {**RUN, "name": "x" * 300, "version": "v"}, "spec": {"taskTemplate": {}}},
        "invalid_argument",
        "name",
    ),
    "a run that is not there": Case(f"{RUNS}/GetRunDetails", {"runId": RUN}, "not_found", "no-such-run"),
    "aborting a run that is not there": Case(f"{RUNS}/AbortRun", {"runId": RUN}, "not_found", "no-such-run"),
    "an unknown project": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "project": "nowhere"}, "not_found", "nowhere"
    ),
    "an unknown domain": Case(f"{DATA}/CreateUploadLocation", {**UPLOAD, "domain": "mars"}, "not_found", "mars"),
    "a filename that leads elsewhere": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "filename": "../../../etc/passwd"}, "invalid_argument", "filename"
    ),
    "a filename_root that leads elsewhere": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "filenameRoot": "../.."}, "invalid_argument", "filename_root"
    ),
    "a project that leads elsewhere": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "project": "../x"}, "invalid_argument", "project"
    ),
    "an MD5 that is none": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "contentMd5": "YWJj"}, "invalid_argument", "content_md5"
    ),
    "a file that is too large": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "contentLength": str(2**40)}, "invalid_argument", "content_length"
    ),
    "a link for longer than allowed": Case(
        f"{DATA}/CreateUploadLocation", {**UPLOAD, "expiresIn": "86400s"}, "invalid_argument", "expires_in"
    ),
    "inputs that lie elsewhere": Case(
        f"{RUNS}/CreateRun",
        {
            "projectId": PROJECT,
            "offloadedInputData": {"uri": "/etc/passwd", "inputsHash": "x"},
            "taskSpec": {"taskTemplate": {"id": {**RUN, "name": "t", "version": "v"}, "container": {"args": ["a0"]}}},
        },
        "invalid_argument",
        "offloaded_input_data",
    ),
    "a signal to what is not there": Case(
        f"{RUNS}/SignalEvent",
        {"actionId": {"run": RUN, "name": "c"}, "parentActionName": "a0", "payload": {"boolValue": True}},
        "not_found",
        "no-such-run",
    ),
    "a filter that nobody knows": Case(
        f"{RUNS}/ListRuns",
        {"projectId": PROJECT, "request": {"filters": [{"field": "colour", "values": ["red"]}]}},
        "invalid_argument",
        "colour",
    ),
    "a page token that is none of ours": Case(
        f"{RUNS}/ListRuns", {"projectId": PROJECT, "request": {"token": "not a token"}}, "invalid_argument", "token"
    ),
}


@pytest.fixture
def watch(server: Server, sdk: Sdk) -> Watch:
    """Once nothing else is going on."""
    settle(server)
    return Watch(server)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_wrong_request_is_told_what_is_wrong(server: Server, watch: Watch, case: Case) -> None:
    answer = post(server, case.method, case.body)

    assert answer.json()["code"] == case.code, answer.text
    assert case.says in answer.json()["message"], answer.text
    watch.nothing_was_written()
    assert watch.one_line()["code"] == case.code


@pytest.mark.parametrize(
    ("content", "content_type", "encoding"),
    [
        (b"{", "application/json", "identity"),
        (b'{"runId": 7}', "application/json", "identity"),
        (b"\xff\xfe", "application/json", "identity"),
        (b"\xff\xff\xff\xff", "application/proto", "identity"),
        (b"\x0a\x7fshort", "application/proto", "identity"),
        (b"no gzip", "application/proto", "gzip"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(
    server: Server, watch: Watch, content: bytes, content_type: str, encoding: str
) -> None:
    answer = post(server, f"{RUNS}/CreateRun", content, **{"content-type": content_type, "content-encoding": encoding})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument"), answer.text
    assert len(answer.json()["message"]) > 10
    watch.nothing_was_written()
    assert watch.one_line()["code"] == "invalid_argument"


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_body_over_the_limit_is_refused(server: Server, watch: Watch, encoding: str) -> None:
    """Of a compressed one its size after decompression counts."""
    content = b" " * (LIMIT_BYTES + 1)
    if encoding == "gzip":
        content = gzip.compress(content, 1)
    answer = post(server, f"{DATA}/UploadInputs", content, **{"content-encoding": encoding})

    assert answer.json()["code"] == "resource_exhausted", answer.text
    assert str(LIMIT_BYTES) in answer.json()["message"]
    watch.nothing_was_written()
    assert watch.one_line()["code"] == "resource_exhausted"


def test_a_type_of_content_that_nobody_speaks_is_refused(server: Server) -> None:
    assert post(server, f"{RUNS}/CreateRun", b"x", **{"content-type": "text/plain"}).status_code == 415


def test_a_method_that_does_not_exist_is_unimplemented(server: Server) -> None:
    answer = post(server, f"{RUNS}/Fly", {})
    assert (answer.status_code, answer.json()["code"]) == (501, "unimplemented")


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (r"/a\.txt", "/b.txt"),
        (r"\?.*", ""),
        (r"sig=....", "sig=0000"),
        (r"expires=\d", "expires=9"),
        (r"/a\.txt", "/%2e%2e/%2e%2e/a.txt"),
    ],
    ids=["another file", "no signature", "another signature", "a later end", "a path above"],
)
def test_an_altered_signed_url_is_refused(server: Server, watch: Watch, part: str, instead: str) -> None:
    url = upload_url(server)["signedUrl"]
    altered = re.sub(part, instead, url)
    assert altered != url
    answer = httpx.put(altered, content=CONTENT, headers={"Content-MD5": md5_of(CONTENT)})

    assert (answer.status_code, "altered" in answer.text) == (403, True), answer.text
    watch.nothing_was_written()
    assert watch.one_line()["status"] == 403


def test_an_expired_signed_url_is_refused(server: Server, watch: Watch) -> None:
    location = upload_url(server, expiresIn="0.001s")
    expires = datetime.fromisoformat(location["expiresAt"])
    until(lambda: datetime.now(UTC) > expires, "it has expired")
    answer = httpx.put(location["signedUrl"], content=CONTENT, headers=location["headers"])

    assert (answer.status_code, "expired" in answer.text) == (403, True), answer.text
    watch.nothing_was_written()
    assert watch.one_line()["status"] == 403


def test_content_of_another_md5_is_refused(server: Server, watch: Watch) -> None:
    location = upload_url(server)
    answer = httpx.put(location["signedUrl"], content=b"other content", headers=location["headers"])

    assert (answer.status_code, "MD5" in answer.text) == (400, True), answer.text
    watch.nothing_was_written()
    assert watch.one_line()["status"] == 400
