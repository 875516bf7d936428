"""Checks of the conformance suite about what people read of a run: state, attempts, log, and why it waits."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.control import Wish
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Fault, Lost
from fleetcron.model.rules import OverlapRule, RetryRule
from fleetcron.model.standing import Position
from fleetcron.model.states import RunState
from fleetcron.model.target import PythonTarget
from fleetcron.policy.why import why
from fleetcron.store.attempts import LogPage, LogPiece
from fleetcron.store.cursors import Move
from fleetcron.store.history import Span
from fleetcron.store.output import KEPT_BYTES, Appended, AttemptOutput
from tests.store.floor import MINUTE, Floor, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC
DUE = "2027-01-15T08:01:00Z"
Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


class Chunk(NamedTuple):
    run_id: int
    attempt: int
    seq: int
    text: str
    truncated: bool = False


class Progress(NamedTuple):
    run_id: int
    attempt: int
    share: float
    note: str = ""


def floor(w: "World") -> Floor:
    return Floor(w.store, w.clock, w.desk, w.held)


async def states(w: "World", **span: str) -> dict[str, RunState]:
    """By job. Every filter finds exactly the runs that are shown in its state."""
    lines = await w.store.history.runs(Span(**span))  # type: ignore[arg-type]
    for state in RunState:
        found = await w.store.history.runs(Span(**span), state=state)  # type: ignore[arg-type]
        assert found == [line for line in lines if line.run.state is state], state
    return {line.name: line.run.state for line in lines}


async def said(w: "World", run_id: int) -> str:
    situation = await w.store.situations.of_run(run_id)
    assert situation is not None
    return why(situation)


async def run_of(w: "World", name: str) -> int:
    """The newest run of a job."""
    [line] = await w.store.history.runs(Span(name=name), limit=1)
    return line.run.run_id


@check
async def a_run_of_a_job_that_is_over_is_promised_no_next_try(w: "World") -> None:
    f = floor(w)
    for name in ("a", "b"):
        await f.define(name)
    await f.plan()
    await w.clock.set(NOW + MINUTE)
    await f.queue()
    await f.join("n1")
    for run in await f.claim("n1"):
        await f.fail("n1", run)
    first, second = [await run_of(w, name) for name in ("a", "b")]
    await w.desk.cancel("default", "a")
    await w.desk.delete("default", "b")
    assert "; its job was cancelled, so it is closed as cancelled at 2027-" in await said(w, first)
    assert "; its job was deleted, so it is closed as cancelled at 2027-" in await said(w, second)


@check
async def the_state_of_a_run_is_what_leases_and_the_queue_say(w: "World") -> None:
    """S1-14, S3-7: its row says planned until its end."""
    f = floor(w)
    await f.define("a", overlap=OverlapRule("queue"))
    await f.define("b")
    await f.plan()
    assert await states(w) == {"a": "planned", "b": "planned"}
    await w.clock.set(NOW + MINUTE - 500)
    await f.queue()
    await f.join("n1")
    a, b = sorted(await f.claim("n1"), key=lambda run: run.name)
    assert await states(w) == {"a": "planned", "b": "planned"}  # held, but nothing starts early
    assert await said(w, a.run_id) == f"n1 has it, and starts it at {DUE}"
    await w.clock.set(NOW + MINUTE + 2000)
    assert await states(w) == {"a": "running", "b": "running"}
    ok(await w.store.output.append("n1", [], [Progress(a.run_id, 1, 0.4, "page 2")]))
    [line] = await w.store.history.runs(Span(name="a"))
    assert (line.node_id, line.begun_ms, line.progress, line.note) == ("n1", NOW + MINUTE, 0.4, "page 2")
    assert (line.run.started_ms, line.delay_ms, line.lasted_ms(w.clock.now_ms())) == (NOW + MINUTE, 0, 2000)
    assert await said(w, a.run_id) == f"attempt 1 runs on n1 since {DUE}, 40% done: page 2"

    await f.fail("n1", b)
    assert await states(w) == {"a": "running", "b": "retrying"}
    [line] = await w.store.history.runs(Span(name="b"))
    assert (line.run.attempt, line.run.failures, line.node_id, line.progress) == (1, 1, None, None)
    assert line.next_ms == NOW + MINUTE + 32_000
    tried = "1 failed attempt so far: ValueError: no such shop"
    assert await said(w, b.run_id) == f"{tried}; the next try is at 2027-01-15T08:01:32Z"
    await w.clock.set(NOW + MINUTE + 31_500)
    await f.queue()
    [again] = await f.claim("n1")
    assert await states(w) == {"a": "running", "b": "retrying"}
    await w.clock.set(NOW + MINUTE + 32_000)
    assert await states(w) == {"a": "running", "b": "running"}
    await f.fail("n1", again)
    assert await states(w) == {"a": "running", "b": "dead"}
    assert await said(w, b.run_id) == "dead after 2 failed attempts: ValueError: no such shop"

    await f.next_minute()
    assert [run.name for run in await f.claim("n1")] == ["b"]
    first, second = [line.run for line in (await w.store.history.runs(Span(name="a")))[::-1]]
    assert (first.state, second.state) == ("running", "waiting")
    assert await said(w, second.run_id) == f"waits for its own job: run {first.run_id} runs since {DUE}"
    await f.succeed("n1", a)
    assert (await w.store.history.runs(Span(name="a"), state="succeeded"))[0].run.run_id == first.run_id
    assert (await said(w, first.run_id)).startswith("succeeded at 2027-01-15T08:02:00Z: it took 1.5s")
    await states(w)
    await states(w, tenant="default", name="b")
    await states(w, tenant="default")
    assert await states(w, tenant="acme") == {}


@check
async def pages_of_every_state_go_on_where_the_last_one_ended(w: "World") -> None:
    """S0-28, S0-62: by number and by time range, in each state."""
    f = floor(w)
    for name in "abcdef":
        await f.define(name, overlap=OverlapRule("allow", concurrency_key="k"))
    await f.next_minute()
    await f.join("n1")
    [running] = await f.claim("n1")
    await f.plan()

    async def ids(state: str, **span: int) -> list[int]:
        lines = await w.store.history.runs(Span(**span), state=state, limit=3)  # type: ignore[arg-type]
        return [line.run.run_id for line in lines]

    for state, number in (("running", 1), ("waiting", 5), ("planned", 6)):
        page = await ids(state)
        assert len(page) == min(3, number)
        rest = await ids(state, before_id=page[-1])
        assert len(page + rest) == number
        assert page + rest == sorted({*page, *rest}, reverse=True)
    assert await ids("running") == [running.run_id]
    assert await ids("planned", to_ms=NOW + 2 * MINUTE) == await ids("waiting", from_ms=NOW + MINUTE + 1) == []


@check
async def attempts_are_told_with_the_one_that_runs(w: "World") -> None:
    """S0-27, S1-13, S3-20, S3-21, S3-30: what each attempt was, on which worker, how long, and why it failed."""
    f = floor(w)
    await f.define("a")
    await f.next_minute()
    await f.join("n1")
    await f.join("n2")
    [run] = await f.claim("n1")
    assert await w.store.past_attempts.last_error(run.run_id) is None
    await w.clock.advance(2000)
    await f.fail("n1", run)
    await w.clock.advance(30_000)
    await f.queue()
    [run] = await f.claim("n2")
    ok(await w.store.output.append("n2", [], [Progress(run.run_id, 2, 9.0, "x\0"), Progress(run.run_id, 1, 0.1)]))
    failed, running = await w.store.past_attempts.of_run(run.run_id)
    assert (failed.attempt, failed.node_id, failed.outcome, failed.log_bytes) == (1, "n1", "failed", 12)
    assert failed.error == Fault("ValueError", "no such shop", "line 1\nline 2")
    assert (failed.finished_ms, failed.lasted_ms) == (NOW + MINUTE + 2000, 1500)
    assert (running.attempt, running.node_id, running.outcome, running.lasted_ms) == (2, "n2", None, None)
    assert (running.started_ms, running.progress, running.note) == (NOW + MINUTE + 32_000, 1.0, "x\ufffd")
    await f.succeed("n2", run)
    done = (await w.store.past_attempts.of_run(run.run_id))[1]
    assert (done.outcome, done.result, done.error) == ("succeeded", '{"rows": 3}', None)
    assert await w.store.past_attempts.last_error(run.run_id) == failed
    assert "succeeded at 2027-01-15T08:01:32Z, after 1 failed attempt: it took" in await said(w, run.run_id)
    assert await w.store.past_attempts.of_run(0) == []


@check
async def output_is_kept_once_and_only_from_who_has_the_attempt(w: "World") -> None:
    """Numbered pieces, by attempt; what a zombie still prints stays in its own attempt."""
    f = floor(w)
    await f.define("a")
    await f.next_minute()
    await f.join("n1")
    [run] = await f.claim("n1")
    past, output = w.store.past_attempts, w.store.output
    assert await past.log(0) is None
    assert await past.log(run.run_id) == LogPage(1, 1, [], ended=False, is_final=False)
    pieces = [Chunk(run.run_id, 1, n, f"line {n}\n") for n in range(3)]
    assert ok(await output.append("n1", pieces[:2])) == Appended(2)
    assert ok(await AttemptOutput(w.store.engine).append("n1", pieces)) == Appended(1)  # two of them are there
    assert ok(await output.append("n2", [Chunk(run.run_id, 1, 9, "not mine")])) == Appended(0, 1)
    assert ok(await output.append("n1", [Chunk(run.run_id, 2, 0, "not yet")])) == Appended(0, 1)
    page = await past.log(run.run_id, limit=2)
    assert page is not None
    assert page.pieces == [LogPiece(n, NOW + MINUTE, f"line {n}\n", truncated=False) for n in range(2)]
    page = await past.log(run.run_id, 1, after_seq=1)
    assert page is not None
    assert [piece.text for piece in page.pieces] == ["line 2\n"]

    await f.end("n1", run, Lost(Fault("lost", "the worker n1 vanished")))
    await f.queue()
    await f.join("n2")
    [again] = await f.claim("n2")
    assert ok(await output.append("n1", [Chunk(run.run_id, 1, 3, "late")])) == Appended(1)
    assert ok(await output.append("n1", [Chunk(run.run_id, 2, 0, "stale")])) == Appended(0, 1)
    assert ok(await output.append("n2", [Chunk(run.run_id, 2, 0, "fresh\0\ud800")])) == Appended(1)
    assert await past.log(run.run_id) == LogPage(
        2, 2, [LogPiece(0, NOW + MINUTE, "fresh\ufffd?", truncated=False)], ended=False, is_final=False
    )
    page = await past.log(run.run_id, 1, after_seq=2)
    assert page is not None
    assert (page.latest, page.ended, [piece.text for piece in page.pieces]) == (2, True, ["late"])
    await f.succeed("n2", again)
    page = await past.log(run.run_id)
    assert page is not None
    assert (page.attempt, page.ended, page.is_final) == (2, True, True)
    assert ok(await output.append("n2", [Chunk(run.run_id, 2, 1, "its last words")])) == Appended(1)


@check
async def output_ends_at_a_limit_and_says_so(w: "World") -> None:
    """Whatever a worker sends, an attempt keeps so much and a mark; the others are not touched by it."""
    f = floor(w)
    await f.define("a")
    await f.define("b")
    await f.next_minute()
    await f.join("n1")
    a, b = await f.claim("n1")
    size = KEPT_BYTES // 8

    async def kept(run_id: int) -> tuple[int, bool]:
        page = await w.store.past_attempts.log(run_id)
        assert page is not None
        assert all(not piece.truncated for piece in page.pieces[:-1])
        return sum(len(piece.text.encode()) for piece in page.pieces), page.pieces[-1].truncated

    output = w.store.output
    for n in range(7):
        assert ok(await output.append("n1", [Chunk(a.run_id, 1, n, "x" * size)])) == Appended(1)
    small = [Chunk(a.run_id, 1, 7, "y" * 99), Chunk(b.run_id, 1, 0, "b")]
    assert ok(await output.append("n1", small)) == Appended(2)
    assert ok(await output.append("n1", small)) == Appended(2)  # sent twice, kept once
    assert await kept(a.run_id) == (7 * size + 99, False)
    rest = [Chunk(a.run_id, 1, 8, "é" * (size // 2)), Chunk(a.run_id, 1, 9, "z"), Chunk(b.run_id, 1, 1, "b")]
    assert ok(await output.append("n1", rest)) == Appended(2)
    assert await kept(a.run_id) == (KEPT_BYTES - 1, True)  # not half a character
    more = [Chunk(a.run_id, 1, 10, "z"), Chunk(b.run_id, 1, 2, "b")]
    assert ok(await output.append("n1", [*rest, *more])) == Appended(2)  # both of b: nobody looked whether one is there
    assert await kept(a.run_id) == (KEPT_BYTES - 1, True)
    assert await kept(b.run_id) == (3, False)


@check
async def the_end_of_a_long_output_follows_a_mark(w: "World") -> None:
    """As an executor sends it: the first 8 MiB, a mark, the last 64 KiB. Nothing else fits then."""
    f = floor(w)
    await f.define("a")
    await f.next_minute()
    await f.join("n1")
    [a] = await f.claim("n1")
    half, tail = "x" * (4 * 1024 * 1024), "y" * (64 * 1024 - 3) + "END"
    pieces = [Chunk(a.run_id, 1, 0, half), Chunk(a.run_id, 1, 1, half, True), Chunk(a.run_id, 1, 2, tail)]
    for each in pieces:
        assert ok(await w.store.output.append("n1", [each])) == Appended(1)
    assert ok(await w.store.output.append("n1", pieces)) == Appended(0)  # again, as if the reply was lost
    assert ok(await w.store.output.append("n1", [Chunk(a.run_id, 1, 3, "z")])) == Appended(0)
    page = await w.store.past_attempts.log(a.run_id)
    assert page is not None
    assert [(piece.text == each.text, piece.truncated) for piece, each in zip(page.pieces, pieces, strict=True)] == [
        (True, False),
        (True, True),
        (True, False),
    ]


@check
async def every_reason_to_wait_is_named(w: "World") -> None:
    """S3-7, S3-21: key, caps, rate, hold, handler, slots, workers: what is missing, and who has it."""
    f = floor(w)
    key = OverlapRule("allow", concurrency_key="shop-db")
    await f.define("key-1", tenant="keys", overlap=key)
    await f.define("key-2", tenant="keys", overlap=key)
    for name in ("cap-1", "cap-2"):
        await f.define(name, tenant="capped")
    for name in ("fast-1", "fast-2"):
        await f.define(name, tenant="fast")
    for name in ("quota-1", "quota-2"):
        await f.define(name, tenant=name, type="export")
    for name in ("part-1", "part-2"):
        await f.define(name, tenant="part", pool="small")
    await f.define("held", tenant="acme")
    await f.define("python", run=PythonTarget("shop.jobs:report"))
    await f.define("alone", pool="reports")
    ok(await w.store.limits.put_tenant("capped", {"max_in_flight": 1}, actor="ann"))
    ok(await w.store.limits.put_tenant("fast", {"rate": "1/s"}, actor="ann"))
    ok(await w.store.limits.put_pool("default", {"per_type": {"export": 1}}, actor="ann"))
    ok(await w.store.limits.put_pool("small", {"per_tenant": 1}, actor="ann"))
    pause = Wish("tenant", "acme", percent=0, for_ms=3_600_000, reason="their database is down")
    ok(await w.store.controls.switch(pause, actor="ann"))
    await f.next_minute()
    await f.join("n1", slots=20)
    await f.join("s1", "small", 5)
    why_not = "shop.jobs cannot be imported:\n  ImportError: " + "far too long " * 20
    ok(await w.store.workers.lack("n1", {"python:shop.jobs:report": why_not}))
    started = {run.name: run.run_id for run in await f.claim("n1", room=20, lacks=["python:shop.jobs:report"])}
    started |= {run.name: run.run_id for run in await f.claim("s1", "small")}
    assert {name.partition("-")[0] for name in started} == {"key", "cap", "fast", "quota", "part"}
    assert len(started) == 5  # the first one of each pair, whichever that is
    [holder] = [name for name in started if name.startswith("key-")]

    left = {name: await said(w, await run_of(w, name)) for name in await states(w) if name not in started}
    assert {name.partition("-")[0]: text for name, text in left.items()} == {
        "key": f"waits for the key shop-db: run {started[holder]} of job keys/{holder} holds it since {DUE}",
        "cap": "waits for tenant capped: 1 of 1 in flight",
        "fast": "waits for the rate of tenant fast: the next start is at 2027-01-15T08:01:01Z",
        "quota": "waits for type export in the pool default: 1 of 1 in flight there",
        "part": "waits for tenant part in the pool small: 1 of 1 in flight there",
        "held": "held back: tenant acme is paused until 2027-01-15T09:00:00Z by ann: their database is down",
        "python": f"no worker of the pool default has python:shop.jobs:report; n1: {' '.join(why_not.split())[:199]}…",
        "alone": f"no worker serves the pool reports: it is due since {DUE}",
    }


@check
async def a_free_slot_an_earlier_run_and_an_upstream_are_waited_for(w: "World") -> None:
    f = floor(w)
    await f.define("a", overlap=OverlapRule("queue"))
    await f.define("b", depends_on=("a",))
    await f.next_minute()
    await f.join("n1", slots=1)
    a, b = await run_of(w, "a"), await run_of(w, "b")
    slot = f"waits for a free slot of the pool default (0 of 1 in use, 1 other run waits): it is due since {DUE}"
    assert await said(w, a) == slot
    [run] = await f.claim("n1", room=1)
    assert run.run_id == a
    await f.claim("n1", room=1)
    upstream = f"waits for its upstream jobs: upstream a is running (run {a} of {DUE})"
    assert await said(w, b) == upstream
    await f.next_minute()
    await f.next_minute()
    await f.claim("n1", room=1)
    third, second, _ = await w.store.history.runs(Span(name="a"))
    assert await said(w, second.run.run_id) == f"waits for its own job: run {a} runs since {DUE}"
    await f.fail("n1", run)
    tried = "is tried again at 2027-01-15T08:03:30Z"
    assert await said(w, third.run.run_id) == f"waits for its own job: run {a} {tried}"
    assert await said(w, b) == upstream.replace("running", "retrying")
    await w.clock.advance(30_000)
    await f.queue()
    [run] = [each for each in await f.claim("n1") if each.run_id == a]
    await f.succeed("n1", run)
    first = f"run {second.run.run_id} of 2027-01-15T08:02:00Z comes first"
    await f.claim("n1", room=0)
    assert await said(w, third.run.run_id) == f"waits for its turn: {first}"


@check
async def a_tick_has_a_run_a_line_in_the_ledger_or_a_gap(w: "World") -> None:
    """S3-7, S4-26: what became of a tick, whichever way."""
    await w.define()
    runs = [Forecast(NOW + MINUTE, NOW + MINUTE)]
    answers = [Answer(NOW - 8 * MINUTE, NOW - 6 * MINUTE, 3, "missed", "too_old")]
    gap = Gap(NOW - 4 * MINUTE, NOW - 2 * MINUTE, "outage")
    await w.advance(Move(await w.group(), Position(NOW + MINUTE), NOW + 2 * MINUTE, runs, answers, gap))

    async def kinds(minutes: int, name: str = "a") -> tuple[bool, bool, bool]:
        found = await w.store.situations.of_tick("default", name, NOW + minutes * MINUTE)
        return found.situation is not None, found.ledger is not None, found.gap is not None

    assert await kinds(1) == (True, False, False)
    assert await kinds(-7) == await kinds(-8) == await kinds(-6) == (False, True, False)
    assert await kinds(-3) == await kinds(-2) == (False, False, True)
    assert await kinds(-4) == await kinds(-9) == await kinds(2) == await kinds(1, "b") == (False, False, False)
    assert await w.store.situations.of_run(0) is None


@check
async def a_run_is_shown_with_its_payload_and_the_tick_after_it(w: "World") -> None:
    """S3-21: did the next one still happen?"""
    f = floor(w)
    await f.define("a", payload={"kind": "full"})
    await f.plan()
    run_id = await run_of(w, "a")
    shown = await w.store.history.run(run_id)
    assert shown is not None
    assert (shown.line.run.run_id, shown.payload, shown.next) == (run_id, {"kind": "full"}, None)
    await f.next_minute()
    await f.plan()
    shown = await w.store.history.run(run_id)
    assert shown is not None
    assert shown.next is not None
    assert shown.next.run.scheduled_for_ms == NOW + 2 * MINUTE
    assert await w.store.history.run(0) is None


@check
async def a_worker_reads_what_it_needs_of_the_definitions(w: "World") -> None:
    """By revision, or of everything that a node holds: the same as the whole definition says."""
    f = floor(w)
    await f.define("a")
    fields = {"payload": {"kind": "full", "n": [1, "ä"]}, "timeout_ms": 90_000, "retry": RetryRule(max_attempts=2)}
    await f.define("b", run=PythonTarget("shop.jobs:report"), **fields)
    await f.plan()
    await w.clock.set(NOW + MINUTE)
    await f.queue()
    await f.join("n1")
    runs = await f.claim("n1")
    standings = (await w.store.jobs.find([("default", "a"), ("default", "b")])).standings
    known = {standing.job.job_id: standing.job.definition for standing in standings.values()}
    expected = {job_id: Errand(d.run, d.payload, d.timeout_ms, d.retry) for job_id, d in known.items()}
    found = await w.store.definitions.read([(run.job_id, run.revision) for run in runs])
    assert found == {(job_id, 1): errand for job_id, errand in expected.items()}
    assert await w.store.definitions.read([(runs[0].job_id, 7)]) == {}
    held = await w.store.definitions.held_by("n1")
    assert held == {run.run_id: expected[run.job_id] for run in runs}
    assert await w.store.definitions.held_by("n2") == {}
