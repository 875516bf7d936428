"""What an application does with a client, told to both faces, on a real server."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fleetcron.client.errors import Closed, Conflict, Forbidden, NotFound, Refused, Unauthorized
from fleetcron.client.jobs import etag
from fleetcron.model.access import Role
from fleetcron.store.claims import Claimed
from tests.api.server import Api
from tests.api.test_runs import worked
from tests.client.faces import Asked
from tests.store.check_attempts import Chunk
from tests.store.floor import ok

TRUE = {"command": ["true"]}


def nightly(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "schedule": {"cron": "0 2 * * *", "timezone": "America/New_York"}, "run": TRUE, **more}


def test_a_job_is_created_changed_steered_and_deleted(client: Asked, face: str) -> None:
    name = f"report-{face}"
    job = client.jobs.create(nightly(name))
    assert (job["state"], job["definition"]["timeout"]) == ("active", "1h")
    with pytest.raises(Conflict, match="the name is taken"):
        client.jobs.create(nightly(name))
    patched = client.jobs.patch(name, {"timeout": "5m"}, if_match=etag(job))
    assert (patched["definition"]["timeout"], patched["revision"]) == ("5m", 2)
    with pytest.raises(Conflict, match="revision 2") as changed:
        client.jobs.replace(name, nightly(name), if_match=etag(job))
    assert (changed.value.status, changed.value.code) == (412, "changed")
    assert client.jobs.replace(name, nightly(name))["definition"]["timeout"] == "1h"
    assert client.jobs.put(nightly(name, timeout="9m"))["done"] == "changed"
    assert client.jobs.diff(name, 3)["changes"] == [{"field": "timeout", "old": "1h", "new": "9m"}]
    assert [each["revision"] for each in client.jobs.revisions(name, limit=2)["revisions"]] == [4, 3]

    assert client.jobs.pause(name, on_resume="latest")["on_resume"] == "latest"
    assert client.jobs.get(name)["state"] == "paused"
    assert client.jobs.resume(name, missed="skip")["done"] == "resumed"
    assert client.jobs.next(name, count=2)["timezone"] == "America/New_York"
    assert (
        client.jobs.next(name, after=datetime(2030, 1, 1, tzinfo=UTC), count=1)["ticks"][0]["scheduled_for"][:4]
        == "2030"
    )
    assert client.jobs.preview(nightly("x"), count=3)["ticks"][0]["local"].endswith("02:00:00-05:00")
    assert client.jobs.lint({**nightly("x"), "schedule": {"cron": "*/7 * * * *"}})[0]["code"]
    filled = client.jobs.backfill(name, "2027-01-10T00:00:00Z", "2027-01-13T00:00:00Z", dry_run=True)
    assert (filled["ticks"], filled["from"]) == (3, "2027-01-10T00:00:00Z")
    assert client.jobs.why(name, "2027-01-10T00:00:01Z")["why"].startswith("2027-01-10T00:00:01Z is no tick")
    assert client.jobs.stats(name)["total_runs"] == 0
    assert client.jobs.cancel(name)["state"] == "cancelled"
    assert client.jobs.delete(name)["done"] == "deleted"
    with pytest.raises(NotFound, match=f"there is no job {name}"):
        client.jobs.get(name)


@pytest.mark.parametrize(("if_match", "error", "words"), [("", Conflict, "is empty"), (None, TypeError, "etag")])
def test_who_has_no_tag_changes_nothing(client: Asked, face: str, if_match: Any, error: Any, words: str) -> None:
    name = f"untagged-{face}-{error.__name__.lower()}"
    client.jobs.create(nightly(name))
    with pytest.raises(error, match=words):
        client.jobs.patch(name, {"timeout": "5m"}, if_match=if_match)
    with pytest.raises(error, match=words):
        client.jobs.replace(name, nightly(name), if_match=if_match)
    with pytest.raises(error, match=words):
        client.jobs.delete(name, if_match=if_match)
    assert client.jobs.get(name)["revision"] == 1


async def dies(server: Api, run: Claimed) -> None:
    """Its second failure is its last one."""
    floor = server.floor
    await floor.fail("n", run)
    again: list[Claimed] = []
    while not again:
        await floor.clock.advance(3_600_000)
        await floor.queue()
        again = [each for each in await floor.claim("n") if each.run_id == run.run_id]
    await floor.fail("n", again[0])


def test_every_mistake_comes_with_its_place(client: Asked) -> None:
    with pytest.raises(Refused) as wrong:
        client.jobs.create(
            {"name": "BAD", "schedule": {"cron": "61 * * * *"}, "run": TRUE, "retry": {"backoff": ["x"]}}
        )
    assert [each.pointer for each in wrong.value.mistakes] == ["/name", "/schedule/cron", "/retry/backoff/0"]
    assert wrong.value.request_id
    assert "/retry/backoff/0: " in str(wrong.value)
    with pytest.raises(Refused) as unknown:
        list(client.runs.list(since="yesterday"))
    assert [each.pointer for each in unknown.value.mistakes] == ["from"]
    with pytest.raises(ValueError, match="has no offset"):
        client.jobs.why("x", datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None))


def test_mistakes_of_the_program_itself(server: Api, connect: Callable[..., Asked]) -> None:
    client = connect(server.url, key=server._key)
    for call, words in (
        (lambda: client.jobs.create("hello"), r"a job is a mapping, such as \{'name': …\}, not str 'hello'"),
        (lambda: client.jobs.batch([1]), "a job is a mapping, .* not int 1"),
        (lambda: client.jobs.put([]), r"a job is a mapping, .* not list \[\]"),
        (lambda: client.calendars.put("days", 3), "a calendar is a mapping"),
        (lambda: client.jobs.list(stat="active"), r"jobs.list\(\) has no argument 'stat'; did you mean state\?"),
        (
            lambda: client.runs.wait(1, patience=3),
            r"runs.wait\(\) has no argument 'patience'; there are: run_id",
        ),
        (lambda: client.overview(since=1), r"client.overview\(\) has no argument 'since'; there are: tenant"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    with pytest.raises(NotFound, match="A job in a path is its name, without a slash"):
        client.jobs.get("acme/report")
    client.me()
    client.close()
    for sent in (client.me, lambda: next(client.runs.follow(1))):
        with pytest.raises(Closed, match="this client is closed: make a new one"):
            sent()


def test_many_jobs_in_one_call_and_from_page_to_page(client: Asked, face: str) -> None:
    documents = [nightly(f"many-{number:04}", tenant=f"big-{face}") for number in range(210)]
    done = client.jobs.batch([*documents, {"name": "no schedule", "tenant": f"big-{face}"}])
    assert done["counts"] == {"created": 210, "refused": 1}
    assert "/schedule" in [each["pointer"] for each in done["items"][-1]["errors"]]
    names = [each["name"] for each in client.jobs.list(tenant=f"big-{face}")]
    assert names == [each["name"] for each in documents]
    assert len(list(client.jobs.list(tenant=f"big-{face}", limit=205))) == 205
    page = client.jobs.page(tenant=f"big-{face}", limit=2)
    rest = client.jobs.list(tenant=f"big-{face}", cursor=page["next"])
    assert next(iter(rest))["name"] == "many-0002"
    assert client.tenants.get(f"big-{face}")["jobs"] == 210


def test_runs_are_triggered_followed_awaited_and_replayed(
    server: Api, client: Asked, connect: Callable[..., Asked], face: str
) -> None:
    name, tenant = f"tick-{face}", f"t-{face}"
    mine = connect(server.url, key=server._key, tenant=tenant)
    mine.jobs.create({"name": name, "schedule": {"cron": "* * * * *"}, "run": TRUE, "retry": {"max_attempts": 2}})
    [run] = worked(server, "run")
    heard: list[str] = []
    begun = threading.Event()

    def listen(own: Asked) -> None:
        for piece in own.runs.follow(run.run_id):
            heard.append(piece["text"])
            begun.set()

    listener = connect(server.url, key=server._key)
    listening = threading.Thread(target=listen, args=(listener,))
    prints = [Chunk(run.run_id, run.attempt, at, f"line {at} ☂\n") for at in range(3)]
    ok(server.do(server.store.output.append("n", prints[:1])))
    listening.start()
    assert begun.wait(30)
    ok(server.do(server.store.output.append("n", prints[1:])))
    server.do(dies(server, run))
    listening.join(30)
    assert heard == ["line 0 ☂\n", "line 1 ☂\n", "line 2 ☂\n"]
    assert [piece["seq"] for piece in client.runs.log(run.run_id, attempt=1)] == [0, 1, 2]

    assert client.runs.wait(run.run_id, timeout=5)["state"] == "dead"
    assert [each["run_id"] for each in mine.dead.list(job=name)] == [run.run_id]
    assert [each["outcome"] for each in client.runs.attempts(run.run_id)["attempts"]] == ["failed", "failed"]
    assert mine.dead.replay(job=name, dry_run=True)["can_be_replayed"] == 1
    assert client.runs.replay(run.run_id)["done"] == "replayed"
    with pytest.raises(Conflict, match=f"run {run.run_id}: "):
        client.runs.discard(run.run_id, "it is not dead any more")
    assert client.runs.cancel(run.run_id, reason="enough")["done"] == "cancelled"
    assert client.runs.cancel_many([run.run_id, 10**9])["runs"][1]["reason"] == "there is no such run"

    made = mine.jobs.trigger(name, payload={"n": 1}, key=f"monday-{face}")
    again = mine.jobs.trigger(name, payload={"n": 1}, key=f"monday-{face}")
    assert (made["created"], again) == (True, {**made, "created": False})
    rotated = connect(server.url, key=server.key(f"rotated-{face}"), tenant=tenant)
    assert rotated.jobs.trigger(name, payload={"n": 1}, key=f"monday-{face}") == again
    assert mine.jobs.trigger(name)["run_id"] != made["run_id"]
    assert client.runs.get(made["run_id"])["payload"] == {"n": 1}
    assert client.runs.why(made["run_id"])["run_id"] == made["run_id"]
    assert made["run_id"] in [each["run_id"] for each in mine.runs.list(job=name, state="planned")]
    assert [each["run_id"] for each in mine.jobs.runs(name, limit=1)]
    with pytest.raises(Exception, match=f"run {made['run_id']} is still planned after 0 s"):
        client.runs.wait(made["run_id"], timeout=0)


def test_the_fleet_its_limits_and_who_may_ask(
    server: Api, client: Asked, connect: Callable[..., Asked], face: str
) -> None:
    tenant = f"acme-{face}"
    assert client.tenants.set(tenant, {"weight": 3})["after"]["weight"] == 3
    assert client.tenants.reset(tenant)["done"] == "changed"
    assert client.pools.set("default", {"per_tenant": 2})["after"]["per_tenant"] == 2
    client.pools.reset("default")
    client.jobs.create(nightly("n", tenant=tenant))
    assert client.calendars.put("eu", {"holidays": ["2027-12-24"]}, tenant=tenant)["done"] == "changed"
    assert client.calendars.get("eu", tenant=tenant)["holidays"] == ["2027-12-24"]
    assert [each["name"] for each in client.calendars.list(tenant=tenant)["calendars"]] == ["eu"]
    assert client.holds.switch("tenant", tenant, "outage", percent=0, lasts="2h")["after"]["percent"] == 0
    assert [each["reason"] for each in client.holds.list()["holds"]] == ["outage"]
    assert client.holds.release("tenant", tenant, reason="over")["after"] is None
    assert {"now", "running"} <= client.overview().keys()
    assert client.shards()["shards"] == client.nodes()["shards"] == 4
    assert "job_created" in {each["kind"] for each in client.events.list(job="n", tenant=tenant)}
    assert list(client.ledger.list(job="n", tenant=tenant)) == []
    assert "default" in {each["name"] for each in client.pools.list()["pools"]}

    made = client.keys.create(f"ci-{face}", "viewer", tenant=tenant, expires_in="1d")
    theirs = connect(server.url, key=made["key"])
    assert (theirs.me()["tenant"], theirs.me()["role"]) == (tenant, "viewer")
    assert [each["name"] for each in theirs.jobs.list()] == ["n"]
    with pytest.raises(Forbidden, match="takes the role operator"):
        theirs.jobs.pause("n")
    assert made["key_id"] in [each["key_id"] for each in client.keys.list(role="viewer")]
    assert client.keys.revoke(made["key_id"], "lost")["state"] == "revoked"
    with pytest.raises(Unauthorized) as no:
        theirs.me()
    assert no.value.status == 401
    assert made["key"] not in repr(theirs._thing) + repr(vars(theirs._thing))


def test_a_client_of_one_tenant_means_that_tenant(server: Api, connect: Callable[..., Asked], face: str) -> None:
    operator = server.key(f"op-{face}", Role.OPERATOR)
    mine = connect(f"{server.url}/api/v1/", key=operator, tenant=f"own-{face}")
    mine.jobs.create(nightly("a"))
    mine.jobs.create(nightly("a", tenant=f"other-{face}"))
    assert [each["tenant"] for each in mine.jobs.list()] == [f"own-{face}"]
    assert mine.jobs.get("a", tenant=f"other-{face}")["tenant"] == f"other-{face}"
