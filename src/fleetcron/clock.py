"""The only place that reads a clock. Everybody else takes time as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The machine's time, to the second: what a person means by "now" at a prompt."""
    return datetime.now(UTC).replace(microsecond=0)
