"""How many replicas an app should have."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flyteidl2.app import app_definition_pb2

from flyte_binary.app.local.scaling import Demand, Limits, limits_of
from flyte_binary.app.local.settings import LocalAppSettings

SETTINGS = LocalAppSettings(public_url="", internal_url="", raw_data_prefix="", scaledown_period=timedelta(seconds=30))


def limits(minimum: int = 0, maximum: int = 5, *, concurrency: int = 10, rate: int = 0) -> Limits:
    return Limits(minimum=minimum, maximum=maximum, scaledown_seconds=30, concurrency=concurrency, rate=rate)


@pytest.mark.parametrize(("in_flight", "replicas"), [(1, 1), (10, 1), (11, 2), (49, 5), (500, 5)])
def test_more_requests_at_a_time_than_the_target_need_more_replicas_at_once(in_flight: int, replicas: int) -> None:
    demand = Demand(-100)
    for _ in range(in_flight):
        demand.arrived(0)
    assert demand.replicas(limits(), 0) == replicas


def test_fewer_replicas_are_left_only_after_the_whole_scale_down_period() -> None:
    demand = Demand(-100)
    for _ in range(25):
        demand.arrived(0)
    assert demand.replicas(limits(), 0) == 3
    for _ in range(25):
        demand.ended(1)
    assert [demand.replicas(limits(), now) for now in (1, 29)] == [3, 3]
    assert demand.replicas(limits(), 30.5) == 1
    assert demand.replicas(limits(), 31.5) == 0


def test_a_request_between_two_looks_keeps_the_last_replica_for_a_period() -> None:
    demand = Demand(-100)
    assert demand.replicas(limits(), 0) == 0
    demand.arrived(0.1)
    demand.ended(0.2)
    assert [demand.replicas(limits(), now) for now in (1, 30)] == [1, 1]
    assert demand.replicas(limits(), 30.3) == 0


def test_the_least_and_the_most_are_kept() -> None:
    demand = Demand(-100)
    assert demand.replicas(limits(minimum=2), 0) == 2
    demand.arrived(0)
    assert demand.replicas(limits(maximum=0), 0) == 1


def test_the_rate_of_requests_decides_where_the_app_says_so() -> None:
    demand = Demand(-100)
    for second in range(10):
        for _ in range(25):
            demand.arrived(second)
            demand.ended(second)
    demand.arrived(9)
    assert demand.replicas(limits(rate=10), 9) == 3


def test_limits_come_from_the_spec_and_else_from_the_settings() -> None:
    spec = app_definition_pb2.Spec()
    assert limits_of(spec, SETTINGS) == Limits(minimum=0, maximum=8, scaledown_seconds=30, concurrency=100)
    spec.autoscaling.replicas.min, spec.autoscaling.replicas.max = 1, 3
    spec.autoscaling.scaledown_period.FromTimedelta(timedelta(minutes=2))
    spec.autoscaling.scaling_metric.request_rate.target_value = 7
    assert limits_of(spec, SETTINGS) == Limits(minimum=1, maximum=3, scaledown_seconds=120, concurrency=100, rate=7)
