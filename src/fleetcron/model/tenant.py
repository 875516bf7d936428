"""A tenant: who owns jobs and shares capacity. None means no limit.

Whoever says nothing has the defaults: an equal share and no limit but the size of a payload. Pausing is no field of a
tenant: it is a control (`model/control.py`), which says why, by whom and until when.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fleetcron.model.figures import Figures, shown

DEFAULT_TENANT = "default"
MAX_PAYLOAD = 256 * 1024

FIELDS: Final = ("weight", "max_jobs", "max_in_flight", "rate", "burst", "max_payload")
_MOST: Final = 1_000_000_000
_PERIODS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) */ *([smhd])")
_SIZE = re.compile(r"([0-9]{1,9}) *(k|kb|kib)?", re.IGNORECASE)
_FASTEST = 100_000.0  # a second; the gap between two starts is counted in microseconds
_SLOWEST = 1 / 86_400


@dataclass(frozen=True, slots=True)
class Tenant:
    """`weight` is its share when others want the same slots; the limits are hard."""

    name: str = DEFAULT_TENANT
    weight: int = 1
    max_jobs: int | None = None  # that are active or paused
    max_in_flight: int | None = None
    rate_per_s: float | None = None  # starts of attempts per second
    burst: int = 1  # how many may start at once before the rate holds
    max_payload: int = MAX_PAYLOAD  # bytes of JSON

    def as_document(self) -> dict[str, Any]:
        """As people write it, and as `read_tenant` reads it."""
        return {
            "weight": self.weight,
            "max_jobs": self.max_jobs,
            "max_in_flight": self.max_in_flight,
            "rate": None if self.rate_per_s is None else rate_text(self.rate_per_s),
            "burst": self.burst,
            "max_payload": self.max_payload,
        }


def read_tenant(name: str, raw: Mapping[str, object], now: Tenant | None = None) -> Tenant:
    """A tenant from its fields; what is not said stays as it is now. A DefinitionError has all mistakes."""
    now = now or Tenant(name)
    figures = Figures("tenant", name, raw, FIELDS)
    read = Tenant(
        name,
        weight=figures.whole("weight", now.weight, 1, 1000),
        max_jobs=figures.limit("max_jobs", now.max_jobs, 0, _MOST),
        max_in_flight=figures.limit("max_in_flight", now.max_in_flight, 1, _MOST),
        rate_per_s=_rate(figures, now.rate_per_s),
        burst=figures.whole("burst", now.burst, 1, 1_000_000),
        max_payload=_payload(figures, now.max_payload),
    )
    figures.check()
    return read


def rate_text(per_s: float) -> str:
    """The rate in the shortest period that makes it a whole number: 1.5 a second is 90/m."""
    for unit, seconds in _PERIODS.items():
        count = round(per_s * seconds)
        if count >= 1 and abs(per_s * seconds - count) <= 1e-9 * count:
            return f"{count}/{unit}"
    return f"{per_s:.6g}/s"


def _rate(figures: Figures, now: float | None) -> float | None:
    if "rate" not in figures.raw:
        return now
    value = figures.raw["rate"]
    if value is None:
        return None
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        figures.wrong("rate", f"{shown(value)} is not a rate", "write 10/s, 100/m, 1000/h or 5000/d")
        return now
    per_s = float(found[1]) / _PERIODS[found[2]]
    if per_s > _FASTEST:
        figures.wrong("rate", f"{value} is more than {_FASTEST:.0f}/s, the most that is allowed", None)
    elif per_s < _SLOWEST:
        figures.wrong("rate", f"{value} is less than 1/d, the least that is allowed", "to stop it: fleetcron hold")
    return per_s


def _payload(figures: Figures, now: int) -> int:
    """Bytes, or 64k. The fleet's own limit cannot be raised for one tenant: rows and pages rely on it."""
    value = figures.raw.get("max_payload", now)
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        value = int(found[1]) * (1024 if found[2] else 1)
    if value is None or (isinstance(value, str) and found is None):
        figures.wrong("max_payload", f"{shown(value)} is not a size", "write bytes, or 64k")
        return now
    return figures.figure("max_payload", value, now, 2, MAX_PAYLOAD)
