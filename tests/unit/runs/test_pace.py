"""How fast the scheduler may start runs."""

from __future__ import annotations

from flyte_binary.runs.triggers.pace import Pace


class Time:
    """Stands still but for sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_a_burst_is_free_and_then_the_rate_holds() -> None:
    time = Time()
    pace = Pace(4.0, 3, time=lambda: time.now, sleep=time.sleep)
    taken: list[float] = []
    for _ in range(6):
        await pace.take()
        taken.append(time.now)
    assert taken == [0, 0, 0, 0.25, 0.5, 0.75]


async def test_a_quiet_time_saves_up_one_burst_and_no_more() -> None:
    time = Time()
    pace = Pace(4.0, 2, time=lambda: time.now, sleep=time.sleep)
    for _ in range(3):
        await pace.take()
    time.now += 1000
    start = time.now
    for _ in range(3):
        await pace.take()
    assert time.now - start == 0.25
