"""What the comparer reports, and what it lets pass."""

from __future__ import annotations

import pytest

from tests.golden import scenarios
from tests.golden.compare import Difference, differences
from tests.golden.exchanges import exchange_of
from tests.golden.normalise import Json, normalise
from tests.golden.phases import Phases
from tests.golden.played import fixture

READ = "flyteidl2.workflow.RunService/GetRunDetails"
WATCH = "flyteidl2.workflow.RunService/WatchActionDetails"
UPDATES = "flyteidl2.actions.ActionsService/WatchForUpdates"


def read(response: Json) -> Json:
    return {"from": "sdk", "method": READ, "request": {"runId": {"name": "r1"}}, "response": response}


def watch(phases: list[str], **more: Json) -> Json:
    messages = [{"msg": {"details": {"status": {"phase": f"ACTION_PHASE_{phase}", "attempts": 1}}}} for phase in phases]
    stream = [*messages, {"end": {}}]
    return {"from": "sdk", "method": WATCH, "request": {}, "stream": stream, "closed_by": "server", **more}


def compared(reference: list[Json], ours: list[Json], *, call_by_call: bool = False) -> list[Difference]:
    return differences(normalise(reference), normalise(ours), call_by_call=call_by_call)


def test_a_field_that_only_the_reference_has_is_missing_and_one_that_only_we_have_is_extra() -> None:
    [extra, missing] = compared([read({"a": 1, "c": 2})], [read({"c": 2, "Z": 3})])
    assert (extra.path, extra.kind) == ("sdk/RunService.GetRunDetails/r1/last/response/Z", "extra")
    assert (missing.path, missing.kind, missing.reference) == (
        "sdk/RunService.GetRunDetails/r1/last/response/a",
        "missing",
        1,
    )


def test_a_number_in_place_of_its_text_is_a_difference() -> None:
    [difference] = compared([read({"n": "1"})], [read({"n": 1})])
    assert (difference.kind, difference.reference, difference.ours) == ("changed", "1", 1)


def test_another_error_code_is_a_difference_and_other_words_are_not() -> None:
    def failed(code: str, words: str) -> Json:
        return {"from": "sdk", "method": READ, "request": {}, "error": {"code": code, "message": words}, "http": 404}

    assert compared([failed("not_found", "a")], [failed("not_found", "b")], call_by_call=True) == []
    [difference] = compared([failed("unknown", "a")], [failed("not_found", "a")], call_by_call=True)
    assert difference.path == "sdk/RunService.GetRunDetails/1/error/code"


def test_an_error_in_place_of_an_answer_is_reported_from_both_sides() -> None:
    ours = {"from": "sdk", "method": READ, "request": {"runId": {"name": "r1"}}, "error": {"code": "internal"}}
    assert [(found.path.rpartition("/")[2], found.kind) for found in compared([read({})], [ours])] == [
        ("error", "extra"),
        ("response", "missing"),
    ]


def test_a_call_without_counterpart_is_reported() -> None:
    assert [found.kind for found in compared([read({})], [])] == ["missing"]


def test_reads_of_one_state_count_by_the_last_answer() -> None:
    assert compared([read({"n": 1}), read({"n": 2})], [read({"n": 2})]) == []
    assert len(compared([read({"n": 1}), read({"n": 2})], [read({"n": 1})])) == 1


def test_intermediate_phases_may_be_left_out_by_either_side() -> None:
    assert compared([watch(["QUEUED", "INITIALIZING", "SUCCEEDED"])], [watch(["RUNNING", "SUCCEEDED"])]) == []


def test_phases_in_another_order_are_a_difference() -> None:
    assert not Phases(["RUNNING", "QUEUED", "FAILED"]).agrees_with(Phases(["QUEUED", "RUNNING", "FAILED"]))
    assert not Phases(["RUNNING", "INITIALIZING", "FAILED"]).agrees_with(Phases(["QUEUED", "FAILED"]))


def test_a_final_phase_that_the_reference_did_not_pass_through_is_a_difference() -> None:
    assert not Phases(["RUNNING", "FAILED", "SUCCEEDED"]).agrees_with(Phases(["RUNNING", "SUCCEEDED"]))


def test_another_last_phase_is_a_difference() -> None:
    paths = [found.path.rpartition("stream/")[2] for found in compared([watch(["SUCCEEDED"])], [watch(["FAILED"])])]
    assert paths == ["last/status/phase", "phases"]


def test_a_watch_that_is_opened_again_is_read_as_one_and_its_early_end_is_reported() -> None:
    [difference] = compared([watch(["RUNNING"]), watch(["SUCCEEDED"])], [watch(["RUNNING", "SUCCEEDED"])])
    assert difference.path.endswith("/closes")
    assert (difference.reference, difference.ours) == ("stale", "up to date")


def test_updates_before_the_sentinel_are_the_snapshot() -> None:
    def updates(*names: str) -> Json:
        sentinel = {"msg": {"controlMessage": {"sentinel": True}}}
        entries = [
            {"msg": {"actionUpdate": {"actionId": {"name": name}, "phase": "ACTION_PHASE_RUNNING"}}}
            if name
            else sentinel
            for name in names
        ]
        return {"from": "pod", "method": UPDATES, "request": {}, "stream": entries}

    assert compared([updates("a0", "", "child")], [updates("a0", "", "child", "child")]) == []
    changed = compared([updates("a0", "", "child")], [updates("a0", "child", "")])
    assert [found.path for found in changed] == ["pod/ActionsService.WatchForUpdates/stream/snapshot/length"]


def test_an_aborted_connection_is_told_from_an_error() -> None:
    crashed = {"from": "sdk", "method": READ, "request": {}, "aborted": "connection closed"}
    refused = {"from": "sdk", "method": READ, "request": {}, "error": {"code": "invalid_argument"}}
    assert [found.kind for found in compared([crashed], [refused], call_by_call=True)] == ["missing", "extra"]


def test_how_far_an_action_was_counts_only_when_it_had_ended_on_both_sides() -> None:
    def details(phase: str, name: str = "t") -> Json:
        status = {"phase": f"ACTION_PHASE_{phase}", "attempts": 1}
        return read({"details": {"action": {"status": status, "attempts": [{"phase": phase}], "task": name}}})

    assert compared([details("QUEUED")], [details("SUCCEEDED")]) == []
    assert len(compared([details("QUEUED")], [details("RUNNING", name="other")])) == 1
    assert [found.path.rpartition("/")[2] for found in compared([details("FAILED")], [details("ABORTED")])] == [
        "phase",
        "phase",
    ]


def test_an_action_that_begins_a_new_attempt_may_show_its_phases_again() -> None:
    def message(phase: str, attempts: int) -> Json:
        return {"msg": {"details": {"status": {"phase": f"ACTION_PHASE_{phase}", "attempts": attempts}}}}

    def stream(*messages: Json) -> list[Json]:
        return [{"from": "sdk", "method": WATCH, "request": {}, "stream": [*messages, {"end": {}}]}]

    reference = stream(message("INITIALIZING", 1), message("RUNNING", 2), message("SUCCEEDED", 2))
    ours = stream(message("RUNNING", 1), message("QUEUED", 2), message("RUNNING", 2), message("SUCCEEDED", 2))
    assert compared(reference, ours) == []


def test_actions_in_another_order_are_one_difference_and_not_one_for_each_field() -> None:
    def listed(*names: str) -> Json:
        return read({"actions": [{"id": {"name": name}, "metadata": {"parent": name}} for name in names]})

    found = compared([listed("a", "b")], [listed("b", "a")], call_by_call=True)
    assert {difference.path.rpartition("/actions/")[2] for difference in found} == {"order/0", "order/1"}


@pytest.mark.parametrize("scenario", [*scenarios.DRIVEN, *scenarios.REPLAYED])
def test_no_answer_of_a_fixture_may_turn_into_an_error_unnoticed(scenario: str) -> None:
    calls = fixture(scenario)
    call_by_call = scenario in scenarios.REPLAYED
    names = [str(n) if call_by_call else exchange_of(call) for n, call in enumerate(calls)]
    for name in names:
        spoilt = [spoil(call) if own == name else call for own, call in zip(names, calls, strict=True)]
        assert differences(calls, spoilt, call_by_call=call_by_call), name


def spoil(call: Json) -> Json:
    kept = {key: value for key, value in call.items() if key not in ("response", "error", "aborted", "stream")}
    error = {"code": "planted", "message": "<text>"}
    return {**kept, "stream": [{"end": {"error": error}}]} if "stream" in call else {**kept, "error": error}
