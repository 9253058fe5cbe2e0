"""The clock of a machine that may be suspended."""

from __future__ import annotations

from flyte_binary.control.clock import SystemClock

HOUR = 3_600_000_000


class Machine:
    """Its time, and for how long it has slept."""

    def __init__(self) -> None:
        self.time = 1_000 * HOUR
        self.slept = 0
        self.clock = SystemClock(wall=lambda: self.time, asleep=lambda: self.slept)

    def sleep(self, micros: int) -> None:
        self.time += micros
        self.slept += micros


def test_the_time_is_the_machines() -> None:
    machine = Machine()

    assert machine.clock.now() == machine.time
    assert abs(SystemClock().now() - SystemClock().now()) < HOUR


def test_a_sleep_counts_for_what_was_there_before_it() -> None:
    machine = Machine()
    began = machine.clock.now()
    machine.sleep(8 * HOUR)

    assert machine.clock.slept_since(began) == 8 * HOUR


def test_a_sleep_does_not_count_for_what_began_after_it() -> None:
    """Nobody asked for anything while the lid was closed or just after; the first to ask is a new run."""
    machine = Machine()
    machine.sleep(8 * HOUR)
    machine.time += 1_000
    began = machine.clock.now()
    machine.time += HOUR

    assert machine.clock.slept_since(began) == 0


def test_several_sleeps_add_up() -> None:
    machine = Machine()
    began = machine.clock.now()
    machine.sleep(HOUR)
    between = machine.clock.now()
    machine.sleep(2 * HOUR)

    assert machine.clock.slept_since(began) == 3 * HOUR
    assert machine.clock.slept_since(between) == 2 * HOUR


def test_a_short_gap_is_no_sleep() -> None:
    machine = Machine()
    began = machine.clock.now()
    machine.sleep(SystemClock.SMALLEST_GAP_MICROS - 1)

    assert machine.clock.slept_since(began) == 0
