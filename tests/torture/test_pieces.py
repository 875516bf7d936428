"""The pieces of a torture: the enumerator, the network that fails, what a name is, what is shown."""

import asyncio
import os
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fleetcron.cli.torture_report import Spoken, Terminal, print_result
from fleetcron.clock import SystemClock
from fleetcron.model.entry import cron_entry, entry_document, once_entry
from fleetcron.model.rules import Entry, EveryEntry
from fleetcron.times import Cron, Every
from fleetcron.times.instants import from_ms, to_ms
from fleetcron.torture.enumerator import ticks
from fleetcron.torture.evidence import Evidence, FaultKind
from fleetcron.torture.ground import NAME, Facts, Owner, new_name
from fleetcron.torture.healing import Healing
from fleetcron.torture.jobs import jobs, resume_policies
from fleetcron.torture.members import Member
from fleetcron.torture.network import Proxy
from fleetcron.torture.siege import Plan, Progress, Result, Wish
from fleetcron.torture.verdict import PROMISES, Verdict, Violation
from tests.services.ports import free_port

BEGIN_MS = 1_800_000_000_123
END_MS = BEGIN_MS + 400_000


def counted(entry: Entry) -> list[int]:
    return ticks({"schedule": [entry_document(entry)]}, BEGIN_MS, END_MS)


@pytest.mark.parametrize("expression", ["* * * * * *", "*/2 * * * * *", "*/3 * * * * *", "*/5 * * * * *", "* * * * *"])
def test_the_enumerator_counts_as_the_calculator(expression: str) -> None:
    """Two ways to the same ticks that share nothing."""
    for zone in ("UTC", "Asia/Kolkata"):
        computed = Cron(expression, zone).between(from_ms(BEGIN_MS), from_ms(END_MS))
        assert counted(cron_entry(expression, zone)) == [to_ms(tick) for tick in computed]


@pytest.mark.parametrize("seconds", [1, 2, 3, 5, 60])
def test_the_enumerator_counts_intervals(seconds: int) -> None:
    anchor_ms = 1_767_225_600_000
    computed = Every(seconds, from_ms(anchor_ms)).between(from_ms(BEGIN_MS), from_ms(END_MS))
    assert counted(EveryEntry(seconds * 1000, anchor_ms)) == [to_ms(tick) for tick in computed]


@pytest.mark.parametrize("at_ms", [BEGIN_MS + 1, 1_800_000_100_000, END_MS])
def test_the_enumerator_knows_single_instants(at_ms: int) -> None:
    assert counted(once_entry(from_ms(at_ms))) == [at_ms]
    assert ticks({"schedule": [entry_document(once_entry(from_ms(at_ms)))]}, at_ms, at_ms + 5000) == []


def test_the_enumerator_does_not_guess() -> None:
    for entry in (cron_entry("1 2 * * *"), EveryEntry(1500, BEGIN_MS)):
        with pytest.raises(ValueError, match="does not understand"):
            counted(entry)


def test_names() -> None:
    assert NAME.fullmatch(new_name(os.urandom(6)))
    assert not NAME.fullmatch("fleetcron_torture_mine")


def test_an_owner_runs_until_its_process_is_gone() -> None:
    me = Owner.me(until_ms=1000)
    assert Owner.read(me.text()) == me
    assert me.is_running(999)
    assert not me.is_running(1000)  # whatever its machine says
    assert Owner.read("a comment of somebody") is None
    assert Owner.read(None) is None


def test_a_job_is_not_paused_so_that_it_takes_for_ever_to_catch_up() -> None:
    """Its runs come one after the other: what it does in a pause must be less than the pause."""
    for job in jobs(BEGIN_MS):
        per_minute = len(
            ticks({"schedule": [entry_document(entry) for entry in job.schedule]}, BEGIN_MS, BEGIN_MS + 60_000)
        )
        assert "all" not in resume_policies(job) or per_minute * job.payload["s"] < 20, job.name
    assert sum("all" in resume_policies(job) for job in jobs(BEGIN_MS)) > 5


def test_a_node_that_ended_by_itself_says_why(tmp_path: Path) -> None:
    log = tmp_path / "node-1.1.log"
    process = subprocess.Popen(["true"])
    process.wait()
    for text, why in (
        ("", "it has said nothing"),
        ("it plans runs\nKilled\n", "Killed"),
        ("it plans runs\nerror: no database\nhint: start it\n", "no database"),
    ):
        log.write_text(text, "utf-8")
        assert Member("node-1.1", process, log).farewell() == why


# -- the network


class Echo:
    """A server that answers every request with OK, and knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError), closing(writer):
            while data := await reader.read(1000):
                self.asked.append(data)
                writer.write(b"S" if data.endswith(b"\x04\xd2\x16\x2f") else b"OK")


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def ask(self, request: bytes) -> bytes:
        self.writer.write(request)
        return await self._reader.read(100)


class Network:
    """A proxy before an echo, and those who have connected."""

    def __init__(self, proxy: Proxy, echo: Echo) -> None:
        self.proxy = proxy
        self.echo = echo
        self.url = proxy.url("postgresql://ann:word@one:1,two:2/app?host=three&sslmode=require&schema=x")
        self.clients: list[Client] = []

    async def connect(self) -> Client:
        parts = urlsplit(self.url)
        self.clients.append(Client(*await asyncio.open_connection(parts.hostname, parts.port)))
        return self.clients[-1]


@asynccontextmanager
async def network() -> AsyncIterator[Network]:
    """Everybody has hung up when it is left."""
    echo = Echo()
    server = await asyncio.start_server(echo.accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    proxy = Proxy(lambda: asyncio.open_connection(host, port))
    await proxy.start()
    net = Network(proxy, echo)
    try:
        yield net
    finally:
        await proxy.stop()
        server.close()
        await asyncio.gather(*echo.serving)
        for client in net.clients:
            client.writer.close()
            with suppress(ConnectionResetError):
                await client.writer.wait_closed()


def test_a_url_leads_through_the_proxy() -> None:
    async def scenario() -> str:
        async with network() as net:
            return net.url

    url = asyncio.run(scenario())
    assert url.startswith("postgresql://ann:word@127.0.0.1:")
    assert url.endswith("/app?sslmode=require&schema=x")


@pytest.mark.parametrize("fault", ["reset", "cut", "hole"])
def test_connections_break_and_come_back(fault: str) -> None:
    async def scenario() -> None:
        async with network() as net:
            client = await net.connect()
            assert await client.ask(b"hello") == b"OK"
            getattr(net.proxy, fault)()
            if fault == "hole":
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.ask(b"swallowed"), 0.05)
                net.proxy.heal()
            with pytest.raises(ConnectionResetError):
                await client.ask(b"too late")
            assert net.echo.asked == [b"hello"]
            if fault == "cut":
                with pytest.raises(ConnectionResetError):
                    await (await net.connect()).ask(b"refused")
            net.proxy.heal()
            assert await (await net.connect()).ask(b"again") == b"OK"

    asyncio.run(scenario())


def test_what_is_slow_comes_through() -> None:
    async def scenario() -> float:
        async with network() as net:
            client = await net.connect()
            net.proxy.slow(0.05)
            began_ms = SystemClock().monotonic_ms()
            assert await client.ask(b"hello") == b"OK"
            return SystemClock().monotonic_ms() - began_ms

    assert asyncio.run(scenario()) >= 99  # both ways


def test_who_cannot_be_reached_is_a_reset() -> None:
    """The database is away: the proxy does not keep its clients waiting."""

    async def scenario() -> None:
        async with network() as net:
            net.proxy.target = lambda: asyncio.open_connection("127.0.0.1", free_port())
            with pytest.raises(ConnectionResetError):
                await (await net.connect()).ask(b"hello")

    asyncio.run(scenario())


def test_the_answer_to_a_commit_is_lost_and_it_was_done() -> None:
    async def scenario() -> None:
        async with network() as net:
            client = await net.connect()
            net.proxy.lose_reply()
            assert await client.ask(b"SELECT") == b"OK"
            with pytest.raises(ConnectionResetError):
                await client.ask(b"COMMIT")
            assert net.echo.asked == [b"SELECT", b"COMMIT"]
            assert await (await net.connect()).ask(b"COMMIT") == b"OK"  # once

    asyncio.run(scenario())


def test_what_is_encrypted_loses_any_answer() -> None:
    async def scenario() -> None:
        async with network() as net:
            client = await net.connect()
            assert await client.ask(b"\x00\x00\x00\x08\x04\xd2\x16\x2f") == b"S"
            net.proxy.lose_reply()
            with pytest.raises(ConnectionResetError):
                await client.ask(b"nobody can read this")
            assert net.echo.asked[-1] == b"nobody can read this"

    asyncio.run(scenario())


# -- what is missing


class Answering:
    """A ground, its members and their acts, of which `found` is all that anybody asks."""

    def __init__(self, found: int) -> None:
        self._found = found

    async def ask(self, statement: str) -> list[dict[str, Any]]:
        if "workers" in statement:
            return []
        return [{"found": None if "cursors" in statement else self._found}]

    def living(self) -> list[Any]:
        return []


def test_one_is_not_many() -> None:
    def missing(found: int) -> list[str]:
        it: Any = Answering(found)
        healing = Healing(it, it, it, SystemClock(), patience_s=1)
        return [*asyncio.run(healing._not_caught_up()), *asyncio.run(healing._not_final())]

    assert missing(0) == []
    assert missing(1) == ["1 stretch of missed ticks is not decided", "1 run has not ended"]
    assert missing(1200) == ["1,200 stretches of missed ticks are not decided", "1,200 runs have not ended"]


# -- what is shown


def plan(**wish: Any) -> Plan:
    facts = Facts("PostgreSQL 18.0 at url", ["round trip 0.8 ms"], ["look out"], 2.0)
    return Plan(Wish(seed=7, **wish), facts, ("kill", "edit"), 19, "the schema x", "nobody gets through")


def test_the_plan_says_everything_beforehand(capsys: pytest.CaptureFixture[str]) -> None:
    Spoken().hears(plan())
    said = capsys.readouterr().out
    assert "Makes the schema x, starts 3 nodes with 19 jobs, hurts them for 60 s" in said
    assert "(kill, edit; about 30 faults, seed 7)" in said
    assert "removes what it has made" in said
    assert "note: look out" in said
    assert "note: without faults of the network: nobody gets through" in said


def progress(phase: str, passed_s: float, missing: str | None = None) -> Progress:
    return Progress(phase, passed_s, 60, Counter[FaultKind]({"kill": 2, "stop": 1}), 214, missing)


def test_without_a_terminal_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    spoken = Spoken()
    for passed_s in (0, 1, 10, 11, 19, 20):
        spoken.sees(progress("hurting", passed_s))
    spoken.sees(progress("healing", 1))
    spoken.sees(progress("healing", 12, "7 runs have not ended"))
    assert capsys.readouterr().err.splitlines() == [
        "the nodes are hurt",
        "10 s of 60 s: 3 faults (2 kills, 1 freeze); 214 attempts",
        "20 s of 60 s: 3 faults (2 kills, 1 freeze); 214 attempts",
        "the faults are over: everything that is due gets its answer",
        "12 s of 60 s at most: 7 runs have not ended",
    ]


def test_a_terminal_has_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    terminal.sees(progress("starting", 3))
    assert capsys.readouterr().err.strip() == "starting 3s"
    terminal.sees(progress("hurting", 30))
    assert "hurting [###############---------------] 30s  3 faults" in capsys.readouterr().err
    terminal.ends()
    assert capsys.readouterr().err.strip() == ""


def test_a_torture_without_a_fault_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def said(faults: dict[FaultKind, int]) -> str:
        for as_json in (False, True):
            result = Result(plan(), Verdict({}, []), Evidence({}, END_MS, []), faults, [], 4.2)
            print_result(result, None, as_json=as_json)
        return capsys.readouterr().out

    assert said({}).count("nobody was hurt in so short a time") == 2
    assert "nobody was hurt" not in said({"edit": 1})


def test_a_broken_promise_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    violations = [
        Violation("punctual", "attempt 1 began 12.0 ms early", "second", 4),
        *(Violation("answered", f"the tick {number} has no answer", "every-2s") for number in range(12)),
        Violation("settled", "after 90 s 3 runs have not ended"),
    ]
    line = {"say": "start", "run": 4, "attempt": 1, "job": "second", "node": "node-1.1", "at_us": BEGIN_MS * 1000}
    tables: dict[str, list[Any]] = {"runs": [], "attempts": []}
    result = Result(
        plan(),
        Verdict({"punctual": 1204}, violations, Counter(succeeded=3), Counter(succeeded=3, lost=1), 2),
        Evidence(tables, END_MS, [line]),
        {"kill": 1},
        ["node-2.1 (exit code 3): out of \x1b[2J memory"],
        4.2,
    )
    print_result(result, tmp_path, as_json=False)
    said = capsys.readouterr().out
    assert re.search(r"^nothing starts before its time +1,204 starts +1$", said, re.MULTILINE)
    assert re.search(r"^every tick has an answer +0 ticks +12$", said, re.MULTILINE)
    assert "Broken: 14 violations.\n  settled: after 90 s 3 runs have not ended\n" in said  # what says most comes first
    assert "  punctual: second run 4: attempt 1 began 12.0 ms early\n" in said
    assert "  answered: every-2s: the tick 7 has no answer\n" in said
    assert "… and 4 more" in said
    assert "What happened to run 4:\n  2027-01-15T08:00:00.123Z  node-1.1: its handler begins\n" in said
    assert (
        "1 fault (1 kill). 3 runs, 4 attempts: 1 lost or stopped with their workers,"
        " and 2 writes of stale owners refused" in said
    )
    assert f"The evidence is in {tmp_path}" in said
    assert "\x1b" not in said
    print_result(result, tmp_path, as_json=True)
    assert '"holds": false' in capsys.readouterr().out
    assert all(words in said for words, _ in PROMISES.values())
