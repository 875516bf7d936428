"""Entries of a crontab as jobs.

Cron starts a job at its minute whatever still runs, never tries again, never ends it, and forgets what it missed. Jobs
say so, unless fleetcron's defaults are wished for; a run that no worker has started in time expires, where others would
start all at once when a worker comes. At clock changes Debian's cron runs by the clock what has a `*` in its minute or
hour, and everything else once: that is our rule as well, but for "all 24 hours" without a `*`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetcron.errors import ScheduleError
from fleetcron.imports import naming
from fleetcron.imports.commands import Command, command
from fleetcron.imports.crontab import MACROS, Entry, parted, read_crontab
from fleetcron.imports.dialect import DEBIAN, Unreadable, cron_document, expression, read_field
from fleetcron.imports.pinging import with_pings
from fleetcron.imports.pinging_line import PingingLine, read_pinging
from fleetcron.imports.plan import NO_TIMEOUT, Document, Finding, Origin, Plan
from fleetcron.model.tenant import DEFAULT_TENANT
from fleetcron.model.writing import instant_text
from fleetcron.times.expression import FIVE
from fleetcron.times.expression import MACROS as OURS
from fleetcron.times.fields import FieldKind
from fleetcron.times.zones import zone

_LATEST_M: Final = 5  # minutes: cron starts at once or never; a busy pool is given a moment
_AS_CRON: Final[Document] = {
    "timeout": NO_TIMEOUT,
    "retry": {"max_attempts": 1},
    "overlap": "allow",
    "misfire": "skip",
}
_CHOSEN: Final = re.compile(r"(?P<low>[0-9]{0,3})~(?P<high>[0-9]{0,3})(?:/(?P<step>[0-9]{1,3}))?")
_USERS: Final = ("root ", "root\t", "nobody ", "nobody\t", "www-data ", "www-data\t")
_READ_BY_CRON: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class CrontabFile:
    """A crontab. `name` is for people; `timezone` is that of its machine; `stem` names its jobs, if it has one."""

    name: str
    text: str
    system: bool
    timezone: str
    stem: str | None = None


def read_by_cron(name: str) -> bool:
    """Whether cron reads a file of this name in /etc/cron.d: not `backup.sh`, `.placeholder` or `x.dpkg-old`."""
    return _READ_BY_CRON.fullmatch(name) is not None


def add_crontab(plan: Plan, file: CrontabFile, pool_by_user: bool = False) -> None:
    """All entries of a file, with what is to be said about each."""
    found = read_crontab(file.text, file.system)
    for trouble in found.troubles:
        plan.leave_out(Origin(file.name, trouble.line), trouble.text, trouble.hint)
    if found.disabled:
        lines = ", ".join(map(str, found.disabled))
        plan.say("note", f"commented out, and not imported: line {lines}", origin=Origin(file.name))
    if found.dos:
        text = "its lines end with CR LF: under cron the CR belongs to the command, and here it is left out"
        hint = "such a file often fails under cron; lines that ping keep the CR"
        plan.say("differs", text, hint, Origin(file.name))
    pinging, entries = _pinging(plan, file, found.entries)
    seen: dict[tuple[str, str, str | None], int] = {}
    for entry in entries:
        pings = pinging.get(entry.line)
        try:
            _Translation(plan, file, entry, pool_by_user, pings).add(seen, unfinished=entry.line == found.unfinished)
        except (Unreadable, ScheduleError) as error:
            text = error.mistake if isinstance(error, ScheduleError) else str(error)
            plan.leave_out(Origin(file.name, entry.line), text, error.hint)
    _say_once(plan, file, found.entries)
    if plan.wish.shadow:
        commands = {entry.line: entry.command for entry in entries if entry.line not in pinging}
        plan.pinged.append(with_pings(plan, file.name, file.text, commands))


def _pinging(plan: Plan, file: CrontabFile, entries: Sequence[Entry]) -> tuple[dict[int, PingingLine], Sequence[Entry]]:
    """The lines that ping already, by number, and all entries that can be imported. The names that they ping are kept
    for them before any other line is given one."""
    pinging: dict[int, PingingLine] = {}
    left: list[Entry] = []
    for entry in entries:
        try:
            line = read_pinging(entry.command, entry.variables.get("SHELL") or "/bin/sh")
            if line is not None and not plan.names.keep(_known(plan, line.name)):
                raise Unreadable(f"it pings {line.name}, as another line does", "give each line a name of its own")
        except Unreadable as error:
            plan.leave_out(Origin(file.name, entry.line), str(error), error.hint)
            continue
        left.append(entry)
        if line is not None:
            pinging[entry.line] = line
    return pinging, left


def _known(plan: Plan, name: str) -> str:
    """The name within the tenant of the import, which is how other jobs are called; else with its tenant."""
    tenant, _, own = name.rpartition("/")
    return own if tenant in ("", plan.wish.tenant or DEFAULT_TENANT) else name


class _Translation:
    def __init__(
        self, plan: Plan, file: CrontabFile, entry: Entry, pool_by_user: bool, pings: PingingLine | None
    ) -> None:
        self._plan, self._file, self._entry = plan, file, entry
        self._by_user = pool_by_user
        self._pings = pings
        self._findings: list[Finding] = []

    def add(self, seen: dict[tuple[str, str, str | None], int], unfinished: bool) -> None:
        plan, entry = self._plan, self._entry
        origin = Origin(self._file.name, entry.line)
        if entry.when == "@reboot":
            plan.leave_out(
                origin,
                f"@reboot: a schedule has no boot ({entry.command})",
                "leave it to the machine's service manager",
            )
            return
        schedule = self._schedule()
        text = entry.command if self._pings is None else self._pings.command
        if not parted(text)[0].strip():
            raise Unreadable("there is no command in front of the %", "a % in a command is written \\%")
        made = command(text, entry.variables)
        self._findings += made.findings
        if unfinished:
            self._say("differs", "the last line has no line end: cron does not run it, and fleetcron will")
        first = seen.setdefault((entry.when, entry.command, entry.user), entry.line)
        if first != entry.line:
            self._say("note", f"the same as line {first}: it runs twice, as under cron")
        document = self._document(origin, schedule, made)
        if self._pings is None:
            plan.add(origin, self._name(), document, self._findings)
        else:
            self._add_pinged(origin, self._pings, document)

    def _add_pinged(self, origin: Origin, pings: PingingLine, document: Document) -> None:
        """The job that the line pings: its name is known to a store and to people."""
        wish = self._plan.wish
        tenant, _, name = pings.name.rpartition("/")
        if tenant:
            document = {"tenant": tenant, **document}
        elif wish.tenant not in (None, DEFAULT_TENANT):
            text = f"its line pings {name} and names no tenant, which is the tenant default in a database"
            self._say(
                "differs", text, f"write {wish.tenant}/{name} there, unless it pings an API with a key of its own"
            )
        hint = None
        if wish.shadow and wish.hand_over_ms is not None and not pings.ends:
            hint = f"it does not end by itself: put --until {instant_text(wish.hand_over_ms)} in front of its --"
        self._say("note", f"its line pings {pings.name} already: it keeps the name, and the line stays as it is", hint)
        self._plan.add(origin, name, document, self._findings, kept=True)

    def _document(self, origin: Origin, schedule: Document, made: Command) -> Document:
        about = " ".join(self._entry.comment).strip()
        document: Document = {
            "description": f"{about[:2000]} ({origin})" if about else f"from {origin}",
            "schedule": schedule,
            "run": made.run,
        }
        delay = self._delay()
        if delay:
            document["jitter"] = f"{delay}m"
        if user := self._entry.user:
            self._say_user(user, document)
        if self._plan.wish.defaults:
            return document
        return document | _AS_CRON | {"start_deadline": f"{_LATEST_M + delay}m"}

    def _say_user(self, user: str, document: Document) -> None:
        if self._by_user:
            document["pool"] = naming.slug(user) or "default"
            hint = f"start a worker as {user}: fleetcron worker --pool {document['pool']}=2"
            self._say("note", f"it runs as {user} if the workers of the pool {document['pool']} do", hint)
        else:
            hint = "--pool-by-user gives each user a pool"
            self._say("differs", f"it runs as {user} under cron, and here as whoever started the worker", hint)

    def _delay(self) -> int:
        """In minutes."""
        delay = self._entry.variables.get("RANDOM_DELAY", "")
        if not delay.isdecimal() or int(delay) == 0:
            return 0
        self._say("differs", f"RANDOM_DELAY={delay} is a jitter here: always the same share of it for a job")
        return int(delay)

    def _name(self) -> str:
        if self._file.stem is not None:
            return self._file.stem
        return naming.from_comment(self._entry.comment) or naming.from_command(self._entry.command)

    # -- when

    def _schedule(self) -> Document:
        timezone = self._timezone()
        when = self._entry.when
        if when.startswith("@"):
            if when not in MACROS:
                raise Unreadable(f"cron does not know {when}", f"it knows {', '.join(sorted(MACROS))}")
            return cron_document(when, timezone, *self._dst(OURS[when]))
        words = when.split()
        if words[0].startswith("-") and len(words[0]) > 1:
            words[0] = words[0][1:]
            self._say("note", "the - in front means: no line in the log of the system. It is left out")
        if any("~" in word for word in words):
            text = " ".join(self._chosen(kind, word) for kind, word in zip(FIVE, words, strict=True))
            self._say("differs", f"'{when}': cron chooses anew at each start; H chooses once for each job, by its name")
            return cron_document(text, timezone, *self._dst(" ".join(words)))
        fields = [read_field(kind, word, DEBIAN) for kind, word in zip(FIVE, words, strict=True)]
        day, weekday = fields[2], fields[4]
        text = expression(fields, day.star or weekday.star, " ".join(words))
        if text.upper() != " ".join(words).upper():
            self._say("note", f"'{when}' is written '{text}' here, which means the same")
        return cron_document(text, timezone, *self._dst(" ".join(words)))

    def _dst(self, text: str) -> tuple[str | None, str | None]:
        """Debian's rule at clock changes."""
        if self._plan.wish.defaults:
            return None, None
        minute, hour = text.split()[:2]
        return ("skip", "both") if "*" in (minute[0], hour[0]) else ("shift", "first")

    def _timezone(self) -> str:
        name = self._entry.variables.get("CRON_TZ", "").lstrip(":")
        if not name:
            return self._file.timezone
        text = f"CRON_TZ={name} is the zone of the schedule, as in cronie"
        self._plan.say("differs", text, "Debian's cron takes no notice of it: compare", Origin(self._file.name))
        return zone(name).name

    def _chosen(self, kind: FieldKind, word: str) -> str:
        """`10~40` of cronie and OpenBSD: one value of the range, chosen by chance."""
        return ",".join(self._one(kind, item) for item in word.split(","))

    def _one(self, kind: FieldKind, item: str) -> str:
        if "~" not in item:
            read_field(kind, item, DEBIAN)
            return item
        found = _CHOSEN.fullmatch(item)
        if found is None:
            raise Unreadable(f"{kind.name}: cron does not read '{item}'")
        step = f"/{found['step']}" if found["step"] else ""
        if not found["low"] and not found["high"]:
            return f"H{step}"
        highest = kind.hash_high or kind.high
        return f"H({found['low'] or kind.low}-{found['high'] or highest}){step}"

    def _say(self, level: str, text: str, hint: str | None = None) -> None:
        self._findings.append(Finding(level, text, hint))  # type: ignore[arg-type]


def _say_once(plan: Plan, file: CrontabFile, entries: list[Entry]) -> None:
    """What is the same for all jobs of a file."""
    origin = Origin(file.name)
    if entries and not plan.wish.defaults:
        text = f"cron starts a job at once or never; here a run that no worker has started after {_LATEST_M}m expires"
        plan.say("note", text, "start_deadline says otherwise", origin)
    mailed = {entry.variables["MAILTO"] for entry in entries if entry.variables.get("MAILTO")}
    if mailed:
        to = ", ".join(sorted(mailed))
        plan.say("differs", f"MAILTO={to}: output is kept with each run, and not mailed", "fleetcron runs log", origin)
    users = sum(entry.command.startswith(_USERS) for entry in entries if entry.user is None)
    if users and users == len(entries):
        plan.say("differs", "every command begins with a user", "is this the system form? then add --system", origin)
