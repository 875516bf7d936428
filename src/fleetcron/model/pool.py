"""A pool: a named group of workers with its own slots and limits, so that a slow export never starves billing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleetcron.model.figures import Figures, shown
from fleetcron.model.name import LABEL_HINT, is_label

DEFAULT_POOL: Final = "default"
FIELDS: Final = ("slots", "per_tenant", "per_type")
_MOST: Final = 1_000_000
_LIVE_SHARE: Final = 4  # one slot of so many is always left to live work


@dataclass(frozen=True, slots=True)
class Pool:
    """Runs in flight at most, in the whole fleet. None is no limit: what its workers have."""

    name: str = DEFAULT_POOL
    slots: int | None = None
    per_tenant: int | None = None  # of each tenant
    per_type: Mapping[str, int] = field(default_factory=dict)  # of jobs of these types

    def as_document(self) -> dict[str, Any]:
        """As people write it, and as `read_pool` reads it."""
        return {"slots": self.slots, "per_tenant": self.per_tenant, "per_type": dict(self.per_type)}


def lendable(slots: int, room: int, lent: int) -> int:
    """How many of the free slots catch-up may take. It borrows, but a quarter of all, at least one, stays free for live
    work. One slot alternates."""
    return room if slots == 1 else max(0, min(room, slots - max(1, slots // _LIVE_SHARE) - lent))


def read_pool(name: str, raw: Mapping[str, object], now: Pool | None = None) -> Pool:
    """A pool from its fields; what is not said stays as it is now. A DefinitionError has all mistakes."""
    now = now or Pool(name)
    figures = Figures("pool", name, raw, FIELDS)
    read = Pool(
        name,
        slots=figures.limit("slots", now.slots, 1, _MOST),
        per_tenant=figures.limit("per_tenant", now.per_tenant, 1, _MOST),
        per_type=_per_type(figures, now.per_type),
    )
    figures.check()
    return read


def _per_type(figures: Figures, now: Mapping[str, int]) -> Mapping[str, int]:
    """A type with null has no quota any more; the others stay as they are."""
    given = figures.raw.get("per_type", {})
    if not isinstance(given, Mapping):
        figures.wrong("per_type", f"must be a mapping, not {shown(given)}", "such as {export: 2}")
        return now
    found = dict(now)
    for kind, quota in given.items():
        if not is_label(kind):
            figures.wrong("per_type", f"{shown(kind)} is not a type", LABEL_HINT)
        elif quota is None:
            found.pop(kind, None)
        else:
            found[kind] = figures.figure(f"per_type/{kind}", quota, 1, 1, _MOST)
    return dict(sorted(found.items()))
