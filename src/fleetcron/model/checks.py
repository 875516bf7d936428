"""The rules between the fields of a job or a calendar. Field mistakes are found before; they hide nothing here.

A rule is asked only if the fields that it looks at were right: `bad` has the paths of those that were not.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import urlsplit

from fleetcron.errors import ScheduleError
from fleetcron.model import payload, secret
from fleetcron.model.calendar import CalendarDocument, local_almanac
from fleetcron.model.conversion import calendar_of, entry_of
from fleetcron.model.document import CalendarShape, CommandShape, HttpShape, JobShape, PublishShape
from fleetcron.model.entry import is_hashed
from fleetcron.model.mistakes import Path
from fleetcron.model.rules import CalendarUse, CronEntry
from fleetcron.model.timing import Timing
from fleetcron.times.instants import from_ms, iso
from fleetcron.times.zones import zone

Problem = tuple[Path, str, str | None]
# None: it has mistakes itself, or nobody here knows it
KnownCalendars = Mapping[tuple[str, str], CalendarDocument | None]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# These change what a program loads or runs, or how a shell reads; the worker sets them, not a job.
_RESERVED = re.compile(r"LD_.*|DYLD_.*|PYTHON.*|PATH|BASH_ENV|ENV|IFS|GIT_.*|FLEETCRON_.*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class Draft:
    """A job that may have mistakes. What was wrong has a stand-in that no rule looks at."""

    job: JobShape
    bad: frozenset[Path]
    calendars: KnownCalendars

    def has(self, *paths: Path) -> bool:
        """Whether all of these fields were right."""
        return not any(_touches(wrong, path) for wrong in self.bad for path in paths)


def _touches(wrong: Path, path: Path) -> bool:
    shorter = min(len(wrong), len(path))
    return wrong[:shorter] == path[:shorter]


def job_problems(draft: Draft) -> Iterator[Problem]:
    for rule in _RULES:
        yield from rule(draft)


# -- when


def _schedule_fires(draft: Draft) -> Iterator[Problem]:
    """S2-11 … S2-14: there are ticks, in these zones, under these policies, with what is known of the calendars."""
    job = draft.job
    entries = [(at, entry_of(entry)) for at, entry in enumerate(job.schedule) if draft.has(("schedule", at))]
    plain = Timing(
        tuple(entry for _, entry in entries),
        seed=f"{job.tenant}/{job.name}" if any(is_hashed(entry) for _, entry in entries) else None,
        starts_ms=job.starts_at,
        ends_ms=job.ends_at,
    )
    is_whole = draft.has(("schedule",), ("starts_at",), ("ends_at",)) and not any(_bounds_are_ordered(draft))
    wrong = _no_ticks_at_all(plain) if is_whole else None
    if is_whole and wrong is None:
        yield from _calendars_leave_ticks(draft, plain)
        return
    alone = [
        (at, entry, _no_ticks(replace(plain, entries=(entry,), starts_ms=None, ends_ms=None))) for at, entry in entries
    ]
    for at, entry, error in alone:
        if error is not None:
            yield ("schedule", at, "cron" if isinstance(entry, CronEntry) else "at"), error.mistake, error.hint
    if wrong is not None and not any(error for _, _, error in alone):
        yield ("schedule",), wrong.mistake, wrong.hint


def _calendars_leave_ticks(draft: Draft, plain: Timing) -> Iterator[Problem]:
    job = draft.job
    known = [draft.calendars.get((job.tenant, use.name)) for use in job.calendars]
    given = [calendar for calendar in known if calendar is not None]
    if not given or len(given) < len(known) or not draft.has(("calendars",)) or any(_calendars_fit(draft)):
        return  # one that is not here is in the database, perhaps
    uses = tuple(CalendarUse(use.name, use.use, use.on) for use in job.calendars)
    wrong = _no_ticks(replace(plain, tenant=job.tenant, calendars=uses), given)
    if wrong is not None:
        yield ("calendars",), wrong.mistake, wrong.hint


@lru_cache(1024)  # of many jobs in one document, most have the schedule of another one
def _no_ticks_at_all(timing: Timing) -> ScheduleError | None:
    return _no_ticks(timing)


def _no_ticks(timing: Timing, calendars: Iterable[CalendarDocument] = ()) -> ScheduleError | None:
    """Why there is no tick, by the node's own zones."""
    try:
        timing.timetable(local_almanac(timing.parts(), calendars))
    except ScheduleError as error:
        return error
    return None


def _bounds_are_ordered(draft: Draft) -> Iterator[Problem]:
    starts, ends = draft.job.starts_at, draft.job.ends_at
    if starts is not None and ends is not None and ends <= starts and draft.has(("starts_at",), ("ends_at",)):
        yield ("ends_at",), f"{iso(from_ms(ends))} is not after starts_at {iso(from_ms(starts))}", None


def _calendars_fit(draft: Draft) -> Iterator[Problem]:
    seen: set[str] = set()
    for at, use in enumerate(draft.job.calendars):
        if not draft.has(("calendars", at)):
            continue
        if use.name in seen:
            yield ("calendars", at), f"calendar {use.name} is used twice", "use it once"
        seen.add(use.name)
        known = draft.calendars.get((draft.job.tenant, use.name))
        if known is None:
            continue
        if known.is_of_days and use.on == "defer":
            yield ("calendars", at, "on"), f"defer is for windows, and {use.name} has days", "write next or previous"
        if known.is_of_windows and use.on in ("next", "previous"):
            yield ("calendars", at, "on"), f"{use.on} is for days, and {use.name} has windows", "write skip or defer"
        if known.is_of_windows and use.use == "require":
            yield ("calendars", at, "use"), f"{use.name} has windows, which can only be excluded", "write exclude"


def _jitter_is_below_deadline(draft: Draft) -> Iterator[Problem]:
    """S2-15: a job that would start after its deadline by its own jitter is refused."""
    deadline = draft.job.start_deadline
    if deadline is not None and draft.job.jitter >= deadline and draft.has(("jitter",), ("start_deadline",)):
        yield ("jitter",), "is not shorter than start_deadline: the job would miss it by itself", "shorten the jitter"


# -- what


def _command_is_clear(draft: Draft) -> Iterator[Problem]:
    run = draft.job.run
    if not isinstance(run, CommandShape):
        return
    if draft.has(("run", "command"), ("run", "shell")):
        if isinstance(run.command, str) and not run.shell:
            yield ("run", "command"), "must be a list", 'write ["program", "argument"], or shell: true'
        elif isinstance(run.command, list) and run.shell:
            yield ("run", "command"), "must be one text for the shell", "or leave out shell: true"
        elif isinstance(run.command, list) and not run.command[0].strip():
            yield ("run", "command", 0), "the program has no name", None
    for name in run.env:
        if not _VARIABLE.fullmatch(name):
            yield ("run", "env", name), "is not the name of a variable", "letters, digits and underscores"
        elif _RESERVED.fullmatch(name):
            yield ("run", "env", name), "may not be set by a job", "it is for the worker to set"


def _http_is_clear(draft: Draft) -> Iterator[Problem]:
    run = draft.job.run
    if isinstance(run, HttpShape):
        if draft.has(("run", "http", "url")) and (wrong := _wrong_url(run.http.url)):
            yield ("run", "http", "url"), wrong, "write https://host/path"
        yield from _headers(("run", "http", "headers"), run.http.headers)
    if isinstance(run, PublishShape):
        yield from _headers(("run", "publish", "headers"), run.publish.headers)


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_right or " " in url:
        return "is not a URL"
    return "has a password or user in it; send it in a header" if "@" in parts.netloc else None


def _headers(path: Path, headers: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            yield (*path, name), "is not the name of a header", None
        elif "\r" in value or "\n" in value:
            yield (*path, name), "a header is one line", None


def _secrets_are_where_they_are_put_in(draft: Draft) -> Iterator[Problem]:
    """What is written elsewhere would run as it stands: everybody sees the arguments of a program, and every log an
    address."""
    run = draft.job.run
    hint = "put it into env, headers, body or payload; the program or the other side reads it there"
    elsewhere: list[tuple[Path, str]] = []
    inside: list[tuple[Path, str]] = []
    if isinstance(run, CommandShape):
        argv = [run.command] if isinstance(run.command, str) else run.command
        elsewhere = [(("run", "command"), " ".join(argv)), (("run", "cwd"), run.cwd or "")]
        inside = [(("run", "env", name), value) for name, value in run.env.items()]
    elif isinstance(run, HttpShape):
        elsewhere = [(("run", "http", "url"), run.http.url)]
        inside = [(("run", "http", "headers", name), value) for name, value in run.http.headers.items()]
        inside.append((("run", "http", "body"), run.http.body or ""))
    yield from ((path, "a secret cannot stand here", hint) for path, text in elsewhere if secret.SCHEME in text)
    for path, text in inside:
        if (wrong := secret.wrong_reference(text)) is not None:
            yield path, f"'{wrong}' names no secret", "write secret://name: letters, digits, dots, dashes"


def _payload_is_json(draft: Draft) -> Iterator[Problem]:
    for path, text, hint in payload.problems(draft.job.payload):
        yield ("payload", *path), text, hint


# -- rules


def _retry_is_clear(draft: Draft) -> Iterator[Problem]:
    retry = draft.job.retry
    growth = getattr(retry.backoff, "exponential", None)
    if growth is not None and growth.max < growth.first and draft.has(("retry", "backoff")):
        yield ("retry", "backoff", "exponential", "max"), "is shorter than the first delay", None
    if draft.has(("retry", "retry_on"), ("retry", "give_up_on")):
        for at, code in enumerate(retry.give_up_on):
            if code in retry.retry_on:
                yield ("retry", "give_up_on", at), f"{code} is under retry_on too", "write it in one of them"


def _overlap_is_clear(draft: Draft) -> Iterator[Problem]:
    overlap, misfire = draft.job.overlap, draft.job.misfire
    if not draft.has(("overlap", "policy")):
        return
    if overlap.max_running is not None and overlap.policy != "allow" and draft.has(("overlap", "max_running")):
        yield ("overlap", "max_running"), f"is only for allow, and the policy is {overlap.policy}", "leave it out"
    if overlap.policy == "cancel_previous" and misfire.policy == "all" and draft.has(("misfire", "policy")):
        yield (
            ("overlap", "policy"),
            "cancel_previous with misfire all: each run that is caught up would cancel the one before",
            "use misfire latest, or another overlap policy",
        )
    if overlap.policy == "skip" and (misfire.policy, misfire.lane) == ("all", "live") and draft.has(("misfire",)):
        yield (
            ("misfire", "lane"),
            "live, with misfire all and overlap skip: of the late ticks all but the first would be skipped",
            "use lane catchup, or overlap queue",
        )


def _misfire_is_clear(draft: Draft) -> Iterator[Problem]:
    misfire = draft.job.misfire
    if misfire.window < misfire.grace and draft.has(("misfire", "window"), ("misfire", "grace")):
        yield ("misfire", "window"), "is shorter than grace: nothing would be caught up", "use policy skip for that"


def _dependencies_are_clear(draft: Draft) -> Iterator[Problem]:
    job = draft.job
    if (
        job.on_upstream_failure == "wait"
        and job.start_deadline is None
        and draft.has(("on_upstream_failure",), ("start_deadline",))
    ):
        yield ("on_upstream_failure",), "wait needs a start_deadline: otherwise it may wait for ever", "add one"
    seen: set[str] = set()
    for at, name in enumerate(job.depends_on):
        if not draft.has(("depends_on", at)):
            continue
        if name == job.name and draft.has(("name",)):
            yield ("depends_on", at), "the job depends on itself", "remove it"
        elif name in seen:
            yield ("depends_on", at), f"{name} is named twice", "name it once"
        seen.add(name)


_RULES: tuple[Callable[[Draft], Iterator[Problem]], ...] = (
    _schedule_fires,
    _bounds_are_ordered,
    _calendars_fit,
    _jitter_is_below_deadline,
    _command_is_clear,
    _http_is_clear,
    _secrets_are_where_they_are_put_in,
    _payload_is_json,
    _retry_is_clear,
    _overlap_is_clear,
    _misfire_is_clear,
    _dependencies_are_clear,
)


# -- calendars


def calendar_problems(shape: CalendarShape, bad: frozenset[Path]) -> Iterator[Problem]:
    days = bool(shape.weekdays or shape.holidays or shape.ics)
    windows = bool(shape.windows or shape.repeated)
    if days and windows:
        yield (), "has both days and windows", "make two calendars, and use both in the job"
    if not days and not windows and not bad:
        yield (), "is empty", "give it holidays, weekdays, windows or repeated"
    ordered = True
    for at, window in enumerate(shape.windows):
        if window.to <= window.from_ and not any(_touches(wrong, ("windows", at)) for wrong in bad):
            ordered = False
            yield ("windows", at, "to"), "is not after from", "a window is [from, to)"
    if bad or not ordered or days == windows or shape.ics:
        return
    try:
        calendar_of(shape).build(zone)
    except ScheduleError as error:
        yield (), error.mistake, error.hint
