"""What a task template asks for: retries, timeouts, resources. Pure readings of the protobuf."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta

from flyteidl2.core import tasks_pb2
from google.protobuf.duration_pb2 import Duration

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


def resources_of(template: tasks_pb2.TaskTemplate) -> Resources:
    """Requests, else limits, else one core. Quantities that cannot be read count as not asked."""
    names = tasks_pb2.Resources
    requests = {entry.name: entry.value for entry in template.container.resources.requests}
    limits = {entry.name: entry.value for entry in template.container.resources.limits}
    cpu = quantity(requests.get(names.CPU) or limits.get(names.CPU) or "")
    memory = quantity(requests.get(names.MEMORY) or limits.get(names.MEMORY) or "")
    memory_limit = quantity(limits.get(names.MEMORY) or requests.get(names.MEMORY) or "")
    return Resources(
        cores=cpu if cpu else 1.0,
        memory_bytes=int(memory or 0),
        memory_limit_bytes=int(memory_limit) if memory_limit else None,
        asked=bool(cpu or memory),
        gpus=requests.get(names.GPU) or limits.get(names.GPU) or "",
    )


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
