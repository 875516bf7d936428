"""Sessions of people who logged in to the dashboard with a key. Only the hash of what the browser keeps is here.

A session has no rights of its own: whoever finds one gets its key, as it is now, and a session whose key was revoked
or has expired is not found.
"""

from dataclasses import dataclass
from typing import Final

from fleetcron.events import Event
from fleetcron.model.access import Credential
from fleetcron.store.engine import Engine, Script
from fleetcron.store.events import note
from fleetcron.store.keys import credential_of
from fleetcron.store.written import Refused, Written

LASTS_MS: Final = 12 * 3_600_000
PURGED_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Session:
    now_ms: int
    credential: Credential
    created_ms: int
    expires_ms: int


class Sessions:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create(self, digest: str, key_id: str, *, lasts_ms: int = LASTS_MS) -> Written[Session]:
        """`digest` of a `SessionToken`. Refused unless the key is valid now, and not a worker's."""

        def script() -> Script[Session | Refused]:
            begun = yield "sessions_insert_if_valid", {"digest": digest, "key_id": key_id, "lasts_ms": lasts_ms}
            found = yield from _find(digest)
            if found is None or found.credential.key_id != key_id:
                return Refused("no session can begin with this key")
            if begun:
                yield from _noted("session_began", found)
            return found

        return await self._engine.write(script)

    async def find(self, digest: str) -> Session | None:
        """None: there is none, it has ended, or its key is no longer valid."""
        return await self._engine.read(lambda: _find(digest))

    async def end(self, digest: str) -> Written[bool]:
        """Log out. False: there was no such session."""

        def script() -> Script[bool | Refused]:
            found = yield from _find(digest)
            ended = bool((yield "sessions_end", {"digest": digest}))
            if ended and found is not None:  # one that was over has ended by itself
                yield from _noted("session_ended", found)
            return ended

        return await self._engine.write(script)

    async def purge(self) -> Written[int]:
        """Forget some of those that have ended; the sweep does it by itself."""

        def script() -> Script[int | Refused]:
            return (yield from forget_ended())

        return await self._engine.write(script)


def forget_ended() -> Script[int]:
    """Part of another verb's script."""
    return len((yield "sessions_purge", {"most": PURGED_AT_ONCE}))


def _noted(kind: str, session: Session) -> Script[None]:
    key = session.credential
    detail = {"key_id": key.key_id, "tenant": key.tenant, "expires_ms": session.expires_ms}
    yield from note(Event(kind, actor=key.actor, detail=detail))


def _find(digest: str) -> Script[Session | None]:
    found = yield "sessions_find", {"digest": digest}
    if not found:
        return None
    [row] = found
    return Session(row["now_ms"], credential_of(row), row["began_ms"], row["ends_ms"])
