"""Imported jobs as definitions, and their ticks of a year."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from fleetcron.imports.crontab_jobs import CrontabFile, add_crontab
from fleetcron.imports.plan import ImportedJob, Plan, Wish
from fleetcron.model.calendar import local_almanac
from fleetcron.model.reading import read_job
from tests.imports.calendar_minutes import YEAR


def crontab(text: str, *, system: bool = False, timezone: str = "UTC", wish: Wish | None = None) -> Plan:
    plan = Plan(wish or Wish())
    add_crontab(plan, CrontabFile("tab", text, system, timezone))
    return plan


def ticks(job: ImportedJob, low: datetime = YEAR[0], high: datetime = YEAR[1]) -> list[datetime]:
    """In [low, high)."""
    timing = read_job(job.document).timing(0)
    table = timing.timetable(local_almanac(timing.parts(), ()))
    moment = timedelta(milliseconds=1)
    return list(table.between(low - moment, high - moment))


def said(plan: Plan, level: str | None = None) -> list[str]:
    return [str(each) for each in plan.all_findings() if level in (None, each.level)]


def has(texts: Iterable[str], *pieces: str) -> bool:
    """Whether one of the texts has all of these in it."""
    return any(all(piece in text for piece in pieces) for text in texts)
