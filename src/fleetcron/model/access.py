"""Who may do what: keys, their roles, and the texts that prove them. Pure; chance is given.

A key is `fck_ID_SECRET`. ID is public: it names the key in lists and logs, and finds its row. SECRET is 256 bits of
chance, and six characters that notice a typing error. Only the SHA-256 of the whole text is stored: there is as much
chance in it as in the hash, so nobody can try them all, and salt or a slow hash would add nothing.

A worker's key is apart from the others: it claims from its pools and does nothing else. No pool means none, so a
worker's key without one is refused; `*` is every pool, and has to be said.
"""

import hashlib
import hmac
import os
import re
import string
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from fleetcron.errors import DefinitionError, Mistake
from fleetcron.model.figures import shown
from fleetcron.model.name import NAME_HINT, is_name

EVERY_POOL: Final = "*"
MOST_POOLS: Final = 100
MOST_PER_MINUTE: Final = 600_000
_LETTERS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # none that looks like another one
_SECRET_BYTES: Final = 32
_KEY = re.compile(r"fck_([0-9a-hjkmnp-tv-z]{10})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})")
_SESSION = re.compile(r"fcs_[0-9A-Za-z]{43}")

Chance: TypeAlias = Callable[[int], bytes]
KeyState: TypeAlias = Literal["active", "expired", "revoked"]


class Role(StrEnum):
    """viewer < operator < admin. A worker is none of them, and neither is what lies in a crontab, which only pings."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"
    PING = "ping"


@dataclass(frozen=True, slots=True)
class Credential:
    """A key without its secret. `tenant` None: all tenants. `rate_per_minute` None: what the API's settings say."""

    key_id: str
    name: str
    role: Role
    tenant: str | None = None
    pools: tuple[str, ...] = ()
    rate_per_minute: int | None = None
    created_ms: int = 0
    created_by: str = ""
    expires_ms: int | None = None
    revoked_ms: int | None = None
    revoked_by: str | None = None
    revoked_why: str | None = None
    last_used_ms: int | None = None

    @property
    def actor(self) -> str:
        """Who the history says did it: `key:ci`, `key:acme/ci`."""
        return f"key:{self.full_name}"

    @property
    def full_name(self) -> str:
        return self.name if self.tenant is None else f"{self.tenant}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as the store has it: with the hash of its text."""

    credential: Credential
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyWish:
    """A key that is to be. Without `lasts_ms` it holds until it is revoked."""

    name: str
    role: Role
    tenant: str | None = None
    pools: tuple[str, ...] = ()
    lasts_ms: int | None = None
    rate_per_minute: int | None = None

    def check(self) -> None:
        """A DefinitionError has all mistakes."""
        if mistakes := list(self._mistakes()):
            raise DefinitionError(mistakes)

    def as_document(self) -> dict[str, Any]:
        """What the event log keeps."""
        return {
            "name": self.name,
            "role": str(self.role),
            "tenant": self.tenant,
            "pools": list(self.pools),
            "rate_per_minute": self.rate_per_minute,
        }

    def _mistakes(self) -> Iterator[Mistake]:
        if not is_name(self.name):
            yield Mistake("/name", f"{shown(self.name)} is not a name of a key", NAME_HINT)
        if self.tenant is not None and not is_name(self.tenant):
            yield Mistake("/tenant", f"{shown(self.tenant)} is not a name of a tenant", NAME_HINT)
        if self.lasts_ms is not None and self.lasts_ms <= 0:
            yield Mistake("/expires_in", "is not longer than 0", "write it as 12h or 90d")
        if self.rate_per_minute is not None and not 1 <= self.rate_per_minute <= MOST_PER_MINUTE:
            yield Mistake("/rate_per_minute", f"{shown(self.rate_per_minute)} is not from 1 to {MOST_PER_MINUTE}", None)
        yield from self._mistakes_of_pools()

    def _mistakes_of_pools(self) -> Iterator[Mistake]:
        if self.role is not Role.WORKER:
            if self.pools:
                yield Mistake("/pools", f"are for workers, and this key is of the role {self.role}", None)
            return
        if self.tenant is not None:
            yield Mistake("/tenant", "a worker serves pools, not tenants", "leave it out; give its jobs a pool")
        if not self.pools:
            yield Mistake("/pools", "a worker without a pool could do nothing", "name its pools, or * for every pool")
        if len(self.pools) > MOST_POOLS:
            yield Mistake("/pools", f"are more than {MOST_POOLS}", "* is every pool")
        for pool in self.pools[:MOST_POOLS]:
            if pool != EVERY_POOL and not is_name(pool):
                yield Mistake("/pools", f"{shown(pool)} is not a name of a pool", NAME_HINT)


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as its owner has it. The text is in no repr; `digest` is what is stored."""

    key_id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SessionToken:
    """What a browser keeps in its cookie. `csrf` goes into forms: it follows from the token, but not the other way."""

    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def csrf(self) -> str:
        return hmac.new(self.text.encode(), b"fleetcron csrf", hashlib.sha256).hexdigest()


def new_key(chance: Chance = os.urandom) -> KeyText:
    """`chance(n)` gives n bytes."""
    key_id = _written(int.from_bytes(chance(7), "big") >> 6, _ID_LETTERS, 10)  # 50 bits
    secret = _written(int.from_bytes(chance(_SECRET_BYTES), "big"), _LETTERS, 43)
    return KeyText(key_id, f"fck_{key_id}_{secret}{_check(key_id, secret)}")


def read_key(text: str) -> KeyText | None:
    """None: it is no key, or one that was copied badly. Nobody has to be asked about that."""
    found = _KEY.fullmatch(text)
    if found is None or _check(found[1], found[2]) != found[3]:
        return None
    return KeyText(found[1], text)


def new_session(chance: Chance = os.urandom) -> SessionToken:
    return SessionToken(f"fcs_{_written(int.from_bytes(chance(_SECRET_BYTES), 'big'), _LETTERS, 43)}")


def read_session(text: str) -> SessionToken | None:
    return SessionToken(text) if _SESSION.fullmatch(text) else None


def _check(key_id: str, secret: str) -> str:
    return _written(zlib.crc32(f"{key_id}{secret}".encode()), _LETTERS, 6)


def _written(number: int, letters: str, places: int) -> str:
    found = ""
    for _ in range(places):
        number, digit = divmod(number, len(letters))
        found = letters[digit] + found
    return found
