"""A checked document becomes what it means: shapes to definitions and calendars."""

import json
from dataclasses import replace

from fleetcron.model.calendar import CalendarDocument, RepeatedWindow
from fleetcron.model.definition import Definition
from fleetcron.model.document import (
    CalendarShape,
    CommandShape,
    CronShape,
    EveryShape,
    ExponentialShape,
    FixedShape,
    HttpShape,
    JobShape,
    OnceShape,
    PublishShape,
    PythonShape,
    RetryShape,
)
from fleetcron.model.entry import cron_entry, once_entry
from fleetcron.model.rules import (
    AlertRule,
    CalendarUse,
    Entry,
    EveryEntry,
    MisfireRule,
    OverlapRule,
    Retention,
    RetryRule,
)
from fleetcron.model.target import CommandTarget, HttpTarget, PublishTarget, PythonTarget, Target


def definition_of(job: JobShape) -> Definition:
    return Definition(
        name=job.name,
        schedule=tuple(map(entry_of, job.schedule)),
        run=_target(job.run),
        tenant=job.tenant,
        description=job.description,
        type="" if job.type is None or "type" in job.derived else job.type,
        managed_by=job.managed_by,
        starts_ms=job.starts_at,
        ends_ms=job.ends_at,
        max_ticks=job.max_ticks,
        calendars=tuple(CalendarUse(use.name, use.use, use.on) for use in job.calendars),
        jitter_ms=job.jitter,
        payload=json.loads(json.dumps(job.payload)),  # its own: what the caller does with his does not matter
        pool=job.pool,
        priority=job.priority,
        timeout_ms=job.timeout,
        retry=_retry(job.retry),
        overlap=OverlapRule(job.overlap.policy, job.overlap.max_running, job.overlap.concurrency_key),
        misfire=MisfireRule(
            job.misfire.policy, job.misfire.window, job.misfire.limit, job.misfire.grace, job.misfire.lane
        ),
        start_deadline_ms=job.start_deadline,
        depends_on=tuple(job.depends_on),
        on_upstream_failure=job.on_upstream_failure,
        region=job.region,
        alerts=AlertRule(
            job.alerts.on_failure,
            job.alerts.after_missed,
            job.alerts.on_late,
            job.alerts.on_duration,
            tuple(job.alerts.channels),
        ),
        pause_after_failures=job.pause_after_failures,
        retention=Retention(job.retention.age, job.retention.runs),
        shadow_ms=job.shadow,
    )


def entry_of(shape: CronShape | EveryShape | OnceShape) -> Entry:
    match shape:
        case CronShape():
            gap = None if "dst_gap" in shape.derived else shape.dst_gap
            fold = None if "dst_fold" in shape.derived else shape.dst_fold
            return cron_entry(shape.cron, shape.timezone, gap, fold, shape.month_end)
        case EveryShape():
            return EveryEntry(shape.every, shape.anchor)
        case OnceShape():
            return once_entry(shape.at, shape.timezone, shape.dst_gap, shape.dst_fold)


def _target(shape: PythonShape | CommandShape | HttpShape | PublishShape) -> Target:
    match shape:
        case PythonShape():
            return PythonTarget(shape.python)
        case CommandShape():
            argv = (shape.command,) if isinstance(shape.command, str) else tuple(shape.command)
            return CommandTarget(argv, dict(shape.env), shape.cwd, shape.shell)
        case HttpShape():
            return HttpTarget(shape.http.url, shape.http.method, dict(shape.http.headers), shape.http.body)
        case PublishShape():
            return PublishTarget(shape.publish.broker, shape.publish.to, dict(shape.publish.headers))


def _retry(shape: RetryShape) -> RetryRule:
    rule = RetryRule(
        max_attempts=shape.max_attempts,
        jitter=float(shape.jitter),
        max_losses=shape.max_losses,
        retry_on=tuple(shape.retry_on),
        give_up_on=tuple(shape.give_up_on),
    )
    match shape.backoff:
        case FixedShape(fixed=delay):
            return replace(rule, backoff="fixed", delays_ms=(delay,))
        case ExponentialShape(exponential=growth):
            return replace(rule, backoff="exponential", delays_ms=(growth.first,), max_delay_ms=growth.max)
        case delays:
            return replace(rule, backoff="list", delays_ms=tuple(delays))


def calendar_of(shape: CalendarShape, more_holidays: tuple[str, ...] = ()) -> CalendarDocument:
    return CalendarDocument(
        shape.name,
        shape.tenant,
        # the zone of a calendar of windows is only the one that its repeated windows have if they give none
        None if shape.windows or shape.repeated else shape.timezone,
        tuple(shape.weekdays),
        (*shape.holidays, *more_holidays),
        tuple((window.from_, window.to) for window in shape.windows),
        tuple(
            RepeatedWindow(each.cron, each.timezone or shape.timezone or "UTC", each.for_) for each in shape.repeated
        ),
    )
