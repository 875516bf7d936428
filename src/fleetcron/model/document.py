"""The shape of a document, as pydantic models: jobs and calendars as people write them in YAML and clients in JSON.

Only the shape and single values are checked here; rules between fields are in `checks.py`. A field that may be written
in a short way (`overlap: skip`) is brought to its long form before it is checked. A union names its case by the key
that is there, so that a mistake is reported for the case that was meant; the tags have a blank in them, so that they
are never taken for a key.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from fleetcron.errors import ScheduleError
from fleetcron.model import interpolation, writing
from fleetcron.model.rules import HOUR_MS, AlertRule, MisfirePolicy, MisfireRule, OverlapPolicy, Retention, RetryRule
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.values import (
    Argument,
    At,
    Count,
    CronText,
    Day,
    Duration,
    DurationOrZero,
    Function,
    Instant,
    Interval,
    Line,
    LongLine,
    Name,
    Payload,
    Shadow,
    Share,
    Text,
    Weekday,
    ZoneName,
)

_RETRY, _MISFIRE, _ALERTS, _RETENTION = RetryRule(), MisfireRule(), AlertRule(), Retention()
_MOST_ENTRIES, _MOST_DATES = 100, 20_000


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    @cache
    def as_it_is(cls) -> Self:
        """With nothing but defaults: one for all, nobody changes it."""
        return cls()


def _duration_field(default_ms: int, description: str) -> Any:
    return Field(
        default=default_ms,
        description=description,
        json_schema_extra={"default": writing.duration_text(default_ms)},
    )


def _nothing(kind: type[list[Any]] | type[dict[Any, Any]], description: str, **limits: Any) -> Any:
    """An empty default. (Pydantic copies a default that can be changed, deeply: a sixth of the time of a document.)"""
    return Field(default_factory=kind, description=description, json_schema_extra={"default": kind()}, **limits)


def _short_for(name: str, written: Any) -> BeforeValidator:
    """A text or a number where a mapping may stand is the value of its main field. `written` is all that may stand."""

    def lengthen(value: object) -> object:
        return {name: value} if isinstance(value, str | int | float) else value

    return BeforeValidator(lengthen, json_schema_input_type=written)


def _listed(value: object) -> object:
    if isinstance(value, list) and len(value) > _MOST_ENTRIES:  # before each of them is read
        raise ScheduleError(f"is too long: {_MOST_ENTRIES} at most", hint="make several jobs")
    return [value] if isinstance(value, dict) else value


def _by_key(kind: str, *names: str) -> Callable[[object], str | None]:
    """Which case of a union a mapping is: the first of these keys that it has."""

    def case(value: object) -> str | None:
        return next((f"{name} {kind}" for name in names if isinstance(value, dict) and name in value), None)

    return case


# -- when


class CronShape(Shape):
    cron: CronText = Field(description="a cron expression of 5 fields, or 6 with seconds in front")
    timezone: ZoneName = Field(default="UTC", description="the zone in which its times are read")
    dst_gap: Literal["skip", "shift"] | None = Field(
        default=None, description="what happens to times that do not exist; derived from the expression unless given"
    )
    dst_fold: Literal["first", "second", "both"] | None = Field(
        default=None, description="what happens to times that exist twice; derived from the expression unless given"
    )
    month_end: Literal["skip", "clamp"] = Field(
        default="skip", description="what happens to days that a month does not have"
    )
    derived: list[Literal["dst_gap", "dst_fold"]] = _nothing(
        list, "which of the policies were derived and not chosen: these are derived anew", max_length=2
    )


class EveryShape(Shape):
    every: Interval = Field(description="an interval of real time")
    anchor: Instant | None = Field(
        default=None, description="an instant at which it ticks; the job's creation unless given"
    )


class OnceShape(Shape):
    at: At = Field(description="an instant, or a local time together with a timezone")
    timezone: ZoneName | None = Field(default=None, description="the zone of a local time")
    dst_gap: Literal["skip", "shift"] = Field(
        default="shift", description="what happens if the local time does not exist"
    )
    dst_fold: Literal["first", "second", "both"] = Field(default="first", description="what happens if it exists twice")


EntryShape = Annotated[
    Annotated[CronShape, Tag("cron entry")]
    | Annotated[EveryShape, Tag("every entry")]
    | Annotated[OnceShape, Tag("at entry")],
    Discriminator(_by_key("entry", "cron", "every", "at")),
]


class CalendarUseShape(Shape):
    name: Name = Field(description="the calendar's name")
    use: Literal["exclude", "require"] = Field(default="exclude", description="never on its days, or only on its days")
    on: Literal["skip", "next", "previous", "defer"] = Field(
        default="skip",
        description="what happens to a tick that it refuses: next and previous for days, defer for windows",
    )


# -- what


def _command_case(value: object) -> str:
    return "shell text" if isinstance(value, str) else "argument list"


class PythonShape(Shape):
    python: Function = Field(description="module:function")


class CommandShape(Shape):
    command: Annotated[
        Annotated[list[Argument], Field(min_length=1, max_length=1000), Tag("argument list")]
        | Annotated[Argument, Field(min_length=1), Tag("shell text")],
        Discriminator(_command_case),
    ] = Field(description="the program and its arguments; one text for the shell with shell: true")
    env: dict[str, Argument] = _nothing(
        dict, "variables, added to an empty environment; may name secrets: secret://name"
    )
    cwd: LongLine | None = Field(default=None, description="the folder in which it runs")
    shell: bool = Field(default=False, description="run by a shell, where the operator allows it")


class HttpCallShape(Shape):
    url: LongLine = Field(description="http:// or https://")
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = Field(
        default="POST", description="the HTTP method"
    )
    headers: dict[str, Argument] = _nothing(
        dict, "added to what fleetcron sends; may name secrets: Bearer secret://name"
    )
    body: Argument | None = Field(default=None, description="what is sent; the payload as JSON unless given")


class HttpShape(Shape):
    http: HttpCallShape = Field(description="an HTTP call; 2xx is success")


class PublicationShape(Shape):
    broker: Line = Field(description="a broker of the worker's settings")
    to: Line = Field(description="the subject, queue or topic")
    headers: dict[str, Argument] = _nothing(dict, "sent with the payload")


class PublishShape(Shape):
    publish: PublicationShape = Field(description="hand the payload to a broker")


TargetShape = Annotated[
    Annotated[PythonShape, Tag("python target")]
    | Annotated[CommandShape, Tag("command target")]
    | Annotated[HttpShape, Tag("http target")]
    | Annotated[PublishShape, Tag("publish target")],
    Discriminator(_by_key("target", "python", "command", "http", "publish")),
]


# -- rules


class FixedShape(Shape):
    fixed: Duration = Field(description="the same delay before every attempt")


class GrowthShape(Shape):
    first: Duration = Field(description="the first delay; each next one is twice as long")
    max: Duration = _duration_field(_RETRY.max_delay_ms, "the longest delay")


class ExponentialShape(Shape):
    exponential: GrowthShape = Field(description="delays that double")


def _backoff_case(value: object) -> str | None:
    return "delays list" if isinstance(value, list) else _by_key("backoff", "fixed", "exponential")(value)


class RetryShape(Shape):
    max_attempts: int = Field(
        default=_RETRY.max_attempts, ge=1, le=1000, description="how often it may fail; 1: no retry"
    )
    backoff: Annotated[
        Annotated[list[Duration], Field(min_length=1, max_length=100), Tag("delays list")]
        | Annotated[FixedShape, Tag("fixed backoff")]
        | Annotated[ExponentialShape, Tag("exponential backoff")],
        Discriminator(_backoff_case),
    ] = Field(
        default=list(_RETRY.delays_ms),
        description="the delays before the attempts (the last one repeats), or fixed, or exponential",
        json_schema_extra={"default": [writing.duration_text(delay) for delay in _RETRY.delays_ms]},
    )
    jitter: Share = Field(default=_RETRY.jitter, description="a random share that is added to each delay")
    max_losses: int = Field(default=_RETRY.max_losses, ge=1, le=1000, description="how often its worker may vanish")
    retry_on: list[Line] = _nothing(list, "error codes to retry; empty: all", max_length=100)
    give_up_on: list[Line] = _nothing(list, "error codes that end the run at once", max_length=100)


class OverlapShape(Shape):
    policy: OverlapPolicy = Field(default="skip", description="what happens to a tick while the job still runs")
    max_running: Count | None = Field(default=None, description="how many may run at once; only for allow")
    concurrency_key: Line | None = Field(default=None, description="jobs with the same key do not overlap either")


class MisfireShape(Shape):
    policy: MisfirePolicy = Field(default=_MISFIRE.policy, description="which of the missed ticks are run later")
    window: Duration = _duration_field(_MISFIRE.window_ms, "what is older is not run")
    limit: int = Field(default=_MISFIRE.limit, ge=1, le=10_000, description="how many are run at most")
    grace: DurationOrZero = _duration_field(_MISFIRE.grace_ms, "how late a tick may be before it counts as missed")
    lane: Literal["catchup", "live"] = Field(default=_MISFIRE.lane, description="catchup leaves slots for live ticks")


class AlertShape(Shape):
    on_failure: bool = Field(default=_ALERTS.on_failure, description="a run is dead")
    after_missed: Count | None = Field(default=_ALERTS.after_missed, description="so many ticks in a row were missed")
    on_late: bool = Field(default=_ALERTS.on_late, description="a run started after its start deadline, or not at all")
    on_duration: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = Field(
        default=_ALERTS.on_duration, description="an attempt took more than this share of its timeout"
    )
    channels: list[Line] = _nothing(list, "who is told; empty: the default channels", max_length=100)


class RetentionShape(Shape):
    age: Duration = _duration_field(_RETENTION.age_ms, "how long runs stay in the hot store")
    runs: Count | None = Field(default=_RETENTION.runs, description="and how many of them at most")


class JobShape(Shape):
    name: Name = Field(description="unique within the tenant")
    tenant: Name = Field(default=DEFAULT_TENANT, description="who owns it")
    description: Text | None = Field(default=None, description="for people")
    type: Line | None = Field(
        default=None, description="a label for filters and limits; the handler's name unless given"
    )
    managed_by: Line | None = Field(
        default=None, description="who keeps this definition, such as a file under version control"
    )
    schedule: Annotated[
        list[EntryShape],
        BeforeValidator(_listed, json_schema_input_type=EntryShape | list[EntryShape]),
        Field(min_length=1),
    ] = Field(description="one entry or several; ticks at the same instant are one tick")
    starts_at: Instant | None = Field(default=None, description="no tick before this instant")
    ends_at: Instant | None = Field(default=None, description="no tick from this instant on")
    max_ticks: Count | None = Field(default=None, description="finished after so many ticks")
    calendars: list[Annotated[CalendarUseShape, _short_for("name", Name | CalendarUseShape)]] = _nothing(
        list, "named calendars to exclude or to require", max_length=20
    )
    jitter: DurationOrZero = _duration_field(0, "spread the start over this window, by tenant and name")
    run: TargetShape = Field(description="what runs")
    payload: Payload = Field(default_factory=dict, description="a JSON object for the handler", validate_default=False)
    pool: Name = Field(default="default", description="the workers that run it")
    priority: int = Field(default=0, ge=-100, le=100, description="higher first")
    timeout: Duration = _duration_field(HOUR_MS, "per attempt; work is really stopped")
    retry: RetryShape = Field(default_factory=RetryShape.as_it_is, description="when a failed attempt is tried again")
    overlap: Annotated[OverlapShape, _short_for("policy", OverlapPolicy | OverlapShape)] = Field(
        default_factory=OverlapShape.as_it_is, description="what happens to a tick while the job still runs"
    )
    misfire: Annotated[MisfireShape, _short_for("policy", MisfirePolicy | MisfireShape)] = Field(
        default_factory=MisfireShape.as_it_is, description="what happens to ticks that were not planned in time"
    )
    start_deadline: Duration | None = Field(
        default=None, description="the latest acceptable first start after the tick"
    )
    depends_on: list[Name] = _nothing(list, "jobs of the tenant that come first", max_length=100)
    on_upstream_failure: Literal["skip", "run", "wait"] = Field(
        default="skip", description="if one of them did not succeed"
    )
    region: Name | None = Field(default=None, description="home region; null: any")
    alerts: AlertShape = Field(default_factory=AlertShape.as_it_is, description="what somebody is told about")
    pause_after_failures: Count | None = Field(
        default=None, description="pause the job after so many dead runs in a row"
    )
    retention: Annotated[RetentionShape, _short_for("age", Duration | RetentionShape)] = Field(
        default_factory=RetentionShape.as_it_is, description="how long runs stay in the hot store"
    )
    shadow: Shadow = Field(
        default=None,
        description="a new job begins in shadow: another scheduler runs it, and its ticks are only noted. An instant: "
        "until then. Afterwards only a hand-over changes it, whatever a file says",
        json_schema_extra={"default": False},
    )
    derived: list[Literal["type"]] = _nothing(list, "the type was derived from run, and is derived anew", max_length=1)


# -- calendars


class WindowShape(Shape):
    from_: Instant = Field(alias="from", description="the first instant")
    to: Instant = Field(description="the end, not included")


class RepeatedShape(Shape):
    cron: CronText = Field(description="when a window begins")
    timezone: ZoneName | None = Field(default=None, description="the calendar's zone, or UTC, unless given")
    for_: Duration = Field(alias="for", description="how long a window lasts")


class CalendarShape(Shape):
    name: Name = Field(description="unique within the tenant")
    tenant: Name = Field(default=DEFAULT_TENANT, description="who owns it")
    timezone: ZoneName | None = Field(
        default=None, description="where its days are counted; the job's zone unless given"
    )
    weekdays: list[Weekday] = _nothing(list, "business days: these weekdays without the holidays", max_length=7)
    holidays: list[Day] = _nothing(list, "2026-12-25, or 12-25 for every year", max_length=_MOST_DATES)
    windows: list[WindowShape] = _nothing(list, "stretches in which nothing starts", max_length=1000)
    repeated: list[RepeatedShape] = _nothing(list, "windows that come again", max_length=100)
    ics: LongLine | None = Field(default=None, description="an iCalendar file of holidays, next to the document")


class FileShape(Shape):
    """Jobs and calendars. Keys that begin with `x-` are left alone: a place for YAML anchors."""

    model_config = ConfigDict(title="fleetcron jobs", json_schema_extra={"patternProperties": {"^x-": {}}})

    env: list[Annotated[str, Field(pattern=f"^{interpolation.NAME}$")]] = _nothing(
        list, "variables of the environment that texts of this file may use, as ${NAME}"
    )
    jobs: list[JobShape] = _nothing(list, "the jobs")
    calendars: list[CalendarShape] = _nothing(list, "named calendars that jobs use")
