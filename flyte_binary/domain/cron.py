"""Cron expressions of five fields: what they may say, and the times of day that they name.

Minute, hour, day of month, month, day of week, each `*` (or `?`), numbers, lists, ranges and steps; months and days
of the week also by three letters. If both day fields are restricted a day has to meet one of them, otherwise both; a
star with a step is a restriction there (dialect of the reference backend, spec runs.md 12.2).

Times here are local and without a zone; `domain/schedules.py` puts them on the time line.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

HORIZON_YEARS = 9
"""A 29th of February comes within eight years."""

DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_LONGEST_MONTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class CronError(ValueError):
    """What is wrong with an expression, in words for its author."""


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """0 is Sunday."""

    either_day: bool
    """A day has to meet `days` or `weekdays`; otherwise both."""

    @property
    def every_hour(self) -> bool:
        return len(self.hours) == 24

    def on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week

    def days_from(self, day: date) -> Iterator[date]:
        """The days that it names, from `day` on, as far as anybody looks ahead."""
        last = date.max if day.year + HORIZON_YEARS > date.max.year else date(day.year + HORIZON_YEARS, day.month, 28)
        while day < last:
            if day.month not in self.months:
                day = _next_month(day)
                continue
            if self.on(day):
                yield day
            day += timedelta(days=1)

    def after(self, wall: datetime) -> Iterator[datetime]:
        """The local times that it names later than `wall`, in order."""
        for day in self.days_from(wall.date()):
            today = day == wall.date()
            for hour in self.hours:
                if today and hour < wall.hour:
                    continue
                for minute in self.minutes:
                    found = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001  # local on purpose
                    if found > wall:
                        yield found


def parse_cron(expression: str) -> Cron:
    """Five fields or a descriptor other than `@every`. Raises `CronError`, also for a date that never comes."""
    text = expression.strip()
    if text.startswith("@"):
        if text not in DESCRIPTORS:
            raise CronError(f"unknown descriptor {text!r}; known are @every <duration>, {', '.join(DESCRIPTORS)}")
        text = DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != 5:
        raise CronError(
            f"expected 5 fields (minute, hour, day of month, month, day of week) or a descriptor such as @daily, "
            f"found {len(parts)} fields"
        )
    days, any_day = _field("day of month", parts[2], 1, 31)
    weekdays, any_weekday = _field("day of week", parts[4], 0, 6, _WEEKDAYS)
    cron = Cron(
        minutes=_field("minute", parts[0], 0, 59)[0],
        hours=_field("hour", parts[1], 0, 23)[0],
        days=days,
        months=_field("month", parts[3], 1, 12, _MONTHS)[0],
        weekdays=weekdays,
        either_day=not any_day and not any_weekday,
    )
    if not cron.either_day and all(days[0] > _LONGEST_MONTHS[month] for month in cron.months):
        raise CronError(f"day {days[0]} does not occur in month {', '.join(map(str, cron.months))}: it would never run")
    return cron


def _field(name: str, text: str, low: int, high: int, words: Sequence[str] = ()) -> tuple[tuple[int, ...], bool]:
    """The values, and whether it is a plain star."""
    values: set[int] = set()
    star = False
    for item in text.split(","):
        found, starred = _item(name, item, low, high, words)
        values.update(found)
        star = star or starred
    return tuple(sorted(values)), star


def _item(name: str, item: str, low: int, high: int, words: Sequence[str]) -> tuple[range, bool]:
    body, slash, step_text = item.partition("/")
    step = _number(f"{name}: the step", step_text, 1, 9999) if slash else 1
    if body in ("*", "?"):
        return range(low, high + 1, step), step == 1
    first_text, dash, last_text = body.partition("-")
    first = _value(name, first_text, low, high, words)
    # A single number with a step means from there to the end.
    last = _value(name, last_text, low, high, words) if dash else high if slash else first
    if last < first:
        raise CronError(f"{name} {item!r}: the range ends before it begins")
    return range(first, last + 1, step), False


def _value(name: str, text: str, low: int, high: int, words: Sequence[str]) -> int:
    if text.lower() in words:
        return words.index(text.lower()) + low
    return _number(name, text, low, high)


def _number(name: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise CronError(f"{name}: {text!r} is no number between {low} and {high}")
    number = int(text)
    if not low <= number <= high:
        raise CronError(f"{name}: {number} is not between {low} and {high}")
    return number


def _next_month(day: date) -> date:
    return date(day.year, day.month, calendar.monthrange(day.year, day.month)[1]) + timedelta(days=1)
