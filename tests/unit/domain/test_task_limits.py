"""What a task template asks for, as numbers."""

from __future__ import annotations

from datetime import timedelta

import flyte
import pytest
from flyteidl2.core import tasks_pb2
from flyteidl2.task.run_pb2 import TaskResourceDefaults
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.task_limits import LONGEST, Backoff, duration_of, limits_of, quantity, resources_of

GIB = 1024**3
Names = tasks_pb2.Resources.ResourceName


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("500m", 0.5),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.", 2),
        ("1k", 1e3),
        ("1Ki", 1024),
        ("2Gi", 2 * GIB),
        ("1.5Gi", 1.5 * GIB),
        ("3M", 3e6),
        ("1E", 1e18),
        ("1e3", 1e3),
        ("12E2", 1200),
        ("1e-3", 1e-3),
        (" 7 ", 7),
        ("0", 0),
        ("", None),
        ("-1", None),
        ("abc", None),
        ("1 Gi", None),
        ("1KiB", None),
        ("1gi", None),
        ("NaN", None),
        ("inf", None),
        ("1e999", None),
        ("9" * 400, None),
    ],
)
def test_a_quantity_is_read_as_kubernetes_does(text: str, expected: float | None) -> None:
    assert quantity(text) == (None if expected is None else pytest.approx(expected))


@given(st.text(max_size=20))
def test_no_text_is_too_strange_for_a_quantity(text: str) -> None:
    found = quantity(text)

    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("base", "factor", "cap"), [(2.0, 2.0, 600.0), (0.5, 3.0, 20.0), (1.0, 1.0, None), (10.0, 2.0, 5.0)]
)
def test_the_back_off_is_the_formula_of_the_sdk(base: float, factor: float, cap: float | None) -> None:
    theirs = flyte.Backoff(
        base=timedelta(seconds=base), factor=factor, cap=None if cap is None else timedelta(seconds=cap)
    )
    ours = Backoff(base=timedelta(seconds=base), factor=factor, cap=None if cap is None else timedelta(seconds=cap))

    assert [ours.delay(failures) for failures in range(1, 8)] == [theirs.compute_delay(n) for n in range(7)]


@given(
    st.floats(0, 1e12),
    st.floats(min_value=1e-300, max_value=1e300),
    st.one_of(st.none(), st.floats(0, 1e9)),
    st.integers(1, 10_000),
)
def test_no_back_off_is_negative_or_too_long_for_the_clock(
    base: float, factor: float, cap: float | None, failures: int
) -> None:
    limit = None if cap is None else timedelta(seconds=cap)
    delay = Backoff(base=timedelta(seconds=base), factor=factor, cap=limit).delay(failures)

    assert timedelta(0) <= delay <= LONGEST
    if limit:
        assert delay <= limit


def test_no_base_is_no_delay_however_often_it_failed() -> None:
    assert Backoff(base=timedelta(0), factor=10.0).delay(5_000) == timedelta(0)


@pytest.mark.parametrize("factor", [0.0, -2.0, float("nan")])
def test_a_factor_without_a_meaning_keeps_the_base(factor: float) -> None:
    template = tasks_pb2.TaskTemplate()
    template.metadata.retries.backoff.base.FromSeconds(3)
    template.metadata.retries.backoff.factor = factor

    assert limits_of(template).backoff.delay(9) == timedelta(seconds=3)


def test_limits_are_read_from_where_the_sdk_puts_them() -> None:
    template = tasks_pb2.TaskTemplate()
    metadata = template.metadata
    metadata.retries.retries = 3
    metadata.timeout.FromSeconds(10)
    metadata.timeouts.queued_timeout.FromSeconds(20)
    metadata.timeouts.deadline.FromSeconds(30)
    limits = limits_of(template)

    assert limits.retries == 3
    assert (limits.max_runtime, limits.queued_timeout, limits.deadline) == (
        timedelta(seconds=10),
        timedelta(seconds=20),
        timedelta(seconds=30),
    )


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (Duration(), timedelta(0)),
        (Duration(seconds=1, nanos=500_000_000), timedelta(seconds=1.5)),
        (Duration(seconds=-5), timedelta(0)),
        (Duration(seconds=-(2**63)), timedelta(0)),
        (Duration(seconds=2**63 - 1), LONGEST),
        (Duration(seconds=315_576_000_000), LONGEST),
    ],
)
def test_every_duration_that_can_be_sent_has_a_meaning(duration: Duration, expected: timedelta) -> None:
    assert duration_of(duration) == expected


def container(requests: dict[int, str] | None = None, limits: dict[int, str] | None = None) -> tasks_pb2.TaskTemplate:
    template = tasks_pb2.TaskTemplate()
    for name, value in (requests or {}).items():
        template.container.resources.requests.add(name=name, value=value)  # pyright: ignore[reportArgumentType]
    for name, value in (limits or {}).items():
        template.container.resources.limits.add(name=name, value=value)  # pyright: ignore[reportArgumentType]
    return template


def test_a_task_that_asks_for_nothing_counts_as_one_core() -> None:
    resources = resources_of(container())

    assert (resources.cores, resources.memory_bytes, resources.memory_limit_bytes, resources.asked) == (
        1,
        0,
        None,
        False,
    )


def test_requests_count_and_limits_stand_in_for_them() -> None:
    both = resources_of(container({Names.CPU: "500m", Names.MEMORY: "1Gi"}, {Names.CPU: "2", Names.MEMORY: "3Gi"}))
    only_limits = resources_of(container(None, {Names.CPU: "2", Names.MEMORY: "3Gi"}))

    assert (both.cores, both.memory_bytes, both.memory_limit_bytes) == (0.5, GIB, 3 * GIB)
    assert (only_limits.cores, only_limits.memory_bytes, only_limits.memory_limit_bytes) == (2, 3 * GIB, 3 * GIB)


def test_what_cannot_be_read_counts_as_not_asked() -> None:
    resources = resources_of(container({Names.CPU: "many", Names.MEMORY: "1e999"}))

    assert (resources.cores, resources.memory_bytes, resources.memory_limit_bytes) == (1, 0, None)


def defaults(requests: dict[int, str] | None = None, most: dict[int, str] | None = None) -> TaskResourceDefaults:
    made = TaskResourceDefaults()
    for name, value in (requests or {}).items():
        made.requests.add(name=name, value=value)  # pyright: ignore[reportArgumentType]
    for name, value in (most or {}).items():
        made.max.add(name=name, value=value)  # pyright: ignore[reportArgumentType]
    return made


def test_settings_stand_in_for_what_a_task_does_not_ask_for() -> None:
    given = defaults({Names.CPU: "2", Names.MEMORY: "1Gi", Names.GPU: "1"})
    nothing = resources_of(container(), given)
    assert (nothing.cores, nothing.memory_bytes, nothing.memory_limit_bytes, nothing.asked, nothing.gpus) == (
        2,
        GIB,
        None,
        True,
        "1",
    )
    less = resources_of(container({Names.CPU: "250m"}, {Names.MEMORY: "512Mi"}), given)
    assert (less.cores, less.memory_bytes, less.memory_limit_bytes) == (0.25, GIB // 2, GIB // 2)


def test_the_maximum_of_the_settings_bounds_requests_and_limits() -> None:
    most = defaults({Names.CPU: "8"}, {Names.CPU: "2", Names.MEMORY: "1Gi", Names.GPU: "1"})
    over = resources_of(container({Names.CPU: "4", Names.MEMORY: "3Gi", Names.GPU: "2"}), most)
    assert (over.cores, over.memory_bytes, over.memory_limit_bytes, over.gpus) == (2, GIB, GIB, "1")
    within = resources_of(container({Names.CPU: "1", Names.MEMORY: "512Mi"}, {Names.MEMORY: "2Gi"}), most)
    assert (within.cores, within.memory_bytes, within.memory_limit_bytes) == (1, GIB // 2, GIB)


def test_a_task_without_a_limit_is_limited_by_the_maximum_and_still_asks_for_nothing() -> None:
    found = resources_of(container(), defaults(None, {Names.CPU: "500m", Names.MEMORY: "1Gi"}))
    assert (found.cores, found.memory_bytes, found.memory_limit_bytes, found.asked) == (0.5, 0, GIB, False)


def test_mirrored_limits_are_what_is_requested() -> None:
    asked = container({Names.MEMORY: "1Gi"}, {Names.MEMORY: "3Gi"})
    assert resources_of(asked, mirror_limits=True).memory_limit_bytes == GIB
    assert resources_of(asked, mirror_limits=False).memory_limit_bytes == 3 * GIB
    by_default = resources_of(container(), defaults({Names.MEMORY: "2Gi"}), mirror_limits=True)
    assert (by_default.memory_bytes, by_default.memory_limit_bytes) == (2 * GIB, 2 * GIB)
    assert resources_of(container(), mirror_limits=True).memory_limit_bytes is None


def test_defaults_that_cannot_be_read_are_none() -> None:
    found = resources_of(container(), defaults({Names.CPU: "many"}, {Names.CPU: "0", Names.MEMORY: "x"}))
    assert (found.cores, found.memory_limit_bytes, found.asked) == (1, None, False)
