"""A deterministic delay that spreads jobs which are due at the same instant.

The delay follows from tenant/name alone, so it is the same on every node, before creation and after a re-creation. It
never reaches the next tick and never enters a blackout. The tick keeps its nominal identity.
"""

from hashlib import sha256

from fleetcron.errors import ScheduleError


def checked_seed(seed: str | None) -> str | None:
    """A seed is the job's tenant/name: a text that can be encoded."""
    if seed is None:
        return None
    try:
        seed.encode()
    except (AttributeError, ValueError):
        raise ScheduleError(f"{seed!r} is not a seed", hint="pass tenant/name of the job") from None
    return seed


def offset_ms(seed: str, window_ms: int, *gaps_ms: int | None) -> int:
    """A delay below the window and below every gap that is given."""
    room = min([window_ms, *(gap for gap in gaps_ms if gap is not None)])
    if room <= 0:
        return 0
    return int.from_bytes(sha256(seed.encode()).digest()[:8], "big") % room
