"""What a task template asks for: retries, timeouts, resources. Pure readings of the protobuf."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from flyteidl2.core import tasks_pb2
from flyteidl2.task import run_pb2
from google.protobuf.duration_pb2 import Duration

_Name = tasks_pb2.Resources.ResourceName
_NO_DEFAULTS = run_pb2.TaskResourceDefaults()

NO_LIMIT = timedelta(0)
LONGEST = timedelta(days=100 * 365)
"""Beyond it a duration means the same, and does not fit into every type that holds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    base: timedelta = timedelta(0)
    factor: float = 1.0
    cap: timedelta | None = None

    def delay(self, failures: int) -> timedelta:
        """Before the retry that follows the `failures`-th user failure (counted from 1).

        The SDK's formula: `min(base * factor**n, cap)` with n counted from 0.
        """
        if self.base <= NO_LIMIT:
            return NO_LIMIT
        try:
            seconds = self.base.total_seconds() * math.pow(self.factor, max(failures - 1, 0))
        except OverflowError:
            seconds = math.inf
        if self.cap is not None and self.cap > NO_LIMIT:
            seconds = min(seconds, self.cap.total_seconds())
        return timedelta(seconds=min(seconds, LONGEST.total_seconds()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    retries: int = 0
    """User retries after the first attempt."""
    backoff: Backoff = Backoff()
    max_runtime: timedelta = NO_LIMIT
    """Of one attempt, RUNNING; zero is unlimited, as for the other two."""
    queued_timeout: timedelta = NO_LIMIT
    """Of one attempt, before it is launched."""
    deadline: timedelta = NO_LIMIT
    """From the first QUEUED to the end, over all attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    cores: float = 1.0
    memory_bytes: int = 0
    memory_limit_bytes: int | None = None
    asked: bool = False
    gpus: str = ""


def limits_of(template: tasks_pb2.TaskTemplate) -> Limits:
    metadata = template.metadata
    backoff = metadata.retries.backoff
    return Limits(
        retries=metadata.retries.retries,
        backoff=Backoff(
            base=duration_of(backoff.base),
            # Without a meaning: zero, which is what an unset field reads as, less, and what is no number.
            factor=backoff.factor if backoff.factor > 0 else 1.0,
            cap=duration_of(backoff.cap) if backoff.HasField("cap") else None,
        ),
        max_runtime=duration_of(metadata.timeout),
        queued_timeout=duration_of(metadata.timeouts.queued_timeout),
        deadline=duration_of(metadata.timeouts.deadline),
    )


def resources_of(
    template: tasks_pb2.TaskTemplate,
    defaults: run_pb2.TaskResourceDefaults = _NO_DEFAULTS,
    *,
    mirror_limits: bool = False,
) -> Resources:
    """Requests, else limits, else what the settings of the run give to tasks that ask for nothing, else one core; none
    of it above the settings' maximum. Quantities that cannot be read count as not asked. With `mirror_limits` limits
    are what is requested."""
    asked = _Asked(template.container.resources, defaults, mirror_limits)
    cpu, memory = asked.request(_Name.CPU), asked.request(_Name.MEMORY)
    memory_limit = asked.limit(_Name.MEMORY)
    gpus = asked.request(_Name.GPU)
    return Resources(
        cores=asked.capped(_Name.CPU, cpu or 1.0),
        memory_bytes=int(memory or 0),
        memory_limit_bytes=int(memory_limit) if memory_limit else None,
        asked=bool(cpu or memory),
        gpus=f"{gpus:g}" if gpus else "",
    )


class _Asked:
    """What a container asks for, by the name of the resource; zero is not asked."""

    def __init__(
        self, container: tasks_pb2.Resources, defaults: run_pb2.TaskResourceDefaults, mirror_limits: bool
    ) -> None:
        self._requests = _quantities(container.requests)
        self._limits = _quantities(container.limits)
        self._defaults = _quantities(defaults.requests)
        self._most = _quantities(defaults.max)
        self._mirror_limits = mirror_limits

    def request(self, name: tasks_pb2.Resources.ResourceName) -> float | None:
        asked = self._requests.get(name) or self._limits.get(name) or self._defaults.get(name)
        return self.capped(name, asked) if asked else None

    def limit(self, name: tasks_pb2.Resources.ResourceName) -> float | None:
        """A maximum that a task without a limit could pass would be none."""
        request = self.request(name)
        if self._mirror_limits and request:
            return request
        limit = self._limits.get(name) or self._requests.get(name)
        return self.capped(name, limit) if limit else self._most.get(name)

    def capped(self, name: tasks_pb2.Resources.ResourceName, quantity: float) -> float:
        return min(quantity, self._most.get(name) or quantity)


def _quantities(entries: Iterable[tasks_pb2.Resources.ResourceEntry]) -> dict[int, float]:
    return {entry.name: value for entry in entries if (value := quantity(entry.value))}


_QUANTITY = re.compile(r"^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")
_SUFFIXES = {
    "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def quantity(text: str) -> float | None:
    """A Kubernetes quantity as a number, None if it is none."""
    match = _QUANTITY.match(text.strip())
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    value = float(number + (exponent or "")) * _SUFFIXES.get(suffix or "", 1)
    return value if math.isfinite(value) else None


def duration_of(duration: Duration) -> timedelta:
    if duration.seconds >= LONGEST.total_seconds():
        return LONGEST
    return max(timedelta(seconds=max(duration.seconds, -1), microseconds=duration.nanos // 1000), NO_LIMIT)
