"""Commit done, reply lost, for keys, sessions and requests: done again it changes nothing, and the answer is right."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fleetcron.model.access import KeyWish, Role, new_key, new_session
from fleetcron.store.idempotency import Done, New
from fleetcron.store.store import Store
from fleetcron.views.asking import answer
from tests.faults import truth
from tests.faults.replies import Forgetful, Repeating
from tests.faults.test_repeat import verbs_that_write
from tests.store.check_access import ok
from tests.store.engines import hand_cranked

NOW = 1_800_000_000_000
TABLES = ("access_keys", "access_sessions", "idempotency", "events")
WISH = KeyWish("ci", Role.OPERATOR, "acme")
ANSWER: Mapping[str, Any] = {"status": 201, "headers": {"ETag": "1"}, "body": b"{}"}


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue({"sqlite": "sqlite_file_url", "postgres": "postgres18_url"}[request.param]))


def test_every_verb_may_be_repeated(store_url: str) -> None:
    """The second time changes no row of any table, also none of the events."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOW) as (engine, clock):
            different: list[str] = []

            async def dump() -> dict[str, Sequence[str]]:
                found = await asyncio.to_thread(truth.read, store_url, TABLES)
                return {table: sorted(str(tuple(row)) for row in found[table]) for table in TABLES}

            def differs(verb: str, once: dict[str, Any], twice: dict[str, Any]) -> None:
                different.extend(f"{verb}: {table}" for table in TABLES if once[table] != twice[table])

            repeating = Repeating(engine, dump, differs)
            store, key, token = Store(repeating), new_key(), new_session()
            assert ok(await store.keys.create(key.key_id, key.digest, WISH, actor="ann")).created
            ok(await store.keys.touch([key.key_id]))
            ok(await store.sessions.create(token.digest, key.key_id))
            assert ok(await store.sessions.end(token.digest))
            ok(await store.sessions.create(token.digest, key.key_id))
            assert ok(await store.keys.revoke(key.key_id, "x", actor="ann")).changed
            for name in ("done", "given back"):
                assert ok(await store.idempotency.begin("s", name, "r", owner="a")) == New()
            ok(await store.idempotency.finish("s", "done", owner="a", **ANSWER))
            assert ok(await store.idempotency.abandon("s", "given back", owner="a"))
            await clock.advance(2 * 86_400_000)
            assert (ok(await store.sessions.purge()), ok(await store.idempotency.purge())) == (1, 1)
            assert different == []
            ours = {verb for verb in verbs_that_write() if verb.startswith(("Keys.", "Sessions.", "Idempotency."))}
            assert ours == repeating.verbs

    asyncio.run(scenario())


def test_whoever_gets_no_reply_is_answered_all_the_same(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOW) as (engine, _):
            key, token = new_key(), new_session()

            def weak() -> Store:
                return Store(Forgetful(engine, 1))

            keys, sessions = weak().keys, weak().sessions
            made = await answer(lambda: keys.create(key.key_id, key.digest, WISH, actor="ann"))
            assert (made.created, made.credential.name) == (False, "ci")  # by the first try, which nobody heard of
            session = await answer(lambda: sessions.create(token.digest, key.key_id))
            assert session.credential.key_id == key.key_id
            requests = weak().idempotency
            assert await answer(lambda: requests.begin("s", "k", "r", owner="a")) == New()  # and not: Running
            requests = weak().idempotency
            await answer(lambda: requests.finish("s", "k", owner="a", **ANSWER))
            assert ok(await requests.begin("s", "k", "r", owner="b")) == Done(**ANSWER)
            keys = weak().keys
            gone = await answer(lambda: keys.revoke(key.key_id, "x", actor="ann"))
            assert (gone.changed, gone.credential.revoked_why) == (False, "x")
            found = await asyncio.to_thread(truth.read, store_url, TABLES)
            kinds = [event["kind"] for event in found["events"] if event["kind"].startswith("key_")]
            assert sorted(kinds) == ["key_created", "key_revoked"]

    asyncio.run(scenario())
