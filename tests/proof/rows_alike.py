"""Rows and answers of two stores in one form, so that what is the same is equal.

What may differ between two engines that do the same, and is therefore left out or translated:

- numbers that an engine gives away (run_id, entry_id, gap_id, event_id): PostgreSQL's sequences go on when an insert
  meets a row that is there, or is rolled back; SQLite's do not. A run is called by its job, tick, kind and key instead,
  wherever its number appears; of the others only the order counts.
- the order of events within one transaction: PostgreSQL returns the rows of an UPDATE in any order (two jobs that end
  in the same round). From one transaction to the next the order is the same, since every step is compared.
- how a value is kept: UUID or text, JSONB or text. JSON is compared as what it says.
- the body of a zone: it is found by its hash, and too long to be read after every step.

Everything else must be equal, column by column, and in the same order where a table has one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

Row: TypeAlias = dict[str, Any]
Names: TypeAlias = Mapping[int, str]

# each table with the number that gives its order, if it has one
TABLES: Final[Mapping[str, str | None]] = {
    "runs": "run_id", "upcoming": None, "queue": None, "leases": None, "attempts": None, "attempt_logs": None,
    "jobs": None, "job_revisions": None, "timings": None, "timing_parts": None, "almanac": None, "almanac_epoch": None,
    "cursors": None, "ledger": "entry_id", "gaps": "gap_id", "events": None, "workers": None, "shares": None,
    "tenants": None, "rates": None, "pools": None, "controls": None, "nodes": None, "shard_terms": None,
    "shard_leases": None,
}  # fmt: skip
_NUMBERS: Final = ("entry_id", "gap_id", "event_id")
_RUNS: Final = ("run_id", "run", "covered_by", "after_id", "next_id", "runs[]", "late[]", "way[]")
_BY_RUN: Final = ("transitions", "cancels", "kept", "covering")
_JSON: Final = ("definition", "before", "after", "detail", "pools", "lacks", "per_type")
_LEFT_OUT: Final = ("clock", "last_id")  # of answers: a reading of the steady clock, the number of an event


def run_name(run: Row) -> str:
    return f"{run['job_id'][14:18]}@{run['scheduled_for_ms']}/{run['kind']}/{run['asked_key'] or ''}"


def alike(table: str, found: Iterable[Row], names: Names) -> list[Row]:
    """The rows of a table in its own order, or sorted if it has none."""
    number = TABLES[table]
    ordered = list(found) if number is None else sorted(found, key=lambda row: int(row[number]))
    rows = [{key: _value(key, value, names) for key, value in row.items() if key not in _NUMBERS} for row in ordered]
    return rows if number else sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def told(value: Any, names: Names, name: str = "") -> Any:
    """An answer as plain values."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)} | {"": type(value).__name__}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {
            _key(key, names) if name in _BY_RUN else str(key): told(each, names, _inside(name, key))
            for key, each in value.items()
            if key not in _LEFT_OUT and key not in _NUMBERS
        }
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(told(each, names, name), sort_keys=True) for each in value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [told(each, names, f"{name}[]") for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and name in _RUNS:
        return names.get(value, value)
    return value


def _key(key: Any, names: Names) -> str:
    """A run, or a run and its attempt."""
    run_id, *attempt = key if isinstance(key, tuple) else (key,)
    return " ".join(map(str, [names.get(run_id, run_id), *attempt]))


def _inside(name: str, key: Any) -> str:
    return "run_id" if name == "covering" else str(key)


def _value(key: str, value: Any, names: Names) -> Any:
    if key in _JSON and value is not None:
        return told(json.loads(value) if isinstance(value, str) else value, names)
    if key in _RUNS and isinstance(value, int):
        return names.get(value, value)
    return value


def first_difference(one: Mapping[str, list[Row]], other: Mapping[str, list[Row]]) -> str | None:
    """The table, and its rows that only one has; None if there is none."""
    for table in TABLES:
        if one[table] != other[table]:
            left = [row for row in one[table] if row not in other[table]]
            right = [row for row in other[table] if row not in one[table]]
            if not left and not right:
                return f"{table}: the same rows in another order:\n  {one[table]}\n  {other[table]}"
            return f"{table}:\n  only sqlite:   {left[:3]}\n  only postgres: {right[:3]}"
    return None
