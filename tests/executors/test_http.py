"""HTTP calls against real servers on this machine, which the operator of these tests allows."""

import asyncio
import base64
import hmac
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from yarl import URL

from fleetcron import __version__
from fleetcron.clock import SystemClock
from fleetcron.config import ExecutorConfig
from fleetcron.executors.addresses import AddressRefused, AddressRules
from fleetcron.executors.assembly import executors
from fleetcron.executors.assignment import Assignment
from fleetcron.executors.codes import is_permanent
from fleetcron.executors.http import CheckedResolver, HttpCalls, SecretOf, _moved, _Refused, _Request
from fleetcron.executors.programs import Programs
from fleetcron.executors.reports import Done
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import CommandTarget, HttpTarget
from tests.executors.stage import Heard, assignment

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(answer: Answering, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Its address."""
    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, host, 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def calls(*internal: str, secret_of: SecretOf | None = None) -> AsyncIterator[tuple[HttpCalls, Heard]]:
    heard = Heard()
    executor = HttpCalls(ExecutorConfig(internal=internal), SystemClock(), heard.tell, secret_of)
    try:
        yield executor, heard
    finally:
        await executor.close(0)


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    ).sign(key, hashes.SHA256())
    file = folder / "tls.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(file)
    return tls


def call(
    answer: Answering,
    path: str = "/",
    *,
    internal: tuple[str, ...] = ("127.0.0.1",),
    timeout_s: float = 60,
    payload: dict[str, Any] | None = None,
    secret_of: SecretOf | None = None,
    **target: Any,
) -> Done:
    async def scenario() -> Done:
        async with server(answer) as address, calls(*internal, secret_of=secret_of) as (executor, heard):
            given = assignment(HttpTarget(address + path, **target), timeout_s=timeout_s, payload=payload)
            executor.start([given])
            end = await heard.end_of(1)
            assert heard.log(1) == end.log_tail
            return end

    return asyncio.run(scenario())


def fault_of(end: Done) -> Fault:
    assert isinstance(end.outcome, Failed)
    return end.outcome.error


async def echo(request: web.Request) -> web.Response:
    body = (await request.read()).decode()
    return web.json_response({"method": request.method, "headers": dict(request.headers), "body": body})


def test_a_call_carries_the_payload_and_the_identity_of_the_run() -> None:
    headers = {"X-Shop": "a", "Content-Length": "7", "Host": "other", "fleetcron-run-id": "99", "traceparent": "fake"}
    end = call(echo, payload={"kind": "é"}, headers=headers)
    assert end.outcome == Succeeded()
    said = json.loads(end.result_json or "")
    got = said["headers"]
    assert said["method"] == "POST"
    assert json.loads(said["body"]) == {"kind": "é"}
    assert got.pop("Host").startswith("127.0.0.1:")
    assert got.pop("traceparent").startswith("00-")
    assert got == {
        "X-Shop": "a",
        "Content-Type": "application/json",
        "Content-Length": str(len('{"kind":"é"}'.encode())),
        "User-Agent": f"fleetcron/{__version__}",
        "Accept-Encoding": "identity",
        "Accept": "*/*",
        "Fleetcron-Job": "nightly-report",
        "Fleetcron-Tenant": "acme",
        "Fleetcron-Scheduled-For": "2026-09-21T14:13:20Z",
        "Fleetcron-Run-Id": "1",
        "Fleetcron-Attempt": "1",
        "Fleetcron-Fence": "1",
        "Fleetcron-Covers": "1",
        "Idempotency-Key": "job:018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071:scheduled_for:2026-09-21T14:13:20Z",
    }
    assert end.log_tail.startswith("POST http://127.0.0.1:")


def test_a_body_of_its_own_and_a_get_without_one() -> None:
    said = json.loads(call(echo, body="<a/>", headers={"content-type": "text/xml"}, method="put").result_json or "")
    assert (said["method"], said["body"], said["headers"]["Content-Type"]) == ("PUT", "<a/>", "text/xml")
    said = json.loads(call(echo, method="GET", payload={"a": 1}).result_json or "")
    assert (said["body"], "Content-Type" in said["headers"]) == ("", False)


@pytest.mark.parametrize(
    ("status", "headers", "retry_after_ms", "permanent"),
    [
        (500, {}, None, False),
        (503, {"Retry-After": "7"}, 7000, False),
        (429, {"Retry-After": "999999999999"}, 86_400_000, False),
        (429, {"Retry-After": "soon"}, None, False),
        (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, False),
        (408, {}, None, False),
        (404, {}, None, True),
        (410, {}, None, True),
        (304, {}, None, False),
    ],
)
def test_other_answers_are_failures(
    status: int, headers: dict[str, str], retry_after_ms: int | None, permanent: bool
) -> None:
    """S3-37: retry only what may pass; what the other side asks for is kept."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, text="" if status == 304 else "the reason\0")

    end = call(answer)
    assert isinstance(end.outcome, Failed)
    assert end.outcome.error.code == f"http_{status}"
    assert ("the reason�" in end.outcome.error.text) == (status != 304)
    assert end.outcome.retry_after_ms == retry_after_ms
    assert is_permanent(end.outcome.error.code) == permanent
    assert end.result_json is None


@pytest.mark.parametrize(
    ("body", "kind", "result"),
    [
        (b'{"rows": 3}', "application/json; charset=utf-8", '{"rows":3}'),
        (b'{"rows": 3}', "application/problem+json", '{"rows":3}'),
        (b"hello", "text/plain", '{"status": 200}'),
        (b"{nonsense", "application/json", '{"status": 200}'),
        (b"[NaN]", "application/json", '{"status": 200}'),
        (b"[" * 60_000, "application/json", '{"status": 200}'),
        (json.dumps("x" * 70_000).encode(), "application/json", '{"status": 200}'),
        (b'"\\u0000"', "application/json", '"�"'),
        (b"", "application/json", '{"status": 200}'),
    ],
)
def test_the_answers_own_json_is_the_result(body: bytes, kind: str, result: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Type": kind})

    end = call(answer)
    assert (end.outcome, end.result_json) == (Succeeded(), result)


def test_an_answer_without_end_is_cut() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"y" * 16_384)
        except OSError:  # they have hung up
            return response

    end = call(answer)
    assert (end.outcome, end.result_json) == (Succeeded(), '{"status": 200}')
    assert 48 * 1024 < end.log_bytes < 49 * 1024


def test_a_call_that_takes_too_long_times_out() -> None:
    """S1-26: at the headers, in the middle of the body."""

    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def drips(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"y")
        await asyncio.Event().wait()
        raise AssertionError

    for answer in (never, drips):
        assert call(answer, timeout_s=0.2).outcome == TimedOut(Fault("timeout", "Job timed out after 0.2s"))


def test_cancel_and_close() -> None:
    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        async with server(never) as address, calls("127.0.0.0/8") as (executor, heard):
            executor.start([assignment(HttpTarget(address), number) for number in range(3)])
            executor.cancel(0, 1, "before its first step")
            assert (await heard.end_of(0)).outcome == Cancelled("before its first step")
            executor.cancel(1, 1, "enough")
            executor.cancel(77, 1, "never heard of it")
            assert (await heard.end_of(1)).outcome == Cancelled("enough")
            assert executor.running() == {(2, 1)}
            assert executor.knows(HttpTarget(address))
            assert not executor.knows(CommandTarget(("true",)))
            await executor.close(0.05)
            assert heard.done[2, 1].outcome == Lost(Fault("worker_stopped", "the worker was stopped"))

    asyncio.run(scenario())


def test_connections_that_fail_have_codes_of_their_own(tmp_path: Path) -> None:
    tls = self_signed(tmp_path)

    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport
        request.transport.abort()
        return web.Response()

    async def scenario() -> dict[int, Done]:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            closed = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
            async with server(echo, tls) as secure, server(hang_up) as rude, calls("127.0.0.1") as (executor, heard):
                urls = [closed, secure, rude, "http://no-such-host.invalid/", "http://127.1:99/"]
                executor.start([assignment(HttpTarget(url), at) for at, url in enumerate(urls)])
                executor.start([assignment(HttpTarget(rude, headers={"X": "a\r\nY: b"}), 5)])
                return {key[0]: end for key, end in (await heard.ends(6)).items()}

    ends = asyncio.run(scenario())
    assert [fault_of(ends[at]).code for at in range(6)] == [
        "connection_failed",
        "tls_failed",
        "connection_failed",
        "name_not_found",
        "bad_request",  # an address that is not written like one
        "bad_request",
    ]
    assert not is_permanent("connection_failed")


def test_calls_are_signed_if_there_is_a_secret() -> None:
    """Standard Webhooks: id, timestamp and body under one key."""
    said = json.loads(call(echo, payload={"a": 1}, secret_of=lambda _: b"key").result_json or "")
    headers = said["headers"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{said['body']}".encode()
    expected = base64.b64encode(hmac.digest(b"key", signed, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == headers["Idempotency-Key"]
    unsigned = json.loads(call(echo, secret_of=lambda _: None).result_json or "")
    assert "webhook-signature" not in unsigned["headers"]


def test_a_worker_signs_with_the_key_of_the_tenant() -> None:
    """The whole way, from the setting to the headers. Whoever receives calls of one tenant has no key of another."""
    secret = base64.b64encode(b"s" * 32).decode()
    config = ExecutorConfig(internal=("127.0.0.1",), signing_secret=secret)

    async def scenario() -> list[dict[str, Any]]:
        heard, programs = Heard(), Programs({})
        executor = executors(programs, config, {}, SystemClock())("default", 4, heard.tell)
        try:
            async with server(echo) as address:
                given = assignment(HttpTarget(address), 1)
                executor.start([given, given._replace(run_id=2, tenant="globex")])
                ends = await heard.ends(2)
        finally:
            await executor.close(0)
            await programs.close()
        return [json.loads(ends[run_id, 1].result_json or "") for run_id in (1, 2)]

    first, other = asyncio.run(scenario())
    for said, tenant in ((first, "acme"), (other, "globex")):
        headers, key = said["headers"], hmac.digest(b"s" * 32, f"fleetcron calls of {tenant}".encode(), "sha256")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{said['body']}".encode()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


# -- where a call may go


def test_without_the_operators_word_no_call_reaches_this_machine() -> None:
    reached: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response()

    async def scenario() -> list[Fault]:
        async with server(answer) as address, calls() as (executor, heard):
            port = address.rpartition(":")[2]
            hosts = [
                "127.0.0.1",
                "localhost",
                "[::ffff:127.0.0.1]",
                "0.0.0.0",
                "[::1]",
                "localhost.",
                "127.0.0.1.",
            ]  # the last two as the machine likes
            executor.start([assignment(HttpTarget(f"http://{host}:{port}/"), at) for at, host in enumerate(hosts)])
            ends = await heard.ends(len(hosts))
            return [fault_of(ends[at, 1]) for at in range(len(hosts))]

    faults = asyncio.run(scenario())
    assert {fault.code for fault in faults[:5]} == {"address_refused"}
    assert {fault.code for fault in faults[5:]} <= {"address_refused", "name_not_found", "bad_request"}
    assert faults[0].text == "127.0.0.1 is loopback; the operator can allow it in executor.internal"
    assert "(of localhost)" in faults[1].text
    assert reached == []
    assert is_permanent("address_refused")


def test_the_operator_may_allow_a_host_by_its_name() -> None:
    async def scenario() -> None:
        async with server(echo) as address, calls("localhost") as (executor, heard):
            by_name = address.replace("127.0.0.1", "localhost")
            executor.start([assignment(HttpTarget(by_name), 1), assignment(HttpTarget(address), 2)])
            assert (await heard.end_of(1)).outcome == Succeeded()
            assert fault_of(await heard.end_of(2)).code == "address_refused"

    asyncio.run(scenario())


def test_a_name_is_judged_by_every_address_and_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One public address does not make a private one public, and the connection goes where the check looked."""

    async def scenario() -> list[str]:
        answers = [["93.184.215.14", "10.0.0.7"], ["93.184.215.14"], ["10.0.0.7"]]

        def getaddrinfo(_host: str, port: int, **_: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in answers.pop(0)]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        resolver = CheckedResolver(AddressRules(()))
        with pytest.raises(AddressRefused, match=r"10\.0\.0\.7 \(of rebound\.example\) is private"):
            await resolver.resolve("rebound.example", 80)
        found = await resolver.resolve("rebound.example", 80)
        assert answers == [["10.0.0.7"]]  # which nobody asked for
        return [each["host"] for each in found]

    assert asyncio.run(scenario()) == ["93.184.215.14"]


def test_names_that_nobody_answers_for_are_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lookup goes on when its call has ended, and as many as there are threads for everybody are soon there."""
    resolve, hangs = socket.getaddrinfo, threading.Event()

    def getaddrinfo(host: str, *wanted: Any, **more: Any) -> list[Any]:
        if host.endswith(".silent.example"):
            assert hangs.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return resolve(host, *wanted, **more)

    async def scenario() -> None:
        async with server(echo) as address, calls("localhost") as (executor, heard):
            silent = [HttpTarget(f"http://n{number}.silent.example/") for number in range(1, 41)]
            executor.start([assignment(each, at, timeout_s=0.1) for at, each in enumerate(silent, 1)])
            for run_id in range(1, 41):
                assert isinstance((await heard.end_of(run_id)).outcome, TimedOut)
            by_name = HttpTarget(address.replace("127.0.0.1", "localhost"))
            executor.start([assignment(by_name, 41, timeout_s=5)])
            assert (await heard.end_of(41)).outcome == Succeeded()

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    try:
        asyncio.run(asyncio.wait_for(scenario(), 30))
    finally:
        hangs.set()


def redirecting(status: int, to: str) -> Answering:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/start":
            return web.Response(status=status, headers={"Location": to})
        return await echo(request)

    return answer


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [(302, "POST", "GET"), (303, "PUT", "GET"), (307, "POST", "POST"), (308, "PUT", "PUT"), (301, "GET", "GET")],
)
def test_redirects_are_followed(status: int, method: str, expected: str) -> None:
    end = call(redirecting(status, "/there"), "/start", method=method, payload={"a": 1}, headers={"X-Key": "k"})
    said = json.loads(end.result_json or "")
    assert said["method"] == expected
    assert said["body"] == ("" if expected == "GET" else '{"a":1}')
    assert said["headers"]["X-Key"] == "k"  # the same host
    assert said["headers"]["Fleetcron-Run-Id"] == "1"


@pytest.mark.parametrize(
    ("to", "code", "text"),
    [
        ("http://169.254.169.254/latest/meta-data/", "address_refused", "169.254.169.254 is link-local"),
        ("http://127.0.0.2:1/", "address_refused", "127.0.0.2 is loopback"),
        ("http://[::1]:1/", "address_refused", "::1 is not public"),
        ("http://10.1.2.3/", "address_refused", "10.1.2.3 is private"),
        ("ftp://127.0.0.1/x", "address_refused", "is not an http or https address"),
        ("file:///etc/passwd", "address_refused", "is not an http or https address"),
        ("/start", "too_many_redirects", "more than 5 redirects"),
    ],
)
def test_each_redirect_is_checked_like_the_first_call(to: str, code: str, text: str) -> None:
    fault = fault_of(call(redirecting(302, to), "/start"))
    assert (fault.code, text in fault.text) == (code, True), fault


def test_secrets_of_a_job_do_not_follow_a_redirect_to_another_host() -> None:
    async def scenario() -> dict[str, Any]:
        async with (
            server(echo) as there,
            server(redirecting(307, there + "/x")) as here,
            calls("127.0.0.1", secret_of=lambda _: b"key") as (executor, heard),
        ):
            headers = {"Authorization": "Bearer hush", "X-Api-Key": "hush"}
            executor.start([assignment(HttpTarget(here + "/start?token=hush", headers=headers))])
            end = await heard.end_of(1)
            assert "hush" not in end.log_tail.partition("\n")[0]
            return dict(json.loads(end.result_json or "")["headers"])

    got = asyncio.run(scenario())
    assert not {"Authorization", "X-Api-Key", "webhook-signature"} & set(got)
    assert got["Idempotency-Key"].startswith("job:")


def test_encryption_is_not_given_up_on_the_way() -> None:
    request = _Request(URL("https://shop.example/a"), "POST", {}, b"{}")
    with pytest.raises(_Refused):
        _moved(request, 307, URL("http://shop.example/a"))


def test_a_hundred_calls_at_once_and_no_cookies() -> None:
    async def answer(request: web.Request) -> web.Response:
        response = web.json_response(request.headers.get("Cookie"))
        response.set_cookie("session", "of another tenant")
        return response

    async def scenario() -> set[str | None]:
        async with server(answer) as address, calls("127.0.0.1") as (executor, heard):
            some: list[Assignment] = [assignment(HttpTarget(address), number) for number in range(100)]
            executor.start(some[:50])
            await heard.ends(50)
            executor.start(some[50:])
            return {end.result_json for end in (await heard.ends(100)).values()}

    assert asyncio.run(scenario()) == {"null"}
