"""Which missed times are fired."""

from __future__ import annotations

import pytest
from flyteidl2.task import common_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.catchup import CatchupPolicy, times_to_fire
from flyte_binary.domain.schedules import Interval, Schedule, schedule_from_proto

SECOND = 1_000_000
MINUTE = 60 * SECOND


def every(seconds: int) -> Interval:
    return Interval(0, seconds * SECOND)


def test_what_is_due_right_now_is_fired_under_every_policy() -> None:
    for policy in CatchupPolicy:
        assert times_to_fire(every(60), MINUTE, MINUTE, policy, 100) == [MINUTE]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [(CatchupPolicy.ALL, [1, 2, 3]), (CatchupPolicy.LAST, [3]), (CatchupPolicy.SKIP, [])],
)
def test_of_missed_times_the_policy_chooses(policy: CatchupPolicy, expected: list[int]) -> None:
    now = 3 * 10 * MINUTE + 2 * MINUTE
    found = times_to_fire(every(600), 10 * MINUTE, now, policy, 100)
    assert found == [number * 10 * MINUTE for number in expected]


def test_skipping_keeps_what_is_hardly_late() -> None:
    assert times_to_fire(every(60), MINUTE, 3 * MINUTE + 30 * SECOND, CatchupPolicy.SKIP, 100) == [3 * MINUTE]


def test_of_too_many_missed_times_the_newest_are_kept() -> None:
    now = 1000 * MINUTE
    found = times_to_fire(every(60), MINUTE, now, CatchupPolicy.ALL, 5)
    assert found == [number * MINUTE for number in (996, 997, 998, 999, 1000)]


def test_nothing_is_fired_before_it_is_due() -> None:
    assert times_to_fire(every(60), 10 * MINUTE, 9 * MINUTE, CatchupPolicy.ALL, 100) == []


class Counted:
    """A schedule that counts how often it is asked."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.asked = 0

    def next_after(self, moment: int) -> int | None:
        self.asked += 1
        return self.schedule.next_after(moment)


def test_ten_years_of_missed_seconds_are_not_walked_through() -> None:
    schedule = Counted(every(1))
    now = 10 * 365 * 24 * 60 * MINUTE
    assert times_to_fire(schedule, SECOND, now, CatchupPolicy.LAST, 1) == [now]
    yearly = Counted(schedule_from_proto(common_pb2.Schedule(cron=common_pb2.Cron(expression="0 0 1 1 *")), anchor=0))
    (found,) = times_to_fire(yearly, 0, now, CatchupPolicy.LAST, 1)
    assert found <= now
    assert schedule.asked + yearly.asked < 200


@given(period=st.integers(1, 10**5), due=st.integers(1, 50), span=st.integers(0, 5000), limit=st.integers(1, 40))
def test_catching_up_all_is_the_end_of_the_whole_list(period: int, due: int, span: int, limit: int) -> None:
    schedule = every(period)
    first = due * period * SECOND
    now = first + span * SECOND
    every_one = list(range(first, now + 1, period * SECOND))
    assert times_to_fire(schedule, first, now, CatchupPolicy.ALL, limit) == every_one[-limit:]
