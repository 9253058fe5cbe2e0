"""How many replicas an app should have, from what it is asked. Pure, on a monotonic clock in seconds.

As Knative does it: a request that finds no replica wakes one; more come at once when what is asked exceeds the target
of those there are; fewer only after nothing more was needed for the whole scale-down period.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from flyteidl2.app import app_definition_pb2

from flyte_binary.app.local.settings import LocalAppSettings

DEFAULT_CONCURRENCY = 100
"""Requests at a time for which one replica is enough, where the app does not say."""

_RATE_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    minimum: int
    maximum: int
    scaledown_seconds: float
    concurrency: int = DEFAULT_CONCURRENCY
    rate: int = 0
    """Requests a second for which one replica is enough; 0: concurrency decides."""


def limits_of(spec: app_definition_pb2.Spec, settings: LocalAppSettings) -> Limits:
    scaling = spec.autoscaling
    period = scaling.scaledown_period.ToTimedelta() if scaling.HasField("scaledown_period") else None
    metric = scaling.scaling_metric
    maximum = scaling.replicas.max or max(settings.max_replicas, scaling.replicas.min)
    return Limits(
        minimum=scaling.replicas.min,
        maximum=maximum,
        scaledown_seconds=(period or settings.scaledown_period).total_seconds(),
        concurrency=metric.concurrency.target_value or DEFAULT_CONCURRENCY,
        rate=metric.request_rate.target_value,
    )


class Demand:
    """What an app is asked, and how many replicas that needs."""

    def __init__(self, now: float) -> None:
        self.in_flight = 0
        """Requests that a replica works on, or that wait for one."""

        self._last_end = now
        self._arrivals: deque[list[int]] = deque()
        """(second, requests) of the last ten seconds."""

        self._needed: deque[tuple[float, int]] = deque()
        """Needs in the scale-down period, falling: the first is the greatest."""

    def arrived(self, now: float) -> None:
        self.in_flight += 1
        second = int(now)
        if self._arrivals and self._arrivals[-1][0] == second:
            self._arrivals[-1][1] += 1
        else:
            self._arrivals.append([second, 1])
            self._forget(second)

    def asked(self, now: float) -> None:
        """Somebody started the app: as good as a request."""
        self._last_end = now

    def ended(self, now: float) -> None:
        self.in_flight -= 1
        self._last_end = now

    def replicas(self, limits: Limits, now: float) -> int:
        """To be asked every second or so: it remembers what was needed when it was asked."""
        need = self._need_now(limits, now)
        while self._needed and self._needed[-1][1] <= need:
            self._needed.pop()
        self._needed.append((now, need))
        while self._needed[0][0] <= now - limits.scaledown_seconds:
            self._needed.popleft()
        recently = max(self._needed[0][1], 1 if now < self.idle_until(limits) else 0)
        return min(max(recently, limits.minimum), max(limits.maximum, 1))

    def idle_until(self, limits: Limits) -> float:
        """When the last replica that nobody asks for may go."""
        return self._last_end + limits.scaledown_seconds

    def _need_now(self, limits: Limits, now: float) -> int:
        if self.in_flight == 0:
            return 0
        if limits.rate:
            return max(1, math.ceil(self._rate(now) / limits.rate))
        return math.ceil(self.in_flight / limits.concurrency)

    def _rate(self, now: float) -> float:
        self._forget(int(now))
        return sum(count for _, count in self._arrivals) / _RATE_SECONDS

    def _forget(self, second: int) -> None:
        while self._arrivals and self._arrivals[0][0] <= second - _RATE_SECONDS:
            self._arrivals.popleft()
