"""API keys: who may use the API, under which role. No secret comes here, only its hash.

Every change carries an event in the same transaction. A key is never changed: it is created and revoked, and its row
stays. Whoever creates gives the id and the hash, so a create whose reply was lost is repeated and finds itself.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleetcron.events import Event
from fleetcron.model.access import Credential, KeyState, KeyWish, Role, StoredKey
from fleetcron.store.engine import Engine, Row, Script
from fleetcron.store.events import note
from fleetcron.store.rows import texts
from fleetcron.store.written import Refused, Written

TOUCH_EVERY_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class FoundKey:
    """The database's time, and the key if there is one: also a revoked or an expired one."""

    now_ms: int
    key: StoredKey | None


@dataclass(frozen=True, slots=True)
class KeyFilter:
    tenant: str | None = None
    role: Role | None = None
    state: KeyState | None = None
    name: str | None = None
    after: str | None = None  # key_id of the last line of the page before


@dataclass(frozen=True, slots=True)
class KeyPage:
    now_ms: int
    keys: Sequence[Credential]


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """`created` is false if this very call had come before."""

    now_ms: int
    credential: Credential
    created: bool


@dataclass(frozen=True, slots=True)
class RevokedKey:
    """`changed` is false if it was revoked before."""

    now_ms: int
    credential: Credential
    changed: bool


class Keys:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create(self, key_id: str, digest: str, wish: KeyWish, *, actor: str) -> Written[CreatedKey]:
        """`key_id` and `digest` of a `KeyText`. Refused if the name is taken; a DefinitionError has all mistakes."""
        wish.check()
        return await self._engine.write(lambda: _create(key_id, digest, wish, actor))

    async def find(self, key_id: str) -> FoundKey:
        """For `policy.access.verify`."""

        def script() -> Script[FoundKey]:
            now_ms, found = yield from _find(key_id)
            return FoundKey(now_ms, found)

        return await self._engine.read(script)

    async def list(self, wanted: KeyFilter, limit: int) -> KeyPage:
        """By tenant and name; those of the whole fleet first. Revoked and expired ones too, unless a state is named."""
        call = {"tenant": wanted.tenant, "name": wanted.name, "role": wanted.role and str(wanted.role),
                "state": wanted.state, "after": wanted.after, "most": limit}  # fmt: skip

        def script() -> Script[KeyPage]:
            [facts] = yield "fleet_now", {}
            found = yield "keys_list", {**call, "now_ms": facts["now_ms"]}
            return KeyPage(facts["now_ms"], [credential_of(row) for row in found])

        return await self._engine.read(script)

    async def revoke(self, key_id: str, reason: str, *, actor: str, tenant: str | None = None) -> Written[RevokedKey]:
        """For good, and with it the sessions that began with it. With a `tenant`, keys of others do not exist."""
        return await self._engine.write(lambda: _revoke(key_id, reason, actor, tenant))

    async def touch(self, key_ids: Sequence[str]) -> Written[int]:
        """They were used; written at most once a minute for each, whoever tells it. A lost touch is harmless."""

        def script() -> Script[int | Refused]:
            return len((yield "keys_touch", {"ids": texts(key_ids), "every_ms": TOUCH_EVERY_MS}))

        return await self._engine.write(script)

    async def count(self) -> int:
        """How many keys are valid now. 0: nobody can use the API."""

        def script() -> Script[int]:
            [row] = yield "keys_count", {}
            return int(row["keys"])

        return await self._engine.read(script)


def credential_of(row: Row) -> Credential:
    return Credential(
        row["key_id"], row["name"], Role(row["role"]), row["tenant"], tuple(json.loads(row["pools"])),
        row["rate_per_minute"], row["created_ms"], row["created_by"], row["expires_ms"], row["revoked_ms"],
        row["revoked_by"], row["revoked_why"], row["last_used_ms"],
    )  # fmt: skip


def _find(key_id: str) -> Script[tuple[int, StoredKey | None]]:
    [row] = yield "keys_find", {"key_id": key_id}
    return row["now_ms"], None if row["key_id"] is None else StoredKey(credential_of(row), row["digest"])


def _create(key_id: str, digest: str, wish: KeyWish, actor: str) -> Script[CreatedKey | Refused]:
    [facts] = yield "fleet_now", {}
    now_ms = facts["now_ms"]
    expires_ms = None if wish.lasts_ms is None else now_ms + wish.lasts_ms
    row = {**wish.as_document(), "pools": texts(wish.pools), "expires_ms": expires_ms, "actor": actor}
    made = yield "keys_insert_if_free", {**row, "key_id": key_id, "digest": digest, "now_ms": now_ms}
    now_ms, found = yield from _find(key_id)
    if made:
        assert found is not None
        detail = {"key_id": key_id, **wish.as_document(), "expires_ms": expires_ms}
        yield from note(Event("key_created", actor=actor, detail=detail))
        return CreatedKey(now_ms, found.credential, created=True)
    if found is not None and found.digest == digest:
        return CreatedKey(now_ms, found.credential, created=False)
    if found is not None:
        return Refused(f"the id {key_id} belongs to another key")
    taken = yield "keys_of_name", {"tenant": wish.tenant, "name": wish.name}
    who = f"the key {taken[0]['key_id']}" if taken else "a key that was revoked just now"
    return Refused(f"the name {wish.name} is taken by {who}; revoke that one first, or choose another name")


def _revoke(key_id: str, reason: str, actor: str, tenant: str | None) -> Script[RevokedKey | Refused]:
    call = {"key_id": key_id, "reason": reason, "actor": actor, "tenant": tenant}
    changed = yield "keys_revoke_if_live", call
    now_ms, found = yield from _find(key_id)
    if found is None or (tenant is not None and found.credential.tenant != tenant):
        return Refused(f"there is no key {key_id}")
    credential = found.credential
    if changed:
        detail = {"key_id": key_id, "name": credential.name, "tenant": credential.tenant, "reason": reason}
        yield from note(Event("key_revoked", actor=actor, detail=detail))
    return RevokedKey(now_ms, credential, changed=bool(changed))
