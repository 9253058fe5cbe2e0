"""What the normaliser takes out, and what it must leave alone."""

from __future__ import annotations

import json

import pytest

from tests.golden import scenarios
from tests.golden.distil import FIXTURES
from tests.golden.normalise import ONE_OF_EACH, SAME_TASK, Ids, Json, normalise, value_of

RUN = "r9nfsg8v7rn75bklvms6"
CHILD = "5g4s5ph8n2cyfjlernrsqsbu2"


def call(**fields: Json) -> Json:
    return {"from": "sdk", "method": "flyteidl2.x.S/M", "request": {}, **fields}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("startTime", "2026-11-30T22:51:04.420095Z", "<time>"),
        ("durationMs", "3001", "<duration>"),
        ("outputUri", "s3://bucket/5b/p/d/run/a0/1/outputs.pb", "<uri */outputs.pb>"),
        ("outputUri", "/data/blobs/p/d/run/a0/2/outputs.pb", "<uri */outputs.pb>"),
        ("outputUri", "file:///data/p/d/run/a0/2", "<uri */2>"),
        ("uri", "s3://bucket/uploads/offloaded-inputs/y_Kc5IQiIyU", "<uri>"),
        ("clusterEndpoint", "http://flyte.test:8090", "<url>"),
        ("version", "5813e33b341d1e76899aa9d25d217694", "<version>"),
        ("version", "v1", "v1"),
        ("org", "10", "<org>"),
        ("inputsHash", "y_Kc5IQiIyU", "<hash>"),
        ("name", "trigenv.fail", "trigenv.fail"),
        ("stringValue", "hello golden", "hello golden"),
        ("phase", "ACTION_PHASE_FAILED", "ACTION_PHASE_FAILED"),
        ("attempts", 3, 3),
        ("total", 6, "<count>"),
    ],
)
def test_a_volatile_value_becomes_a_typed_placeholder_and_others_stay(key: str, value: Json, expected: Json) -> None:
    assert value_of({key: value}, Ids()) == {key: expected}


def test_generated_names_are_numbered_in_order_of_first_appearance_over_the_whole_conversation() -> None:
    calls = [
        call(request={"runId": {"name": RUN}}, response={"name": "rsecondrun0123456789"}),
        call(request={"id": {"run": {"name": RUN}, "name": CHILD}}, response={"parent": "a0"}),
    ]
    first, second = normalise(calls)
    assert (first["request"], first["response"]) == ({"runId": {"name": "<run:1>"}}, {"name": "<run:2>"})
    assert second["request"] == {"id": {"run": {"name": "<run:1>"}, "name": "<action:1>"}}
    assert second["response"] == {"parent": "a0"}


def test_names_inside_a_message_of_a_failed_task_are_replaced_and_its_words_stay() -> None:
    info = {"message": f"[{RUN}-a0-0] terminated with exit code (3)", "kind": "KIND_USER"}
    [cleaned] = normalise([call(response={"errorInfo": info})])
    assert cleaned["response"]["errorInfo"]["message"] == "[<run:1>-a0-0] terminated with exit code (3)"


def test_of_an_error_the_code_stays_and_the_words_go() -> None:
    [cleaned] = normalise([call(error={"code": "not_found", "message": "run not found: x"}, http=404)])
    assert cleaned["error"] == {"code": "not_found", "message": "<text>"}
    assert cleaned["http"] == 404


def test_a_missing_field_stays_missing() -> None:
    [cleaned] = normalise([call(response={"status": {"phase": "ACTION_PHASE_RUNNING"}})])
    assert cleaned["response"] == {"status": {"phase": "ACTION_PHASE_RUNNING"}}


def test_equal_messages_that_follow_each_other_on_a_stream_become_one_and_order_stays() -> None:
    def update(phase: str, at: float) -> Json:
        return {"ms": at, "msg": {"actionUpdate": {"phase": phase}}}

    stream = [
        update("QUEUED", 1.0),
        update("QUEUED", 2.0),
        update("RUNNING", 3.0),
        update("QUEUED", 4.0),
        {"ms": 5, "end": {}},
    ]
    [cleaned] = normalise([call(stream=stream, closed_by="server")])
    phases = [entry["msg"]["actionUpdate"]["phase"] for entry in cleaned["stream"][:-1]]
    assert phases == ["QUEUED", "RUNNING", "QUEUED"]
    assert cleaned["stream"][-1] == {"end": {}}


def test_an_unchanged_task_in_a_watch_is_written_once() -> None:
    def details(phase: str) -> Json:
        return {"msg": {"details": {"task": {"shortName": "t"}, "status": {"phase": phase}}}}

    [cleaned] = normalise([call(stream=[details("A"), details("B")])])
    assert [entry["msg"]["details"]["task"] for entry in cleaned["stream"]] == [{"shortName": "t"}, SAME_TASK]


def test_a_list_of_all_runs_becomes_one_sample_of_each_phase() -> None:
    def run(name: str, phase: str) -> Json:
        return {"action": {"id": {"name": name}, "status": {"phase": phase, "attempts": 1}}}

    runs = [run("a", "ACTION_PHASE_SUCCEEDED"), run("b", "ACTION_PHASE_SUCCEEDED"), run("c", "ACTION_PHASE_FAILED")]
    [cleaned] = normalise([call(response={"runs": runs})])
    samples = cleaned["response"]["runs"][ONE_OF_EACH]
    assert list(samples) == ["ACTION_PHASE_FAILED", "ACTION_PHASE_SUCCEEDED"]
    assert samples["ACTION_PHASE_FAILED"]["action"]["id"] == {"name": "<string>"}


def test_of_a_task_template_the_interface_stays_and_the_command_goes() -> None:
    template = {
        "interface": {"inputs": {}},
        "container": {"args": ["a0", "--tgz", "s3://b/x.tar.gz"]},
        "metadata": {"discoverable": True, "runtime": {"version": "2.12.1"}},
    }
    assert value_of({"taskTemplate": template}, Ids()) == {
        "taskTemplate": {"interface": {"inputs": {}}, "container": "<container>", "metadata": {"discoverable": True}}
    }


@pytest.mark.parametrize("scenario", [*scenarios.DRIVEN, *scenarios.REPLAYED])
def test_normalising_a_fixture_again_changes_nothing(scenario: str) -> None:
    fixture = json.loads((FIXTURES / f"{scenario}.json").read_text(encoding="utf-8"))
    again = normalise(fixture)
    assert [{**before, **after} for before, after in zip(fixture, again, strict=True)] == fixture
