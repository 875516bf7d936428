"""A cron expression as an English sentence."""

from itertools import pairwise

from fleetcron.times.expression import Expression
from fleetcron.times.fields import MONTH, WEEKDAY, Values

_MOST_TIMES = 6
_ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def sentence(expression: Expression) -> str:
    """`30 2 * * 1-5` is "at 02:30 on Monday to Friday"."""
    times, when = _times(expression), _days(expression)
    if when == "every day" and (times.startswith("every") or times.endswith(("every hour", "every minute"))):
        when = ""
    return f"{times} {when}".rstrip()


def join(items: list[str], last: str = "and") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def ranges(values: list[int], name: list[str] | None = None) -> str:
    """1, 2, 3, 5 is "1 to 3 and 5"."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    said = []
    for run in runs:
        ends = [name[value] if name else str(value) for value in (run[0], run[-1])]
        if len(run) == 1:
            said.append(ends[0])
        elif len(run) == 2:
            said += ends
        else:
            said.append(f"{ends[0]} to {ends[1]}")
    return join(said)


def _times(expression: Expression) -> str:
    seconds, minutes, hours = (field.listed() for field in (expression.second, expression.minute, expression.hour))
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        with_seconds = seconds != [0]
        times = [
            f"{h:02}:{m:02}" + (f":{s:02}" if with_seconds else "") for h in hours for m in minutes for s in seconds
        ]
        return f"at {join(times)}"
    if seconds == [0]:
        text = _within(minutes, "minute", 60)
    else:
        text = _within(seconds, "second", 60)
        if len(minutes) == 60:
            text += " of every minute" if text.startswith("at ") else ""
        else:
            text += f" of minute {minutes[0]}" if len(minutes) == 1 else f" of {_within(minutes, 'minute', 60)}"
    if len(hours) == 24 and text.startswith("at ") and not text.endswith("every minute"):
        return f"{text} of every hour"
    return text + _in_hours(hours)


def _within(values: list[int], unit: str, size: int) -> str:
    if len(values) == size:
        return f"every {unit}"
    if step := _step(values, size):
        start = "" if values[0] == 0 else f", from {unit} {values[0]} on"
        return f"every {step} {unit}s{start}"
    return f"at {unit}{'s' if len(values) > 1 else ''} {ranges(values)}"


def _step(values: list[int], size: int) -> int | None:
    """The step of an evenly spaced list that fills its field to the end, or None."""
    if len(values) < 3:
        return None
    step = values[1] - values[0]
    even = all(later - earlier == step for earlier, later in pairwise(values))
    return step if step > 1 and even and values[0] < step and values[-1] + step >= size else None


def _in_hours(hours: list[int]) -> str:
    if len(hours) == 24:
        return ""
    if step := _step(hours, 24):
        return f" of every {step} hours" + ("" if hours[0] == 0 else f", from {hours[0]:02}:00 on")
    if len(hours) > 1 and hours[-1] - hours[0] == len(hours) - 1:
        return f" from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f" of hour{'s' if len(hours) > 1 else ''} {ranges(hours)}"


def _days(expression: Expression) -> str:
    date, week, months = _dates(expression.day), _weekdays(expression.weekday), _months(expression)
    either_is_full = not expression.both_days and not (date and week)
    if either_is_full or (not date and not week):
        return f"every day{months}"
    if not date or not week:
        return f"on {date or week}{months}"
    if expression.both_days:
        return f"on {date}{months}, if that is {week}"
    return f"on {date}, and also on {week}{months}"


def _dates(day: Values) -> str:
    if day.values == (1 << 32) - 2:
        return ""
    said = []
    if day.values:
        listed = day.listed()
        said.append(f"day{'s' if len(listed) > 1 else ''} {ranges(listed)}")
    said += ["the last day" if back == 0 else f"the day {back} before the last" for back in sorted(day.last)]
    said += [f"the weekday nearest to day {n}" for n in sorted(day.nearest)]
    for back in sorted(day.last_workday):
        said.append("the last weekday" if back == 0 else f"the weekday nearest to {back} days before the last")
    return f"{join(said)} of the month"


def _weekdays(weekday: Values) -> str:
    if weekday.values == 0b1111111:
        return ""
    names = [*WEEKDAY.long_names, "Sunday"]
    said = []
    if weekday.values:
        # Monday first: that is how people list them
        listed = sorted(value or 7 for value in weekday.listed())
        said.append(ranges(listed, names))
    said += [f"the {_ORDINALS[n]} {names[day]} of the month" for day, n in sorted(weekday.nth)]
    said += [f"the last {names[day]} of the month" for day in sorted(weekday.last_weekday)]
    return join(said)


def _months(expression: Expression) -> str:
    listed = expression.month.listed()
    return "" if len(listed) == 12 else f" in {ranges(listed, ['', *MONTH.long_names])}"
