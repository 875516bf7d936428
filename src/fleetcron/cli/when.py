"""The options that describe a schedule on the command line, shared by the commands that take one."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import click

from fleetcron.clock import utc_now
from fleetcron.errors import ScheduleError
from fleetcron.times import Cron, Every, Once
from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable
from fleetcron.times.zones import zone

Command = TypeVar("Command", bound=Callable[..., Any])
_COMMANDS = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")  # beside what JSON escapes itself


@dataclass(frozen=True, slots=True)
class When:
    """What was written on the command line, before it is a schedule."""

    timezone: str
    dst_gap: str | None
    dst_fold: str | None
    month_end: str
    every: str | None
    anchor: str | None
    at: str | None
    job: str | None
    jitter: str | None

    def schedule(self, expression: str | None) -> Schedule:
        kinds = (("EXPR", expression), ("--every", self.every), ("--at", self.at))
        given = [name for name, value in kinds if value is not None]
        if len(given) != 1:
            said = f"{' and '.join(given)} are given" if given else "nothing is given"
            raise ScheduleError(f"one of EXPR, --every and --at is needed; {said}", hint="for example '0 2 * * *'")
        if self.anchor is not None and self.every is None:
            raise ScheduleError("--anchor goes with --every")
        if self.every is not None and (self.dst_gap or self.dst_fold or self.month_end != "skip"):
            raise ScheduleError("an interval is real time: it has no --dst-gap, --dst-fold or --month-end")
        entry = self._entry(expression)
        if self.jitter is None:
            return entry
        return Timetable(entry, jitter=self.jitter, seed=self.job)

    def _entry(self, expression: str | None) -> Schedule:
        if expression is not None:
            return Cron(expression, self.timezone, self.dst_gap, self.dst_fold, self.month_end, seed=self.job)
        if self.every is not None:
            zone(self.timezone)
            return Every(self.every, self.anchor)
        return Once(str(self.at), self.timezone, self.dst_gap, self.dst_fold)

    def instant(self, text: str | None) -> datetime:
        """An instant of the command line: with an offset, or local in --timezone. Nothing means now."""
        if text is None:
            return utc_now()
        return Once(text, self.timezone, "shift", "first").at


_OPTIONS = (
    click.option("--timezone", "--tz", default="UTC", show_default=True, metavar="ZONE", help="IANA name."),
    click.option("--dst-gap", metavar="POLICY", help="Times that do not exist: skip, shift. [default: by expression]"),
    click.option("--dst-fold", metavar="POLICY", help="Times that come twice: first, second or both. "
                 "[default: by expression]"),
    click.option("--month-end", default="skip", show_default=True, metavar="POLICY", help="Day 31 in short months: "
                 "skip or clamp."),
    click.option("--every", metavar="DURATION", help="An interval instead of EXPR, such as 15m."),
    click.option("--anchor", metavar="T", help="Where --every counts from. [default: 1970-01-01T00:00:00Z]"),
    click.option("--at", metavar="T", help="One instant instead of EXPR; without an offset it is local in --timezone."),
    click.option("--job", metavar="TENANT/NAME", help="Whose H slots and jitter to show."),
    click.option("--jitter", metavar="DURATION", help="Show starts with this jitter (needs --job)."),
)  # fmt: skip


def when_options(function: Command) -> Command:
    """Add the schedule options; the command gets them as one `when`."""

    def command(**values: Any) -> Any:
        names = When.__dataclass_fields__
        when = When(**{name: values.pop(name) for name in names})
        return function(when=when, **values)

    command.__doc__ = function.__doc__
    command.__name__ = function.__name__
    command.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        command = option(command)
    return command  # type: ignore[return-value]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
after_option = click.option(
    "--after", "--from", "after", metavar="T", help="Ticks later than this instant. [default: now]"
)


def print_json(value: object) -> None:
    click.echo(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that can be read in a terminal: letters as they are, and nothing that would command it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
