"""What a key allows, whom it lets see, how often it may ask and how often stay. Pure: time is an argument.

The tenant comes from the key, never from what is asked: whoever names another tenant is told "not found", as about
anything else that does not exist for him. A worker's key sees no tenant at all: it speaks the worker protocol only.
"""

import hmac
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from fleetcron.model.access import EVERY_POOL, Credential, KeyState, KeyText, KeyWish, Role, StoredKey
from fleetcron.model.tenant import DEFAULT_TENANT

_RANKS: Final = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}
_NO_DIGEST: Final = "0" * 64
_MINUTE_US: Final = 60_000_000
_BURSTS_A_MINUTE: Final = 6  # so a key that was idle may do what it may in ten seconds at once


@dataclass(frozen=True, slots=True)
class Refusal:
    """`reason` is for whoever asked: it says nothing that he may not know."""

    code: Literal["unauthenticated", "forbidden", "not_found"]
    reason: str


NOT_FOUND: Final = Refusal("not_found", "not found")
NO_SUCH_KEY: Final = Refusal("unauthenticated", "there is no such key")


def state_of(credential: Credential, now_ms: int) -> KeyState:
    if credential.revoked_ms is not None:
        return "revoked"
    return "expired" if credential.expires_ms is not None and credential.expires_ms <= now_ms else "active"


def verify(presented: KeyText, stored: StoredKey | None, now_ms: int) -> Credential | Refusal:
    """Whose text it is. Only whoever has the right one hears that it was revoked or has expired.

    Compared in constant time, also when there is nothing to compare with.
    """
    is_right = hmac.compare_digest(presented.digest, _NO_DIGEST if stored is None else stored.digest)
    if stored is None or not is_right:
        return NO_SUCH_KEY
    match state_of(stored.credential, now_ms):
        case "active":
            return stored.credential
        case "expired":
            return Refusal("unauthenticated", f"the key {stored.credential.name} has expired")
        case "revoked":
            return Refusal("unauthenticated", f"the key {stored.credential.name} was revoked")


def allows(credential: Credential, needed: Role) -> bool:
    """Also an admin is no worker: what claims runs and gets payloads is a key of its own. A key for pings lies on every
    machine that has a crontab, and may do nothing else."""
    if needed is Role.PING:
        return credential.role in (Role.PING, Role.OPERATOR, Role.ADMIN)
    if credential.role is Role.PING:
        return False
    if needed is Role.WORKER or credential.role is Role.WORKER:
        return credential.role is needed
    return _RANKS[credential.role] >= _RANKS[needed]


def sees(credential: Credential, tenant: str | None) -> bool:
    """Whether something of this tenant exists for the key. None is what belongs to the fleet, and to no tenant."""
    return credential.role is not Role.WORKER and (credential.tenant is None or credential.tenant == tenant)


def tenant_of(credential: Credential, asked: str | None) -> str | Refusal:
    """The tenant that a request is about. A key of all tenants means `default` unless it names one."""
    tenant = asked if asked is not None else credential.tenant or DEFAULT_TENANT
    return tenant if sees(credential, tenant) else NOT_FOUND


def tenants_of(credential: Credential, asked: str | None) -> str | Refusal | None:
    """The same for lists. None: of all tenants."""
    if asked is None and credential.tenant is None and credential.role is not Role.WORKER:
        return None
    return tenant_of(credential, asked)


def may_claim(credential: Credential, pool: str) -> bool:
    return credential.role is Role.WORKER and (pool in credential.pools or EVERY_POOL in credential.pools)


def may_grant(credential: Credential, wish: KeyWish) -> bool:
    """Whether an admin may create this key, so that nobody makes a key that sees more than his own. Pools belong to the
    fleet: only an admin of all tenants makes workers."""
    return allows(credential, Role.ADMIN) and sees(credential, wish.tenant)


# -- how often


class Rate(NamedTuple):
    """One request every `interval_us`, and `burst` of them at once after a rest."""

    interval_us: int
    burst: int


class Turn(NamedTuple):
    """What became of one request. `state_us` is to be kept; `remaining` may follow at once."""

    state_us: int
    allowed: bool
    retry_after_ms: int
    remaining: int


def rate(per_minute: int) -> Rate:
    """Rounded so that never more are allowed than were said."""
    return Rate(-(-_MINUTE_US // per_minute), max(1, -(-per_minute // _BURSTS_A_MINUTE)))


def take_turn(wanted: Rate, state_us: int | None, now_ms: int) -> Turn:
    """One step of GCRA. `state_us` is when a key that asks evenly would ask next; None for one that never asked.

    In any stretch of t at most burst + t / interval are allowed. A clock that was put back costs a burst at most: no
    state is further ahead than a full one.
    """
    now_us = now_ms * 1000
    slack_us = (wanted.burst - 1) * wanted.interval_us
    full_us = now_us + slack_us + wanted.interval_us
    expected_us = now_us if state_us is None else min(max(state_us, now_us), full_us)
    early_us = expected_us - now_us - slack_us
    if early_us > 0:
        return Turn(expected_us, False, -(-early_us // 1000), 0)
    after_us = expected_us + wanted.interval_us
    return Turn(after_us, True, 0, (full_us - after_us) // wanted.interval_us)


class Limiter:
    """The turns of many keys, in this process. It keeps `most` of them and forgets whoever asked longest ago, who then
    has a fresh burst: with more keys at work than that the limit is less sharp, and memory stays bounded.

    Each API node counts for itself: behind n of them a key has up to n times its rate.
    """

    def __init__(self, default_per_minute: int, most: int = 10_000) -> None:
        self._default = default_per_minute
        self._most = most
        self._states: dict[str, int] = {}  # whoever asked last is last

    def take(self, who: str, per_minute: int | None, now_ms: int) -> Turn:
        """`who` is a key_id, or whatever else is counted; `now_ms` of a clock that never goes back."""
        turn = take_turn(rate(self._default if per_minute is None else per_minute), self._states.pop(who, None), now_ms)
        self._states[who] = turn.state_us
        if len(self._states) > self._most:
            del self._states[next(iter(self._states))]
        return turn

    def __len__(self) -> int:
        return len(self._states)


class Uses:
    """Which keys were used, to be told to the store in batches: each at most once in `every_ms`."""

    def __init__(self, every_ms: int = 60_000, most: int = 10_000) -> None:
        self._every_ms = every_ms
        self._most = most
        self._noted: dict[str, int] = {}
        self._untold: dict[str, None] = {}

    def note(self, key_id: str, now_ms: int) -> None:
        before_ms = self._noted.get(key_id)
        if before_ms is not None and now_ms - before_ms < self._every_ms:
            return
        if len(self._noted) >= self._most:  # harmless: the store itself writes at most once a minute
            self._noted.clear()
        self._noted[key_id] = now_ms
        self._untold[key_id] = None

    def take(self) -> list[str]:
        """For `Keys.touch`. Whatever becomes of it: a use that is lost is harmless."""
        found = list(self._untold)
        self._untold.clear()
        return found


# -- how many at once

Full: TypeAlias = Literal["key", "tenant", "node"]


class Places:
    """Who stays, in this process: `most` in all, `each` of one key, and of one tenant a quarter of all, however many
    keys it makes. So nobody can shut out the others alone."""

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._held: Counter[tuple[str, str]] = Counter()
        self._all = 0

    def full(self, credential: Credential) -> Full | None:
        """Why there is no place for this key now."""
        if self._held["key", credential.key_id] >= self._each:
            return "key"
        if credential.tenant is not None and self._held["tenant", credential.tenant] >= max(1, self._most // 4):
            return "tenant"
        return "node" if self._all >= self._most else None

    def take(self, credential: Credential) -> Callable[[], None]:
        """To be called at the end; more than once is harmless."""
        names = [
            ("key", credential.key_id),
            *([("tenant", credential.tenant)] if credential.tenant is not None else []),
        ]
        self._held.update(names)
        self._all += 1
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._all -= 1
                self._held.subtract(names)
                for name in names:
                    if not self._held[name]:
                        del self._held[name]

        return leave

    def __len__(self) -> int:
        return self._all
