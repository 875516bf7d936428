"""Instants in and out: aware datetimes for people, whole seconds or milliseconds since 1970 (UTC) inside."""

from datetime import UTC, datetime, timedelta

from fleetcron.errors import ScheduleError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS = -62_135_596_800_000  # 0001-01-01T00:00:00Z
LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
_MS = timedelta(milliseconds=1)


def to_ms(t: datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    since = since_epoch(t)
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


def to_ms_up(t: datetime) -> int:
    """Milliseconds since 1970, rounded up: what comes before `t` comes before this too, and the other way round."""
    return -(-since_epoch(t) // _MS)


def from_ms(ms: int) -> datetime:
    return EPOCH + timedelta(0, ms // 1000, ms % 1000 * 1000)


def since_epoch(t: datetime) -> timedelta:
    try:
        return t - EPOCH
    except (TypeError, AttributeError):
        raise not_an_instant(t) from None


def not_an_instant(t: object) -> ScheduleError:
    if isinstance(t, datetime):
        return ScheduleError(f"{t.isoformat()} has no zone", hint="pass an aware datetime, such as datetime.now(UTC)")
    return ScheduleError(f"{t!r} is not an instant", hint="pass an aware datetime")


def parse_instant(text: str) -> datetime:
    """RFC 3339 with an offset, such as 2027-01-01T09:00:00Z."""
    try:
        t = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ScheduleError(f"'{text}' is not an instant", hint="write it as 2027-01-01T09:00:00Z") from None
    if t.tzinfo is None:
        raise ScheduleError(f"'{text}' has no offset", hint=f"write {text.strip()}Z for UTC")
    try:
        return t.astimezone(UTC)
    except OverflowError:
        raise ScheduleError(f"'{text}' is outside the years 1 to 9999") from None


def iso(t: datetime) -> str:
    """UTC with a Z: how fleetcron writes instants everywhere."""
    return t.astimezone(UTC).isoformat().replace("+00:00", "Z")
