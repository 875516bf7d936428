"""Values that people of Python have, as the API reads them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias

Instant: TypeAlias = str | datetime  # RFC 3339, or one that knows its offset


def plain(value: Any) -> Any:
    """For what JSON has no word for: instants and durations."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} {value!r} cannot be sent as JSON")


def document(value: Any, what: str = "a job") -> dict[str, Any]:
    """A mapping that is sent as it is. Whatever is in it is judged by the server, with all mistakes at once."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{what} is a mapping, such as {{'name': …}}, not {type(value).__name__} {value!r:.80}")


def instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no offset, so nobody knows when it is; datetime(…, tzinfo=UTC)")
    return value.isoformat()


def text(value: object) -> str:
    """In an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return instant(value) if isinstance(value, datetime) else str(value)
