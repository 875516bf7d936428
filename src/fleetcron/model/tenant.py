"""A tenant: who owns jobs and shares capacity. None means no limit."""

from dataclasses import dataclass

DEFAULT_TENANT = "default"
MAX_PAYLOAD = 256 * 1024


@dataclass(frozen=True, slots=True)
class Tenant:
    """`weight` is its share when others want the same slots; the limits are hard."""

    name: str = DEFAULT_TENANT
    weight: int = 1
    max_jobs: int | None = None
    max_in_flight: int | None = None
    rate_per_s: float | None = None  # starts of attempts per second
    burst: int = 1  # how many may start at once before the rate holds
    max_payload: int = MAX_PAYLOAD  # bytes of JSON
    paused: bool = False  # nothing of it starts: for an incident
