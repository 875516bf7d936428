"""A cron expression as data: parsed once, kept for every schedule that is written the same way."""

import re
from dataclasses import dataclass
from functools import lru_cache

from fleetcron.errors import ScheduleError
from fleetcron.times import days
from fleetcron.times.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, FieldKind, Values, parse_field

MAX_LENGTH = 256
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
    "@every_second": "* * * * * *",
}
FIVE: tuple[FieldKind, ...] = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
SIX: tuple[FieldKind, ...] = (SECOND, *FIVE)
_ALL_DAYS, _ALL_MONTHS = (1 << 32) - 2, (1 << 13) - 2
_WORD = re.compile(r"[^ \t]+")
_ZONE = re.compile(r"(?:CRON_)?TZ=(.*)")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """The six fields and how the two day fields combine. `text` is the input with single spaces, macros kept."""

    text: str
    second: Values
    minute: Values
    hour: Values
    day: Values
    month: Values
    weekday: Values
    has_seconds: bool
    both_days: bool  # True: a day must match both day fields; False: either is enough
    plus: bool  # the weekday field was written with a leading +

    @property
    def fields(self) -> tuple[Values, ...]:
        six = (self.second, self.minute, self.hour, self.day, self.month, self.weekday)
        return six if self.has_seconds else six[1:]

    @property
    def is_clock_job(self) -> bool:
        """Runs by the clock's cadence, not at times of day: real time has no gap and no fold."""
        timely = (self.second, self.minute, self.hour) if self.has_seconds else (self.minute, self.hour)
        return self.hour.values == (1 << 24) - 1 or any(
            field.text[0] == "*" or field.text.startswith("H/") for field in timely
        )

    @property
    def is_every_day(self) -> bool:
        """Whether the day fields leave out no day (they may say so in odd ways; then this is False and costs speed)."""
        dates, weekdays = self.day.values == _ALL_DAYS, self.weekday.values == 0b1111111
        matching = dates and weekdays if self.both_days else dates or weekdays
        return matching and self.month.values == _ALL_MONTHS

    def day_mask(self, kind: int, clamp: bool) -> int:
        """The days of a year of this kind that match, as a mask."""
        by_date, by_week = self._by_date(kind, clamp), self._by_week(kind)
        matching = by_date & by_week if self.both_days else by_date | by_week
        return matching & days.months(kind >= 7, self.month.values)

    def date_mask(self, kind: int) -> int:
        """As `day_mask`, whatever the weekday."""
        return self._by_date(kind, clamp=False) & days.months(kind >= 7, self.month.values)

    def _by_date(self, kind: int, clamp: bool) -> int:
        leap, day = kind >= 7, self.day
        mask = days.days_of_months(leap, day.values)
        if clamp and day.clampable:
            mask |= days.clamped_days(leap, day.clampable)
        for back in day.last:
            mask |= days.last_days(leap, back)
        for back in day.last_workday:
            mask |= days.nearest_workdays(kind, 0, back, clamp=False)
        for n in day.nearest:
            mask |= days.nearest_workdays(kind, n, 0, clamp)
        return mask

    def _by_week(self, kind: int) -> int:
        leap, weekday = kind >= 7, self.weekday
        mask = days.weekdays(kind, weekday.values)
        for wanted, n in weekday.nth:
            mask |= days.weekdays(kind, 1 << wanted) & days.nth_weeks(leap, n)
        for wanted in weekday.last_weekday:
            mask |= days.weekdays(kind, 1 << wanted) & days.last_weeks(leap)
        return mask


@lru_cache(maxsize=8192)
def parse(text: str, seed: str | None = None) -> Expression:
    text = text.strip("\r\n")  # a YAML block brings one
    if len(text) > MAX_LENGTH:
        raise ScheduleError(f"the expression has {len(text)} characters, {MAX_LENGTH} at most")
    for position, character in enumerate(text):
        if not (" " <= character <= "~" or character == "\t"):
            raise ScheduleError(
                f"{character!r} cannot stand in a cron expression", source=text, start=position, end=position + 1
            )
    source, written = text, text.strip(" \t")
    if written.startswith("@"):
        source = _macro(written, text)
        written = written.lower()
    words = list(_WORD.finditer(source))
    if words and (zone := _ZONE.fullmatch(words[0][0])):
        raise ScheduleError(
            "a zone cannot stand in the expression",
            hint=f"give it as timezone: {zone[1]}",
            source=text,
            end=words[0].end(),
        )
    if len(words) not in (5, 6):
        raise _wrong_count(source, len(words))
    kinds = SIX if len(words) == 6 else FIVE
    plus = words[-1][0].startswith("+")
    found = []
    for kind, word in zip(kinds, words, strict=True):
        value, at = word[0], word.start()
        if kind is WEEKDAY and plus:
            value, at = value[1:], at + 1
        if not value:
            raise ScheduleError(f"{kind.name}: + needs a weekday after it", source=source, start=at - 1, end=at)
        found.append(parse_field(kind, value, seed=seed, source=source, at=at))
    if len(found) == 5:
        found.insert(0, Values("0", values=1))
    second, minute, hour, day, month, weekday = found
    return Expression(
        text=" ".join(written.split()),
        second=second,
        minute=minute,
        hour=hour,
        day=day,
        month=month,
        weekday=weekday,
        has_seconds=kinds is SIX,
        both_days=plus or day.starred or weekday.starred,
        plus=plus,
    )


def _macro(written: str, text: str) -> str:
    name = written.lower()
    if name in MACROS:
        return MACROS[name]
    at = text.index("@")
    hint = f"there are {', '.join(MACROS)}"
    if name == "@reboot":
        hint = "a schedule has no boot; trigger a run when the machine starts instead"
    elif name.startswith("@every "):
        hint = f"that is an interval: Every({name[7:].strip()!r}), or every: {name[7:].strip()} in a job"
    raise ScheduleError(f"'{written}' is not a macro", hint=hint, source=text, start=at, end=at + len(written))


def _wrong_count(source: str, count: int) -> ScheduleError:
    if count == 7:
        hint = "there is no year field; use starts_at and ends_at"
    elif count == 0:
        hint = "for example '0 2 * * *', every day at 02:00"
    else:
        hint = "minute hour day-of-month month day-of-week, with seconds in front if there are six"
    return ScheduleError(f"5 or 6 fields are needed and this has {count}", hint=hint, source=source, end=len(source))
