"""Checks of the conformance suite about access: keys, sessions, and requests that are asked twice and done once."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fleetcron.errors import DefinitionError
from fleetcron.model.access import Credential, KeyText, KeyWish, Role, new_key, new_session
from fleetcron.policy.access import state_of, verify
from fleetcron.store import idempotency, sessions
from fleetcron.store.history import Span
from fleetcron.store.idempotency import KEPT_MS, MOST_BODY, STALE_MS, Different, Done, New, Running
from fleetcron.store.keys import KeyFilter
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Written

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CI = KeyWish("ci", Role.OPERATOR, "acme")

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def ok(written: Written[Any]) -> Any:
    assert isinstance(written, Ok), written
    return written.value


async def made(store: Store, wish: KeyWish = CI) -> tuple[KeyText, Credential]:
    key = new_key()
    return key, ok(await store.keys.create(key.key_id, key.digest, wish, actor="ann")).credential


async def told(store: Store, kind: str) -> list[tuple[str | None, dict[str, Any]]]:
    return [(noted.event.actor, dict(noted.event.detail)) for noted in await store.events.list(kind=kind)][::-1]


async def names(store: Store, limit: int = 100, **wanted: Any) -> list[str]:
    return [each.full_name for each in (await store.keys.list(KeyFilter(**wanted), limit)).keys]


# --- keys


@check
async def a_key_is_created_once(w: "World") -> None:
    """Whoever repeats a create finds the same key; the event says who and what, and no secret is anywhere."""
    keys, key = w.store.keys, new_key()
    wish = KeyWish("ci", Role.OPERATOR, "acme", lasts_ms=90 * DAY, rate_per_minute=120)
    first = ok(await keys.create(key.key_id, key.digest, wish, actor="ann"))
    expected = Credential(
        key.key_id, "ci", Role.OPERATOR, "acme", (), 120, NOW, "ann", expires_ms=NOW + 90 * DAY
    )  # fmt: skip
    assert (first.credential, first.created, first.now_ms) == (expected, True, NOW)
    await w.clock.advance(5)
    again = ok(await keys.create(key.key_id, key.digest, wish, actor="ann"))  # the reply was lost, say
    assert (again.credential, again.created) == (expected, False)
    [(actor, detail)] = await told(w.store, "key_created")
    assert (actor, detail) == (
        "ann",
        {"key_id": key.key_id, "name": "ci", "role": "operator", "tenant": "acme", "pools": [],
         "rate_per_minute": 120, "expires_ms": NOW + 90 * DAY},
    )  # fmt: skip
    assert key.text not in json.dumps(detail)


@check
async def a_key_is_found_with_the_time(w: "World") -> None:
    key, credential = await made(w.store)
    found = await w.store.keys.find(key.key_id)
    assert found.key is not None
    assert (found.now_ms, found.key.credential, found.key.digest) == (NOW, credential, key.digest)
    assert verify(key, found.key, found.now_ms) == credential
    await w.clock.advance(7)
    nobody = await w.store.keys.find("0" * 10)
    assert (nobody.now_ms, nobody.key) == (NOW + 7, None)


@check
async def an_id_and_a_name_belong_to_one_key(w: "World") -> None:
    """A name is one key's in its tenant, until that one is revoked."""
    keys = w.store.keys
    key, _ = await made(w.store)
    other = new_key()
    assert await keys.create(key.key_id, other.digest, KeyWish("x", Role.ADMIN), actor="bob") == Refused(
        f"the id {key.key_id} belongs to another key"
    )
    taken = Refused(
        f"the name ci is taken by the key {key.key_id}; revoke that one first, or choose another name"
    )  # fmt: skip
    assert await keys.create(other.key_id, other.digest, CI, actor="bob") == taken
    await made(w.store, replace(CI, tenant=None))
    await made(w.store, replace(CI, tenant="bolt"))
    with pytest.raises(DefinitionError):
        await keys.create(other.key_id, other.digest, replace(CI, name="No Name"), actor="bob")
    ok(await keys.revoke(key.key_id, "replaced", actor="bob"))
    assert ok(await keys.create(other.key_id, other.digest, CI, actor="bob")).created
    assert await names(w.store) == ["ci", "acme/ci", "acme/ci", "bolt/ci"]
    assert len(await told(w.store, "key_created")) == 4


@check
async def a_key_is_revoked_for_good(w: "World") -> None:
    keys = w.store.keys
    key, credential = await made(w.store)
    await w.clock.advance(MINUTE)
    done = ok(await keys.revoke(key.key_id, "it leaked", actor="bob"))
    expected = replace(credential, revoked_ms=NOW + MINUTE, revoked_by="bob", revoked_why="it leaked")
    assert (done.credential, done.changed, done.now_ms) == (expected, True, NOW + MINUTE)
    await w.clock.advance(MINUTE)
    again = ok(await keys.revoke(key.key_id, "again", actor="cid"))
    assert (again.credential, again.changed) == (expected, False)
    found = await keys.find(key.key_id)
    assert not isinstance(verify(key, found.key, found.now_ms), Credential)
    [(actor, detail)] = await told(w.store, "key_revoked")
    assert actor == "bob"
    assert detail == {"key_id": key.key_id, "name": "ci", "tenant": "acme", "reason": "it leaked"}
    assert await keys.revoke("0" * 10, "x", actor="bob") == Refused("there is no key 0000000000")


@check
async def a_tenant_is_told_of_its_own_keys(w: "World") -> None:
    """And of their sessions, among the events of its jobs; of no key of another tenant or of the fleet. In pages."""
    history = w.store.history
    tokens = {}
    for tenant in ("acme", "bolt", None):
        key, _ = await made(w.store, replace(CI, tenant=tenant))
        tokens[tenant] = new_session().digest
        ok(await w.store.sessions.create(tokens[tenant], key.key_id))
        ok(await w.store.sessions.end(tokens[tenant]))
        ok(await w.store.keys.revoke(key.key_id, "x", actor="bob"))
    seen = await history.events(Span("acme"))
    assert [line.kind for line in seen] == ["key_revoked", "session_ended", "session_began", "key_created"]
    assert {line.tenant for line in seen} == {"acme"}
    paged = [*await history.events(Span("acme"), limit=3)]
    paged += await history.events(Span("acme", before_id=paged[-1].event_id), limit=3)
    assert paged == seen
    assert [line.kind for line in await history.events(Span("bolt"), kind="session_began")] == ["session_began"]
    assert await history.events(Span("acme", "a-job")) == []
    assert await history.events(Span("acme"), kind="job_paused") == []
    everybodys = await history.events(Span(), kind="key_created")
    assert [line.tenant for line in everybodys] == [None, "bolt", "acme"]


@check
async def a_tenant_revokes_only_its_own_keys(w: "World") -> None:
    """Those of others do not exist for it: the same words as about an id that nobody has."""
    keys = w.store.keys
    mine, theirs, fleet = [(await made(w.store, replace(CI, tenant=each)))[0] for each in ("acme", "bolt", None)]
    for key in (theirs, fleet):
        refused = await keys.revoke(key.key_id, "x", actor="bob", tenant="acme")
        assert refused == Refused(f"there is no key {key.key_id}")
    assert ok(await keys.revoke(mine.key_id, "x", actor="bob", tenant="acme")).changed
    assert not ok(await keys.revoke(mine.key_id, "x", actor="bob", tenant="acme")).changed
    assert await keys.count() == 2


@check
async def keys_are_listed_by_filter_and_page(w: "World") -> None:
    """Expired and revoked ones stay."""
    store = w.store
    await made(store, KeyWish("root", Role.ADMIN))
    await made(store, KeyWish("w1", Role.WORKER, pools=("reports", "mail")))
    await made(store, KeyWish("short", Role.VIEWER, "acme", lasts_ms=HOUR))
    gone, _ = await made(store, KeyWish("gone", Role.VIEWER, "acme"))
    ok(await store.keys.revoke(gone.key_id, "x", actor="ann"))
    assert await store.keys.count() == 3
    await w.clock.advance(HOUR)
    assert await store.keys.count() == 2
    assert await names(store) == ["root", "w1", "acme/gone", "acme/short"]
    assert await names(store, tenant="acme") == ["acme/gone", "acme/short"]
    assert await names(store, role=Role.WORKER) == await names(store, name="w1") == ["w1"]
    assert await names(store, state="active") == ["root", "w1"]
    assert await names(store, state="expired") == ["acme/short"]
    assert await names(store, state="revoked") == ["acme/gone"]
    found = await store.keys.list(KeyFilter(), 2)
    assert (found.now_ms, [each.name for each in found.keys]) == (NOW + HOUR, ["root", "w1"])
    assert found.keys[1].pools == ("reports", "mail")
    assert await names(store, after=found.keys[1].key_id) == ["acme/gone", "acme/short"]
    assert await names(store, tenant="nobody") == await names(store, after="0" * 10) == []
    states = [state_of(each, found.now_ms) for each in (await store.keys.list(KeyFilter(), 9)).keys]
    assert states == ["active", "active", "revoked", "expired"]


@check
async def a_use_is_written_once_a_minute(w: "World") -> None:
    keys = w.store.keys
    one, two = (await made(w.store))[0], (await made(w.store, replace(CI, name="b")))[0]

    async def used() -> list[int | None]:
        return [each.last_used_ms for each in (await keys.list(KeyFilter(), 9)).keys]

    assert await used() == [None, None]
    assert await keys.touch([two.key_id, "0" * 10]) == Ok(1)
    await w.clock.advance(MINUTE - 1)
    assert await keys.touch([one.key_id, two.key_id]) == Ok(1)
    assert sorted(await used(), key=str) == [NOW, NOW + MINUTE - 1]
    await w.clock.advance(1)
    assert await keys.touch([one.key_id, two.key_id]) == Ok(1)
    assert await keys.touch([]) == Ok(0)
    assert sorted(await used(), key=str) == [NOW + MINUTE - 1, NOW + MINUTE]


# --- sessions


@check
async def a_session_begins_with_a_key_and_ends(w: "World") -> None:
    key, credential = await made(w.store)
    token = new_session()
    first = ok(await w.store.sessions.create(token.digest, key.key_id))
    assert (first.credential, first.created_ms, first.expires_ms) == (credential, NOW, NOW + 12 * HOUR)
    await w.clock.advance(9)
    again = ok(await w.store.sessions.create(token.digest, key.key_id))  # the reply was lost, say
    assert (again.created_ms, again.expires_ms, again.now_ms) == (NOW, NOW + 12 * HOUR, NOW + 9)
    assert await w.store.sessions.find(token.digest) == again
    assert await w.store.sessions.find(new_session().digest) is None
    assert await w.store.sessions.end(token.digest) == Ok(True)
    assert await w.store.sessions.end(token.digest) == Ok(False)
    assert await w.store.sessions.find(token.digest) is None


@check
async def a_session_ends_with_its_key(w: "World") -> None:
    """However long it was to last: revoked or expired, at that very instant."""
    store = w.store
    short, _ = await made(store, replace(CI, lasts_ms=HOUR))
    doomed, _ = await made(store, replace(CI, name="doomed"))
    long, _ = await made(store, replace(CI, name="long"))
    tokens = [new_session().digest for _ in range(3)]
    ends = [
        ok(await store.sessions.create(token, key.key_id)).expires_ms
        for token, key in zip(tokens, (short, doomed, long), strict=True)
    ]
    assert ends == [NOW + HOUR, NOW + 12 * HOUR, NOW + 12 * HOUR]

    async def alive() -> list[bool]:
        return [await store.sessions.find(token) is not None for token in tokens]

    assert await alive() == [True, True, True]
    ok(await store.keys.revoke(doomed.key_id, "x", actor="ann"))
    assert await alive() == [True, False, True]
    await w.clock.set(NOW + HOUR)
    assert await alive() == [False, False, True]
    await w.clock.set(NOW + 12 * HOUR)
    assert await alive() == [False, False, False]


@check
async def no_session_begins_with_a_key_that_does_not_count(w: "World") -> None:
    store = w.store
    revoked, _ = await made(store)
    ok(await store.keys.revoke(revoked.key_id, "x", actor="ann"))
    expired, _ = await made(store, replace(CI, lasts_ms=HOUR))
    worker, _ = await made(store, KeyWish("w", Role.WORKER, pools=("*",)))
    mine, _ = await made(store, replace(CI, name="mine"))
    token = new_session().digest
    ok(await store.sessions.create(token, mine.key_id))
    await w.clock.set(NOW + HOUR)
    for key_id in (revoked.key_id, expired.key_id, worker.key_id, "0" * 10):
        refused = await store.sessions.create(new_session().digest, key_id)
        assert refused == Refused("no session can begin with this key")
        assert isinstance(await store.sessions.create(token, key_id), Refused)  # it is somebody else's
    found = await store.sessions.find(token)
    assert found is not None
    assert found.credential.key_id == mine.key_id


@check
async def sessions_that_have_ended_are_forgotten_by_and_by(w: "World") -> None:
    key, _ = await made(w.store)
    for hours in (1, 2, 3, 24):
        ok(await w.store.sessions.create(new_session().digest, key.key_id, lasts_ms=hours * HOUR))
    before, sessions.PURGED_AT_ONCE = sessions.PURGED_AT_ONCE, 2  # type: ignore[misc]
    try:
        await w.clock.set(NOW + 3 * HOUR)
        assert [ok(await w.store.sessions.purge()) for _ in range(3)] == [2, 1, 0]
    finally:
        sessions.PURGED_AT_ONCE = before  # type: ignore[misc]


# --- idempotency


async def begin(store: Store, owner: str, request: str = "r1", key: str = "k", scope: str = "s") -> Any:
    return ok(await store.idempotency.begin(scope, key, request, owner=owner))


async def finish(store: Store, owner: str, body: bytes = b"{}", key: str = "k") -> Written[None]:
    headers = {"Location": "/jobs/1"}
    return await store.idempotency.finish("s", key, owner=owner, status=201, headers=headers, body=body)


@check
async def a_request_is_done_once_and_answered_alike(w: "World") -> None:
    store = w.store
    body = bytes(range(256))  # whatever it is, not only text
    assert await begin(store, "a") == New()
    await w.clock.advance(9)
    assert await begin(store, "a") == New()  # the reply was lost, say
    assert await begin(store, "b") == Running(NOW)
    assert await begin(store, "b", "other") == Different()
    assert await finish(store, "b") == Refused("somebody else has taken this request over")
    assert await finish(store, "a", body) == Ok(None)
    done = Done(201, {"Location": "/jobs/1"}, body)
    assert await begin(store, "b") == await begin(store, "a") == done
    assert await finish(store, "a", b"again") == Ok(None)  # repeated: the first one stays
    assert await begin(store, "c") == done
    assert await begin(store, "c", "other") == Different()
    assert await begin(store, "c", scope="somebody else") == New()
    assert await begin(store, "c", key="another") == New()


@check
async def a_request_whose_server_died_is_taken_over(w: "World") -> None:
    """By one, and only the same request; the old server, if it lives after all, changes nothing."""
    store = w.store
    assert await begin(store, "dead") == New()
    await w.clock.advance(STALE_MS - 1)
    assert await begin(store, "b") == Running(NOW)
    await w.clock.advance(1)
    assert await begin(store, "b", "other") == Different()
    assert await begin(store, "b") == New()
    assert await begin(store, "c") == Running(NOW + STALE_MS)
    assert isinstance(await finish(store, "dead", b"late"), Refused)
    assert await finish(store, "b", b"mine") == Ok(None)
    await w.clock.advance(STALE_MS)
    assert (await begin(store, "c")).body == b"mine"  # what is finished is not taken over
    assert ok(await store.idempotency.begin("s", "quick", "r", owner="a")) == New()
    assert ok(await store.idempotency.begin("s", "quick", "r", owner="b", stale_ms=0)) == New()


@check
async def a_request_that_was_not_carried_out_is_given_back(w: "World") -> None:
    store = w.store
    assert await begin(store, "a") == New()
    assert await store.idempotency.abandon("s", "k", owner="b") == Ok(False)
    assert await store.idempotency.abandon("s", "k", owner="a") == Ok(True)
    assert await store.idempotency.abandon("s", "k", owner="a") == Ok(False)
    assert await finish(store, "a") == Refused("somebody else has taken this request over")
    assert await begin(store, "b", "other") == New()
    assert await finish(store, "b") == Ok(None)
    assert await store.idempotency.abandon("s", "k", owner="b") == Ok(False)


@check
async def a_key_counts_for_a_day(w: "World") -> None:
    store = w.store
    assert await begin(store, "a") == New()
    await w.clock.advance(HOUR)
    assert await finish(store, "a") == Ok(None)
    await w.clock.set(NOW + KEPT_MS - 1)
    assert isinstance(await begin(store, "b"), Done)
    await w.clock.advance(1)
    assert await begin(store, "b", "other") == New()
    assert await begin(store, "c", "other") == Running(NOW + KEPT_MS)
    assert isinstance(await finish(store, "a"), Refused)


@check
async def a_long_answer_is_not_kept(w: "World") -> None:
    """It was done all the same, and is not done again."""
    await begin(w.store, "a")
    assert await finish(w.store, "a", b"x" * MOST_BODY) == Ok(None)
    assert (await begin(w.store, "b")).body == b"x" * MOST_BODY
    await begin(w.store, "a", key="long")
    assert await finish(w.store, "a", b"x" * (MOST_BODY + 1), key="long") == Ok(None)
    assert await begin(w.store, "b", key="long") == Done(201, {"Location": "/jobs/1"}, None)
    for wrong in ("", "x" * 256, "a\nb", "a\0b", "\ud800", "ä"):
        with pytest.raises(DefinitionError):
            await w.store.idempotency.begin("s", wrong, "r", owner="a")
    assert await begin(w.store, "a", key="x" * 255) == New()


@check
async def of_many_who_ask_at_once_one_does_it(w: "World") -> None:
    found = await asyncio.gather(*(begin(w.store, f"server {n}") for n in range(12)))
    assert sorted(type(each).__name__ for each in found) == ["New"] + ["Running"] * 11


@check
async def the_sweep_forgets_what_is_over(w: "World") -> None:
    """Sessions that have ended and answers that are a day old, so many at a time; keys stay."""
    store = w.store
    key, _ = await made(store, replace(CI, lasts_ms=HOUR))
    ok(await store.sessions.create(new_session().digest, key.key_id))
    for number in range(5):
        await begin(store, "a", key=f"old {number}")
    await w.clock.set(NOW + KEPT_MS)
    for number in range(3):
        await begin(store, "a", key=f"new {number}")

    async def left() -> tuple[int, int]:
        def script() -> Any:
            counts = {"old": 0, "new": 0}
            for age in counts:
                for number in range(5):
                    found = yield "idempotency_read", {"scope": "s", "key": f"{age} {number}"}
                    counts[age] += len(found)
            return counts["old"], counts["new"]

        found: tuple[int, int] = await store.engine.read(script)
        return found

    before, idempotency.PURGED_AT_ONCE = idempotency.PURGED_AT_ONCE, 3  # type: ignore[misc]
    try:
        ok(await store.sweeping.sweep(0))
        assert await left() == (2, 3)
        ok(await store.sweeping.sweep(0))
        assert await left() == (0, 3)
        assert ok(await store.idempotency.purge()) == ok(await store.sessions.purge()) == 0
    finally:
        idempotency.PURGED_AT_ONCE = before  # type: ignore[misc]
    assert await names(store, state="expired") == ["acme/ci"]
