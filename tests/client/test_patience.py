"""What is sent again and what is not: decided in pure code, and seen on a network that loses things."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fleetcron import Client
from fleetcron.client.address import address
from fleetcron.client.calls import FEW
from fleetcron.client.errors import ApiError, Refused, TooManyRequests, Unavailable
from fleetcron.client.jobs import Jobs
from fleetcron.client.sse import Following
from fleetcron.client.wire import KEY_HEADER, Answer, Broken, Heard, Request, Sleep, Terms, Tries, exchange
from fleetcron.errors import ConfigError
from tests.api.server import Api
from tests.client.faces import Asked
from tests.services.proxy import Fault, Proxy

GET, POST = Request("GET", "/x"), Request("POST", "/x")
KEYED = Request("POST", "/x", {"Idempotency-Key": "k"}, repeatable=True)
GOOD = Answer(200, {}, b"{}")
LOST, NEVER = Broken("lost", sent=True), Broken("nobody there", sent=False)


def said(status: int, **headers: str) -> Answer:
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


def played(request: Request, *heard: Heard) -> tuple[list[float], Heard | str]:
    """The waits between the tries, and how it ended."""
    waits: list[float] = []
    script = iter(heard)
    play = exchange(request, Terms(), lambda: 1.0)
    step = next(play)
    try:
        while True:
            if isinstance(step, Sleep):
                waits.append(step.seconds)
                step = next(play)
            else:
                assert step is request
                step = play.send(next(script))
    except StopIteration as end:
        return waits, end.value
    except Unavailable as error:
        return waits, str(error)


def test_what_is_safe_is_sent_again_and_nothing_else() -> None:
    for safe in (GET, KEYED):
        assert played(safe, LOST, said(503), GOOD) == ([0.2, 0.4], GOOD)
        assert played(safe, said(503, retry_after="3"), GOOD) == ([3.0], GOOD)
    assert played(POST, said(503, retry_after="1")) == ([], said(503, retry_after="1"))
    assert played(POST, LOST) == ([], "lost")
    for any_ in (GET, POST, KEYED):
        assert played(any_, NEVER, said(429, retry_after="2"), GOOD) == ([0.2, 2.0], GOOD)
        for final in (400, 401, 403, 404, 412, 422, 500):
            assert played(any_, said(final)) == ([], said(final))
    running = said(409, retry_after="1")
    assert played(KEYED, running, GOOD) == ([1.0], GOOD)  # the same request is at work
    assert played(KEYED, LOST, *[running] * 8, GOOD)[1] == GOOD  # however many tries that takes
    assert played(POST, running) == ([], running)
    assert played(KEYED, said(409)) == ([], said(409))


def test_an_answer_that_was_too_long_to_be_kept_is_asked_for_without_the_key() -> None:
    face = type("Face", (), {"terms": Terms()})()
    gone = said(200, idempotent_replayed="true")
    play = Jobs.batch.play(Jobs(face), [{"name": "j"}])
    first = next(play)
    again = play.send(gone)
    assert isinstance(first, Request)
    assert isinstance(again, Request)
    assert (KEY_HEADER in first.headers, KEY_HEADER in again.headers) == (True, False)
    with pytest.raises(StopIteration):
        play.send(GOOD)
    play = Jobs.batch.play(Jobs(face), [{"name": "j"}], mode="create")
    next(play)
    with pytest.raises(ApiError, match="it was carried out") as lost:  # asked again it would say that they exist
        play.send(gone)
    assert lost.value.code == "not_kept"
    for many, has_key in ((FEW, True), (FEW + 1, False)):
        sent = next(Jobs.batch.play(Jobs(face), [{"name": "j"}] * many))
        assert isinstance(sent, Request)
        assert (KEY_HEADER in sent.headers, sent.repeatable) == (has_key, True)


def test_tries_and_waits_are_bounded() -> None:
    assert played(GET, LOST, LOST, LOST, LOST) == ([0.2, 0.4, 0.8], "lost")
    late = said(429, retry_after="600")
    assert played(GET, late) == ([], late)  # whoever asks is told how long, and may wait himself
    waits, last = played(GET, said(503, retry_after="50"), said(503, retry_after="50"))
    assert (waits, last) == ([50.0], said(503, retry_after="50"))


def waits_of(tries: Tries, heard: Heard) -> list[float]:
    """All of them, until it gives up."""
    return list(iter(lambda: tries.wait(GET, heard), None))  # type: ignore[arg-type]


def test_whoever_only_waits_is_as_patient_as_was_said() -> None:
    waits = waits_of(tries := Tries(Terms().waiting(), lambda: 1.0), NEVER)
    assert waits[:6] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert 58 < sum(waits) <= 60
    tries.begin()  # something was heard
    assert waits_of(tries, NEVER) == waits
    assert sum(waits_of(Tries(Terms().waiting(5.0), lambda: 1.0), NEVER)) <= 5
    silent = Broken("no answer in time", sent=True, lost_s=30.0)  # what was waited for an answer counts too
    assert len(waits_of(Tries(Terms().waiting(), lambda: 1.0), silent)) == 1
    forever = Tries(Terms(patience=5_000).waiting(), lambda: 1.0)
    assert sum(waits_of(forever, NEVER)) > 4_990
    following = Following(GET, Terms(patience=1.0).waiting(), lambda: 1.0)
    assert [following.broke(None), following.broke(None)] == [0.2, 0.4]
    following.feed(b": nothing new\n")
    assert following.broke(None) == 0.2


def test_a_stream_goes_on_where_it_broke() -> None:
    following = Following(GET, Terms(tries=2), lambda: 1.0)
    lines = b'retry: 2000\n\n: nothing new\n\nid: 1.7\nevent: log\ndata: {"seq":\ndata: 7}\n\nid: 1.8\nevent: log\n'
    assert [found for line in lines.splitlines(True) if (found := following.feed(line)) is not None] == [{"seq": 7}]
    assert "Last-Event-ID" not in Following(GET, Terms(), lambda: 1.0).request.headers
    assert following.broke(None) == 0.2
    assert following.request.headers["Last-Event-ID"] == "1.8"
    over = (b"event: refused\n", b'data: {"detail": "the key was revoked"}\n', b"\n")
    assert [following.feed(line) for line in over] == [None] * 3  # no piece of a log; the next answer is 401
    assert not following.is_over()
    assert (following.feed(b"event: end\n"), following.feed(b"data: {}\n"), following.feed(b"\n")) == (None, None, None)
    assert following.is_over()
    with pytest.raises(Unavailable, match="cut off"):
        following.broke(None)


@pytest.fixture
def proxy(server: Api) -> Iterator[Proxy]:
    made: list[Proxy] = []

    async def begin() -> None:
        made.append(Proxy(server.url))
        await made[0].start()

    server.do(begin())
    try:
        yield made[0]
    finally:
        server.do(made[0].stop())


def through(proxy: Proxy) -> str:
    return proxy.url.replace("@", "")


def test_a_lost_answer_costs_nothing(server: Api, proxy: Proxy, connect: Callable[..., Asked], face: str) -> None:
    """Triggered once, answered once: the second try has the same Idempotency-Key."""
    client = connect(through(proxy), key=server._key, tenant=f"lost-{face}")
    client.jobs.create({"name": "j", "schedule": {"every": "1h"}, "run": {"command": ["true"]}})
    for fault in (Fault.LOSE_REPLY, Fault.LOSE_REQUEST):
        before = len(list(client.runs.list(job="j", state="planned")))
        proxy.at(b"/trigger", fault)
        made = client.jobs.trigger("j")
        assert proxy.struck.is_set()
        after = [each["run_id"] for each in client.runs.list(job="j", state="planned")]
        assert (len(after), after[0]) == (before + 1, made["run_id"])
    job = {"schedule": {"every": "1h"}, "run": {"command": ["true"]}}
    told: dict[bytes, Callable[[], object]] = {  # of each the repeat says what the first one did
        b"/jobs/batch": lambda: client.jobs.put({**job, "name": "put"})["done"],
        b"/apply": lambda: client.apply([{**job, "name": "applied", "tenant": f"lost-{face}"}])["jobs"][0]["done"],
        b"/backfill": lambda: client.jobs.backfill("j", "2027-01-15T05:30:00Z", "2027-01-15T06:30:00Z")["created"],
    }
    for path, ask in told.items():
        proxy.at(path, Fault.LOSE_REPLY)
        assert ask() in ("created", 1), path
        assert proxy.struck.is_set()
    client.jobs.delete("put")
    client.jobs.delete("applied")
    proxy.at(b"DELETE", Fault.LOSE_REPLY)
    with pytest.raises(Unavailable):  # it may have been carried out, and a second one would say that there is no job
        client.jobs.delete("j")
    assert list(client.jobs.list()) == []


def test_a_wait_outlives_an_api_that_goes_away(
    server: Api, proxy: Proxy, connect: Callable[..., Asked], face: str
) -> None:
    """However few tries a client has: it only waits."""
    client = connect(through(proxy), key=server._key, tenant=f"away-{face}", tries=1)
    client.jobs.create({"name": "j", "schedule": {"every": "1h"}, "run": {"command": ["true"]}})
    run_id = client.jobs.trigger("j")["run_id"]
    client.runs.cancel(run_id)
    proxy.at(b"GET /api/v1/runs/", Fault.LOSE_REQUEST)
    assert client.runs.wait(run_id)["state"] == "cancelled"
    assert proxy.struck.is_set()
    proxy.at(b"/log/stream", Fault.LOSE_REQUEST)
    assert list(client.runs.follow(run_id)) == []
    assert proxy.struck.is_set()
    tired = connect(through(proxy), key=server._key, patience=0)
    for look in (tired.runs.wait, lambda run_id: list(tired.runs.follow(run_id))):
        proxy.at(b"/api/v1/runs/", Fault.LOSE_REQUEST)
        with pytest.raises(Unavailable):
            look(run_id)


def test_a_connection_is_used_again_and_one_that_was_closed_is_noticed(
    server: Api, proxy: Proxy, connect: Callable[..., Asked]
) -> None:
    client = connect(through(proxy), key=server._key)
    client.me()
    assert len(proxy._links) == 1
    client.me()
    assert len(proxy._links) == 1
    server.do(_cut(proxy))
    if client._loop is not None:  # as in a program whose loop turns between two requests
        client._loop.run_until_complete(asyncio.sleep(0))
    client.keys.create("after-the-cut-" + client.url[-5:], "viewer")  # nothing that could be repeated
    tired = connect(server.url, key=server.key(f"tired-{client.url[-5:]}", rate=1), patience=0)
    with pytest.raises(TooManyRequests) as often:
        [tired.me() for _ in range(5)]
    assert often.value.retry_after is not None
    assert often.value.retry_after > 0


def test_a_body_that_is_too_large_is_told_by_the_server(server: Api, client: Asked) -> None:
    """More than what fits into the buffers between the two: one still sends when the other has answered."""
    large = {"name": "large", "description": "x" * (6 * 1024 * 1024)}
    with pytest.raises(Refused, match=r"the body is larger than 1,024 KiB") as refused:
        client.jobs.create(large)
    assert (refused.value.status, refused.value.code) == (413, "too_large")
    assert client.me()["tenant"] is None  # and it goes on, on another connection


def test_an_answer_counts_also_if_the_rest_of_the_request_was_not_wanted() -> None:
    """Somebody who reads nothing more, answers and closes: the sender is told of a reset, and reads the answer."""

    def impatient(listening: socket.socket) -> None:
        there, _ = listening.accept()
        with there:
            there.recv(100)
            there.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 7\r\n\r\nenough!")

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as thread:
        thread.submit(impatient, listening)
        port = listening.getsockname()[1]
        with (
            Client(f"http://127.0.0.1:{port}", key="fck_x", tries=1) as client,
            pytest.raises(Refused, match="413: enough!"),
        ):
            client.jobs.create({"name": "large", "description": "x" * (16 * 1024 * 1024)})


def test_threads_share_one_client(server: Api) -> None:
    """Each gets the answer to its own question, on connections that go from hand to hand."""
    tenants = [f"thread-{number}" for number in range(40)]
    with Client(server.url, key=server._key) as client, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda name: client.tenants.get(name)["name"], tenants))
    assert answers == tenants


async def _cut(proxy: Proxy) -> None:
    proxy.cut()
    proxy.heal()


def test_nobody_there(connect: Callable[..., Asked]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens on it
        port = taken.getsockname()[1]
        client = connect(f"http://127.0.0.1:{port}", key="fck_x", tries=2)
        with pytest.raises(Unavailable, match=rf"http://127.0.0.1:{port}: connec.*refused.*fleetcron api") as nobody:
            client.me()
    assert (nobody.value.status, nobody.value.code) == (None, "unreachable")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///fleetcron.db", "is a database"),
        ("postgresql://u@h/d", "is a database"),
        ("cron.example.com", "no address"),
        ("http://u:p@h", "a user or a password"),
        ("http://h:x", "no address"),
    ],
)
def test_addresses_that_are_none(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Client(url)


def test_where_the_address_and_the_key_come_from(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("fck_file\n")
    from_file = {
        "FLEETCRON_API_URL": "https://cron.example.com/prefix/",
        "FLEETCRON_API_KEY_FILE": str(tmp_path / "key"),
    }

    def found(url: str | None, key: str | None, **environment: Any) -> tuple[str, str | None]:
        where = address(url, key, environment)
        return where.url, where.key

    assert found(None, None, **from_file) == ("https://cron.example.com:443/prefix", "fck_file")
    assert found("http://h", "fck_a", **from_file) == ("http://h:80", "fck_a")
    assert found(None, None, **from_file, FLEETCRON_API_KEY="fck_env")[1] == "fck_env"
    assert found(None, None) == ("http://127.0.0.1:8470", None)
    assert found(None, None, FLEETCRON_API__LISTEN="0.0.0.0:9000")[0] == "http://127.0.0.1:9000"
    assert found(None, None, FLEETCRON_API__LISTEN="[::]:9000")[0] == "http://[::1]:9000"
    with pytest.raises(ConfigError, match="cannot be read"):
        found(None, None, FLEETCRON_API_KEY_FILE=str(tmp_path / "nothing"))
