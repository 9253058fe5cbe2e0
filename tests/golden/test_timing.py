"""What the recordings of the reference show to be slow or early, measured in ours."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime

import pytest

from tests.golden.normalise import Json
from tests.golden.played import Played

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(300)]

WAITED_FOR = ("hello-run-and-wait", "void-task", "failing-task", "exit-code-3", "cache-miss", "trace-ok", "fan-out-5")
CONDITION_SECONDS = 1.0


def test_who_waits_for_a_run_hears_of_its_end_within_50_ms(played: Played) -> None:
    """The reference closes the watch with a phase that is already over, and the SDK asks again after half a second."""
    late = [_heard(call) - _ended(call) for name in WAITED_FOR for call in _watches(played, name)]
    assert len(late) >= len(WAITED_FOR)
    assert statistics.median(late) < 0.05, f"seconds after the end: {sorted(late)}"


def test_a_condition_does_not_time_out_before_its_time(played: Played) -> None:
    """The reference counts from a time without fractions of a second, so it is early by up to one."""
    calls = _recorded(played, "condition-timeout")
    asked = next(call["at"] for call in calls if call["method"].endswith("/Enqueue"))
    watch = next(call for call in calls if call["method"].endswith("/WatchForUpdates"))
    told = next(
        watch["at"] + entry["ms"] / 1000
        for entry in watch["stream"]
        if entry.get("msg", {}).get("actionUpdate", {}).get("phase") == "ACTION_PHASE_TIMED_OUT"
    )
    assert told - asked >= CONDITION_SECONDS


def _recorded(played: Played, scenario: str) -> list[Json]:
    played.calls(scenario)
    return played.raw[scenario]


def _watches(played: Played, scenario: str) -> list[Json]:
    return [call for call in _recorded(played, scenario) if call["method"].endswith("/WatchActionDetails")]


def _heard(watch: Json) -> float:
    return watch["at"] + _last(watch)["ms"] / 1000


def _ended(watch: Json) -> float:
    moment = _last(watch)["msg"]["details"]["status"]["endTime"]
    return datetime.strptime(moment[:26].rstrip("Z"), "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=UTC).timestamp()


def _last(watch: Json) -> Json:
    return [entry for entry in watch["stream"] if "msg" in entry][-1]
