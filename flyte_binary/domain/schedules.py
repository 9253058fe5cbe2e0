"""When a schedule fires: cron expressions in a time zone, and fixed rates.

A schedule answers one question, "what comes after this moment", so whoever was asleep asks it again and misses nothing.
Moments are microseconds since the epoch and fall on whole seconds, but for rates whose start does not.

Where the clocks are changed, a cron time that is skipped fires once, at the first moment after the gap, and one that
comes twice fires the first time. Expressions for every hour of the day go by elapsed time instead: they neither
pause for the repeated hour nor fire an extra time because of the skipped one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flyteidl2.task import common_pb2

from flyte_binary.domain.cron import HORIZON_YEARS, Cron, CronError, parse_cron
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.filters import INT64_LIMIT
from flyte_binary.domain.timestamps import from_micros, is_time, proto_to_micros, to_micros

SECOND = 1_000_000
LONGEST_SECONDS = 100 * 366 * 24 * 3600
"""No rate is slower; what comes later than that is a mistake in its number."""

_UNITS_SECONDS = {
    common_pb2.FIXED_RATE_UNIT_MINUTE: 60,
    common_pb2.FIXED_RATE_UNIT_HOUR: 3600,
    common_pb2.FIXED_RATE_UNIT_DAY: 86400,
}
_EVERY = "@every"
_DURATION = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


class Schedule(Protocol):
    def next_after(self, moment: int) -> int | None:
        """The first time to fire later than `moment`; None if there is none that anybody will see."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """Every `period` from `start` on."""

    start: int
    period: int
    includes_start: bool = False

    def next_after(self, moment: int) -> int | None:
        if moment < self.start:
            found = self.start if self.includes_start else self.start + self.period
        else:
            found = self.start + ((moment - self.start) // self.period + 1) * self.period
        return found if found <= INT64_LIMIT else None


@dataclass(frozen=True, slots=True)
class CronSchedule:
    cron: Cron
    zone: ZoneInfo

    def next_after(self, moment: int) -> int | None:
        instant = from_micros(moment)
        found = self._next_elapsed(instant) if self.cron.every_hour else self._next_wall(instant)
        return None if found is None else to_micros(found)

    def _next_wall(self, instant: datetime) -> datetime | None:
        wall = instant.astimezone(self.zone).replace(tzinfo=None, fold=0)
        for candidate in self.cron.after(wall):
            found = _first_instant(candidate, self.zone)
            if found > instant:
                return found
        return None

    def _next_elapsed(self, instant: datetime) -> datetime | None:
        found = instant.replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = found + timedelta(days=366 * HORIZON_YEARS)
        while found < end:
            local = found.astimezone(self.zone)
            if not self.cron.on(local.date()):
                day = next(self.cron.days_from(local.date()), None)
                if day is None:
                    return None
                found = _first_instant(datetime(day.year, day.month, day.day), self.zone)  # noqa: DTZ001  # local
                continue
            if local.minute in self.cron.minutes:
                return found
            # To the next minute of its hour, or to the next hour, whichever that is.
            ahead = next((minute for minute in self.cron.minutes if minute > local.minute), 60)
            found += timedelta(minutes=ahead - local.minute)
        return None


def schedule_from_proto(message: common_pb2.Schedule, *, anchor: int) -> Schedule:
    """`anchor` is where a rate without a start of its own begins to count.

    Raises `InvalidArgument` naming the field.
    """
    field = "automation_spec.schedule"
    match message.WhichOneof("expression"):
        case "rate":
            return _rate(f"{field}.rate", message.rate, anchor)
        case "cron":
            return _cron(f"{field}.cron", message.cron.expression, message.cron.timezone, anchor)
        case "cron_expression":
            return _cron(f"{field}.cron_expression", message.cron_expression, "", anchor)
        case _:
            raise InvalidArgument(f"{field}: one of cron and rate is required")


def _rate(field: str, rate: common_pb2.FixedRate, anchor: int) -> Interval:
    unit = _UNITS_SECONDS.get(rate.unit)
    if unit is None:
        raise InvalidArgument(f"{field}.unit is required: minutes, hours or days")
    seconds = rate.value * unit
    if not 0 < seconds <= LONGEST_SECONDS:
        raise InvalidArgument(f"{field}.value {rate.value} is out of range: at least 1, and at most a hundred years")
    if not rate.HasField("start_time"):
        return Interval(_whole_seconds(anchor), seconds * SECOND)
    if not is_time(rate.start_time):
        raise InvalidArgument(f"{field}.start_time is no time between the years 1 and 9999")
    return Interval(proto_to_micros(rate.start_time), seconds * SECOND, includes_start=True)


def _cron(field: str, expression: str, timezone: str, anchor: int) -> Schedule:
    text, zone = _split_zone(field, expression.strip(), timezone)
    try:
        if text.split(maxsplit=1)[:1] == [_EVERY]:
            period = _every_seconds(text.removeprefix(_EVERY).strip())
            return Interval(_whole_seconds(anchor), period * SECOND)
        return CronSchedule(parse_cron(text), zone)
    except CronError as error:
        raise InvalidArgument(f"{field}: {expression!r}: {error}") from None


def _split_zone(field: str, text: str, timezone: str) -> tuple[str, ZoneInfo]:
    """The expression and its zone, which the old form carries in front; UTC where nothing is said."""
    for mark in ("CRON_TZ=", "TZ="):
        if text.startswith(mark):
            if timezone:
                raise InvalidArgument(f"{field}: the zone is given twice, as timezone and in the expression")
            zone, _, rest = text.removeprefix(mark).partition(" ")
            return rest.strip(), _zone(field, zone)
    return text, _zone(field, timezone or "UTC")


def _zone(field: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgument(f"{field}: {name!r} is no time zone of the IANA database") from None


def _every_seconds(text: str) -> int:
    """Of a duration as Go writes it (`1h30m`), cut to whole seconds, at least one."""
    total, position = Fraction(0), 0
    while (found := _DURATION.match(text, position)) is not None:
        number = found[0].rstrip("nuµμmsh")
        total += Fraction(number.removesuffix(".")) * _DURATION_SECONDS[found[0].removeprefix(number)]
        position = found.end()
    if position != len(text) or not 0 < total <= LONGEST_SECONDS:
        raise CronError(f"{text!r} is no duration such as 90s or 1h30m, above 0 and up to a hundred years")
    return max(1, int(total))


def _whole_seconds(moment: int) -> int:
    return moment // SECOND * SECOND


def _first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """When it is first `wall` o'clock there, or for a time that is skipped the end of the gap."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if before.astimezone(zone).replace(tzinfo=None) == wall:
        return before
    return _change_between(after, before, zone)


def _change_between(early: datetime, late: datetime, zone: ZoneInfo) -> datetime:
    """The second at which the clocks are changed, which is after `early` and not after `late`."""
    offset = late.astimezone(zone).utcoffset()
    low, high = 0, int((late - early).total_seconds())
    while high - low > 1:
        middle = (low + high) // 2
        if (early + timedelta(seconds=middle)).astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return early + timedelta(seconds=high)
