"""Python functions in processes of their own: what they get, what they say, and how they end."""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fleetcron.config import ExecutorConfig
from fleetcron.executors.reports import Done
from fleetcron.model.outcome import Cancelled, Failed, Lost, Snoozed, Succeeded
from fleetcron.model.target import CommandTarget, PythonTarget
from tests.executors.processes import still_alive, zombies
from tests.executors.stage import (
    SUBJECTS,
    Heard,
    all_at_once,
    assignment,
    handler_hosts,
    pid_of,
    python,
)


def run(name: str, *, timeout_s: float = 3600, **payload: Any) -> Done:
    async def scenario() -> Done:
        async with handler_hosts(name) as (hosts, heard):
            hosts.start([assignment(python(name), payload=payload, timeout_s=timeout_s)])
            return await heard.end_of(1)

    return asyncio.run(scenario())


def test_a_handler_knows_for_what_it_is_called() -> None:
    """S3-42: idempotency key, tenant and scheduled time. The settings of the node are not for handlers."""

    async def scenario() -> dict[str, Any]:
        async with handler_hosts("who", store_url="sqlite:///shop.db") as (hosts, heard):
            given = assignment(python("who"), 42, attempt=3)
            given = given._replace(window_ms=(0, 86_400_000), covers=24, deadline_ms=1_790_003_600_000)
            hosts.start([given])
            return dict(json.loads((await heard.end_of(42, 3)).result_json or ""))

    said = asyncio.run(scenario())
    assert said.pop("pid") > 0
    assert said == {
        "tenant": "acme",
        "job": "nightly-report",
        "job_id": "018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071",
        "run_id": 42,
        "scheduled_for": "2026-09-21T14:13:20+00:00",
        "window": ["1970-01-01T00:00:00+00:00", "1970-01-02T00:00:00+00:00"],
        "covers": 24,
        "attempt": 3,
        "fence": 3,
        "key": "job:018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071:scheduled_for:2026-09-21T14:13:20Z",
        "deadline": "2026-09-21T15:13:20+00:00",
        "cancelled": False,
        "store": "sqlite:///shop.db",
        "settings": [],
    }


def test_all_shapes_of_functions_and_what_they_return() -> None:
    """S1-27: the result is kept as JSON. And what is wrong with a result is said, not cut."""
    cases: dict[str, tuple[str, Any]] = {
        "nothing": ("nothing", None),
        "both": ("both", None),
        "an_object": ("an_object", None),
        "with_default": ("with_default", None),
        "plain_noop": ("plain_noop", None),
        **{what: ("returns", what) for what in ("large", "fits", "set", "nan", "nul", "deep", "coroutine", "é")},
    }

    async def scenario() -> dict[str, Done]:
        async with handler_hosts(*{name for name, _ in cases.values()}) as (hosts, heard):
            hosts.start(
                [assignment(python(name), at, payload={"what": what}) for at, (name, what) in enumerate(cases.values())]
            )
            ends = await heard.ends(len(cases))
            return {case: ends[at, 1] for at, case in enumerate(cases)}

    ends = asyncio.run(scenario())
    results = {case: end.result_json for case, end in ends.items() if end.outcome == Succeeded()}
    assert len(results.pop("fits") or "") == 64 * 1024
    assert results == {
        "nothing": '"nothing asked"',
        "both": '[true,{"what":null}]',
        "an_object": '"called"',
        "with_default": "3",
        "plain_noop": None,
        "nul": '{"a�b":"�","half":"?"}',
        "é": '"é"',
    }
    faults = {case: end.outcome.error for case, end in ends.items() if isinstance(end.outcome, Failed)}
    assert {case: fault.code for case, fault in faults.items()} == {
        "large": "result_too_large",
        "set": "result_not_json",
        "nan": "result_not_json",
        "deep": "result_not_json",
        "coroutine": "result_not_json",
    }
    assert "more than 64 KiB of JSON; store it elsewhere" in faults["large"].text
    assert "write async def" in faults["coroutine"].text


def test_exceptions_are_faults_with_the_name_that_retry_on_uses() -> None:
    """S3-104: error code and message make "the job failed" something to act on."""
    names = ["breaks", "breaks_in_a_thread", "gives_up", "retries", "snoozes", "leaves", "cancels_itself"]

    async def scenario() -> dict[str, Done]:
        async with handler_hosts(*names) as (hosts, heard):
            hosts.start([assignment(python(name), at) for at, name in enumerate(names)])
            ends = await heard.ends(len(names))
            return {name: ends[at, 1] for at, name in enumerate(names)}

    ends = asyncio.run(scenario())
    failed = {name: end.outcome for name, end in ends.items() if isinstance(end.outcome, Failed)}
    assert {name: (one.error.code, one.error.text, one.retry_after_ms) for name, one in failed.items()} == {
        "breaks": (f"{SUBJECTS}.Broken", "it is broken", None),
        "breaks_in_a_thread": ("ZeroDivisionError", "nothing to divide by", None),
        "gives_up": ("give_up", "no such customer", None),
        "retries": ("retry", "not yet", 7500),
        "leaves": ("SystemExit", "3", None),
        "cancels_itself": ("asyncio.exceptions.CancelledError", "", None),
    }
    assert "raise Broken" in (failed["breaks"].error.trace or "")
    assert ends["snoozes"].outcome == Snoozed(90)
    assert ends["breaks_in_a_thread"].log_tail == "before\n"


def test_an_unknown_handler_is_no_failure_and_its_reason_is_said() -> None:
    """S1-24: unknown handler, clear error. It is declined, not failed."""
    reasons = {
        f"{SUBJECTS}:gone": "has no function gone",
        f"{SUBJECTS}:not_a_function": "has no function not_a_function",
        f"{SUBJECTS}:generator": "is a generator; write def f(ctx)",
        f"{SUBJECTS}:three": "takes 3 arguments; write def f(ctx)",
        f"{SUBJECTS}:keyword_only": "takes 2 arguments; write def f(ctx)",
        f"{SUBJECTS}:os.getpid": "is not written in",
        "os:getpid": "is not among the handlers of this worker; add it to executor.handlers",
        "tests.executors.subjects_that_fail:f": "cannot be imported: RuntimeError: the database is away",
        "tests.executors.no_such_module:f": "cannot be imported: ModuleNotFoundError",
    }
    allowed = (SUBJECTS, "tests.executors.subjects_that_fail", "tests.executors.no_such_module")

    async def scenario() -> None:
        async with handler_hosts("noop", config=ExecutorConfig(handlers=allowed)) as (hosts, heard):
            targets = [PythonTarget(name) for name in reasons]
            assert "was not looked for yet" in (hosts.why_not(targets[0]) or "")
            await hosts.learn(targets)
            for target in targets:
                assert not hosts.knows(target)
                assert reasons[target.function] in (hosts.why_not(target) or ""), target
            assert not hosts.knows(CommandTarget(("true",)))
            hosts.start([assignment(targets[0], 5), assignment(python("noop"), 6)])
            assert "is not loaded here" in await heard.declined(5)
            assert (await heard.end_of(6)).outcome == Succeeded()
            assert list(heard.done) == [(6, 1)]
            assert hosts.running() == set()

    asyncio.run(scenario())


def test_the_worker_never_imports_a_handler() -> None:
    assert run("noop").outcome == Succeeded()
    assert SUBJECTS not in sys.modules


def test_what_handlers_print_goes_to_their_own_logs() -> None:
    """Many at once, coroutines and threads: each line in the log of its attempt."""

    async def scenario() -> Heard:
        async with handler_hosts("prints", "prints_in_a_thread") as (hosts, heard):
            hosts.start(
                [
                    assignment(python("prints" if at % 2 else "prints_in_a_thread"), at, payload={"mark": f"<{at}>"})
                    for at in range(16)
                ]
            )
            await heard.ends(16)
            return heard

    heard = asyncio.run(scenario())
    for at in range(16):
        mark = f"<{at}>"
        if at % 2:
            printed = [f"{mark} {stream} {number}\n" for number in range(5) for stream in ("out", "err")]
            expected = "".join(printed) + f"INFO shop: {mark} logged\n{mark} bytes\n{mark} said 1\n"
        else:
            expected = "".join(f"{mark} out {number}\n" for number in range(5)) + "half a pair ?, a NUL �\n"
        assert heard.log(at) == expected
        assert heard.done[at, 1].log_tail == expected


def test_output_has_limits_and_says_so() -> None:
    async def scenario() -> tuple[Done, Heard]:
        async with handler_hosts("prints_a_lot") as (hosts, heard):
            hosts.start([assignment(python("prints_a_lot"), payload={"kilobytes": 20_000})])
            return await heard.end_of(1), heard

    end, heard = asyncio.run(scenario())
    *chunks, last = heard.chunks(1)
    assert end.outcome == Succeeded()
    assert end.log_bytes == 20_000 * 1000 + 8
    assert len(end.log_tail) == 64 * 1024
    assert end.log_tail.endswith("yyy\nthe end\n")
    assert sum(len(chunk.text) for chunk in chunks) == 8 * 1024 * 1024
    assert [chunk.truncated for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert (last.text, last.truncated) == (end.log_tail, False)
    assert max(len(chunk.text) for chunk in chunks) <= 64 * 1024


def test_progress_is_told_and_what_comes_too_fast_is_left_out() -> None:
    async def scenario() -> Heard:
        async with handler_hosts("progresses") as (hosts, heard):
            hosts.start([assignment(python("progresses"))])
            await heard.until(lambda: bool(heard.progress(1)))
            hosts.cancel(1, 1, "enough")
            await heard.end_of(1)
            return heard

    told = asyncio.run(scenario()).progress(1)
    assert told[-1] == (1, 1, 0.99, "step 99")
    assert len(told) < 10


def test_cancel_asks_and_then_stops() -> None:
    """S0-56, S3-4: what runs and what still waits."""

    async def scenario() -> None:
        async with handler_hosts("cleans_up", "waits_in_c", slots=2, grace_s=600) as (hosts, heard):
            hosts.start([assignment(python("cleans_up"), 1), assignment(python("waits_in_c"), 2)])
            hosts.start([assignment(python("waits_in_c"), 3)])
            assert hosts.running() == {(1, 1), (2, 1), (3, 1)}
            hosts.cancel(3, 1, "not wanted")
            assert (await heard.end_of(3)).outcome == Cancelled("not wanted")
            hosts.cancel(1, 1, "a newer run is there")
            end = await heard.end_of(1)
            assert (end.outcome, end.log_tail) in [
                (Cancelled("a newer run is there"), "cleaned\n"),
                (Cancelled("a newer run is there"), ""),  # before it had begun
            ]
            hosts.cancel(2, 1, "please")
            hosts.cancel(2, 1, "now", grace_s=0)
            assert (await heard.end_of(2)).outcome == Cancelled("please")
            hosts.cancel(77, 1, "never heard of it")
            assert hosts.running() == set()

    asyncio.run(scenario())


def test_closing_loses_what_does_not_end_in_time_and_leaves_no_process() -> None:
    """S3-18: predictable behaviour during deploys."""

    async def scenario() -> tuple[Heard, list[int]]:
        async with handler_hosts("sleeps", "waits_in_c", "pid_of", "leaves_a_daemon", slots=4) as (hosts, heard):
            pid = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python("leaves_a_daemon"), 11)])
            daemon = int((await heard.end_of(11)).result_json or 0)
            hosts.start([assignment(python("waits_in_c" if at % 2 else "sleeps"), at) for at in range(6)])
            await hosts.close(0.1)
            assert hosts.running() == set()
            return heard, [pid, daemon]

    heard, pids = asyncio.run(scenario())
    for at in range(6):
        outcome = heard.done[at, 1].outcome
        assert isinstance(outcome, Lost)
        assert (outcome.error.code, outcome.error.text) == ("worker_stopped", "the worker was stopped")
    assert still_alive(pids, 0) == []
    assert zombies() == []


def test_plain_functions_really_run_at_the_same_time() -> None:
    """Thirty that wait for each other: fewer threads would never end."""

    async def scenario() -> None:
        async with handler_hosts("meets", slots=30) as (hosts, heard):
            hosts.start([assignment(python("meets"), at, payload={"parties": 30}) for at in range(30)])
            assert {end.outcome for end in (await heard.ends(30)).values()} == {Succeeded()}

    asyncio.run(scenario())


def test_several_hosts_share_the_slots(tmp_path: Path) -> None:
    """S3-14: `executor.hosts` processes work, and none of them takes everything."""

    async def scenario() -> list[str | None]:
        async with handler_hosts("meets_all", slots=7, hosts=3) as (hosts, heard):
            hosts.start(all_at_once(7, tmp_path))
            return [end.result_json for end in (await heard.ends(7)).values()]

    shares = Counter(asyncio.run(scenario()))
    assert sorted(shares.values()) == [1, 3, 3]


def test_another_host_is_started_when_all_have_something_to_do_and_gets_the_next() -> None:
    async def scenario() -> None:
        async with handler_hosts("sleeps", "pid_of", slots=20, hosts=2) as (hosts, heard):
            first = await pid_of(hosts, heard, 1)
            assert len(hosts._hosts) == 1 or await pid_of(hosts, heard, 2) == first  # one at a time needs one
            hosts.start([assignment(python("sleeps"), 10)])
            found, number = first, 20
            while found == first:  # until the second one is ready
                found, number = await pid_of(hosts, heard, number), number + 1
            assert await pid_of(hosts, heard, 11) == found  # which has less to do
            assert len(hosts._hosts) == 2

    asyncio.run(scenario())


def test_ten_thousand_through_one_host() -> None:
    """Each exactly once, in batches. The figures are printed, not judged: `make test` runs on busy machines."""
    count = 10_000

    async def scenario() -> None:
        async with handler_hosts("noop", "plain_noop", slots=500) as (hosts, heard):
            for name in ("noop", "plain_noop"):
                heard.reports.clear()
                heard.batches = 0
                work = [assignment(python(name), at) for at in range(count)]
                cpu, wall = time.process_time(), time.perf_counter()
                for at in range(0, count, 500):
                    hosts.start(work[at : at + 500])
                ends = await heard.ends(count)
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                assert set(ends) == {(at, 1) for at in range(count)}
                assert {end.outcome for end in ends.values()} == {Succeeded()}
                assert hosts.running() == set()
                assert heard.batches <= count / 4
                print(f"{name}: {cpu / count * 1e6:.1f} µs of the worker, {wall / count * 1e6:.1f} µs in all")

    asyncio.run(scenario())
