"""An entry of a schedule: made with the policies that follow from it, and written for people.

The DST policies of a cron expression are derived once, stored and shown (S2-12, S2-13). A document says which of them
were derived, so that editing the expression derives them anew and a choice stays a choice.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from fleetcron.model.kept import made
from fleetcron.model.rules import CronEntry, Entry, EveryEntry, OnceEntry
from fleetcron.times import policies
from fleetcron.times.durations import duration_ms, duration_text
from fleetcron.times.expression import parse
from fleetcron.times.instants import from_ms, iso, parse_instant, to_ms

DERIVED: Final = ("dst_gap", "dst_fold")
# H needs a seed to be read. Whether an expression is right does not depend on which.
ANY_SEED: Final = "-"


@lru_cache(4096)  # of many jobs in one document, most have the schedule of another one
def cron_entry(
    cron: str,
    timezone: str = "UTC",
    dst_gap: str | None = None,
    dst_fold: str | None = None,
    month_end: str | None = None,
) -> CronEntry:
    """The entry with the policies that nobody chose derived from the expression."""
    parsed = parse(cron, ANY_SEED)
    written = {"dst_gap": dst_gap, "dst_fold": dst_fold}
    return CronEntry(
        parsed.text,
        timezone,
        policies.dst_gap(dst_gap, parsed),
        policies.dst_fold(dst_fold, parsed),
        policies.month_end(month_end),
        frozenset(name for name, value in written.items() if value is not None),
    )


def once_entry(
    at: str | datetime, timezone: str | None = None, dst_gap: str | None = None, dst_fold: str | None = None
) -> OnceEntry:
    """An instant is kept as UTC with a Z, a local time as it is."""
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(at.strip())
    text = moment.isoformat() if moment.tzinfo is None else iso(from_ms(to_ms(moment)))
    return OnceEntry(text, timezone, policies.dst_gap(dst_gap), policies.dst_fold(dst_fold))


def is_hashed(entry: Entry) -> bool:
    """Whether its ticks depend on the job's name: the expression uses H."""
    return isinstance(entry, CronEntry) and _uses_hash(entry.cron)


@lru_cache(4096)
def _uses_hash(cron: str) -> bool:
    # no month or weekday begins with an H
    return any(item.startswith("H") for field in parse(cron, ANY_SEED).fields for item in field.text.split(","))


def entry_document(entry: Entry) -> dict[str, Any]:
    """As it stands under `schedule:`."""
    match entry:
        case CronEntry(cron, timezone, dst_gap, dst_fold, month_end, chosen):
            whole = {
                "cron": cron,
                "timezone": timezone,
                "dst_gap": dst_gap,
                "dst_fold": dst_fold,
                "month_end": month_end,
            }
            derived = [name for name in DERIVED if name not in chosen]
            return {**whole, "derived": derived} if derived else whole
        case EveryEntry(every_ms, anchor_ms):
            return {
                "every": duration_text(every_ms),
                "anchor": None if anchor_ms is None else iso(from_ms(anchor_ms)),
            }
        case OnceEntry(at, once_zone, gap, fold):
            return {"at": at, "timezone": once_zone, "dst_gap": gap, "dst_fold": fold}


def entry_from(document: Mapping[str, Any]) -> Entry:
    """What `entry_document` wrote; nothing is derived anew."""
    if "cron" in document:
        chosen = frozenset(DERIVED) - set(document.get("derived", ()))
        given = _only(document, "cron", "timezone", "dst_gap", "dst_fold", "month_end")
        return made(CronEntry, {**given, "chosen": chosen})
    if "every" in document:
        anchor = document.get("anchor")
        return EveryEntry(duration_ms(document["every"]), None if anchor is None else to_ms(parse_instant(anchor)))
    return made(OnceEntry, _only(document, "at", "timezone", "dst_gap", "dst_fold"))


def _only(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: document[name] for name in names if name in document}
