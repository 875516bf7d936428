"""The small pieces: identity, output, frames, words between processes, deadlines, verdicts, codes."""

import asyncio
import json
import re
import socket
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.config import ExecutorConfig, read
from fleetcron.errors import ConfigError
from fleetcron.executors.allowed import is_allowed
from fleetcron.executors.assignment import Assignment
from fleetcron.executors.by_target import ByTarget
from fleetcron.executors.codes import CODES, is_permanent
from fleetcron.executors.context import Context, GiveUp, Retry, Snooze, Stop
from fleetcron.executors.flights import FORCED_MS, NEVER_MS, Flights, Phase
from fleetcron.executors.frames import BrokenFrames, Frames, framed
from fleetcron.executors.handlers import Handlers
from fleetcron.executors.host_talk import assignment_of, reports_of, row_of, told
from fleetcron.executors.http_answer import retry_after_ms
from fleetcron.executors.outputs import CHUNK, CHUNKS, TAIL, Output
from fleetcron.executors.performer import SUCCEEDED
from fleetcron.executors.reports import Declined, Done, LogChunk, Progress, Report
from fleetcron.executors.verdicts import name_of, raised, stopped, trace_of, written
from fleetcron.executors.wire import Wire
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Outcome, Snoozed, TimedOut
from fleetcron.model.target import CommandTarget, PublishTarget, PythonTarget, Target
from fleetcron.store.output import KEPT_BYTES
from tests.executors.stage import Heard, assignment

PAGE = Path(__file__).parents[2] / "docs/learn/handlers.md"


def test_the_identity_of_a_run_in_variables_and_headers() -> None:
    given = assignment(PythonTarget("a:b"), 7, attempt=2)._replace(
        window_ms=(0, 3_600_000), deadline_ms=1_790_000_060_500, covers=3
    )
    variables = given.identity()
    assert variables["FLEETCRON_FENCE"] == variables["FLEETCRON_ATTEMPT"] == "2"
    assert variables["FLEETCRON_WINDOW_FROM"] == "1970-01-01T00:00:00Z"
    assert variables["FLEETCRON_WINDOW_TO"] == "1970-01-01T01:00:00Z"
    assert variables["FLEETCRON_DEADLINE"] == "2026-09-21T14:14:20.500000Z"
    headers = given.headers()
    assert len(headers) == len(variables) + 1
    assert headers["Fleetcron-Scheduled-For"] == variables["FLEETCRON_SCHEDULED_FOR"]
    assert headers["Idempotency-Key"] == given.idempotency_key
    assert read(None, variables, {}).executor == ExecutorConfig()  # a command may call fleetcron itself
    page = PAGE.read_text("utf-8")
    assert [name for name in variables if f"`{name}`" not in page] == []


def test_one_trace_for_each_run_and_one_span_for_each_attempt() -> None:
    first, second = (assignment(PythonTarget("a:b"), 7, attempt=number).traceparent() for number in (1, 2))
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", first)
    assert first.split("-")[1] == second.split("-")[1]
    assert first.split("-")[2] != second.split("-")[2]


@given(st.lists(st.binary(max_size=300)), st.integers(0, 5))
def test_output_loses_nothing_that_fits(pieces: list[bytes], every: int) -> None:
    """However it is cut: the chunks together are the text, and the tail is the text."""
    output, texts = Output(), []
    for at, piece in enumerate(pieces):
        output.write(piece)
        if every and at % every == 0:
            texts += output.chunks()
    texts += output.chunks(ended=True)
    whole = b"".join(pieces).decode("utf-8", "replace").replace("\0", "�")
    assert "".join(text for _, text, _ in texts) == whole
    assert [seq for seq, _, _ in texts] == list(range(len(texts)))
    assert output.tail() == whole
    assert not any(truncated for _, _, truncated in texts)


def test_output_beyond_its_limits_says_so_once_and_keeps_the_end() -> None:
    output, chunks = Output(), []
    line = "é" * 499 + "\n"
    for number in range(12_000):
        output.write(line.encode())
        if number % 100 == 0:
            chunks += output.chunks()
    output.write(b"the end")
    chunks += output.chunks(ended=True)
    assert output.chunks(ended=True) == []
    assert [truncated for _, _, truncated in chunks] == [False] * (len(chunks) - 2) + [True, False]
    assert [seq for seq, _, _ in chunks] == list(range(len(chunks)))
    text = "".join(text for _, text, _ in chunks[:-1])
    assert text == (line * 12_000)[: len(text)]
    assert CHUNKS - 1 <= len(text.encode()) <= CHUNKS  # not half a character
    assert max(len(text.encode()) for _, text, _ in chunks) <= CHUNK + 3
    assert output.total == 12_000 * 999 + 7
    tail = output.tail()
    assert tail == chunks[-1][1]
    assert tail.endswith("\nthe end")
    assert TAIL - 4 <= len(tail.encode()) <= TAIL
    assert "�" not in tail


def test_a_chunk_that_ends_exactly_at_the_limit_is_not_cut() -> None:
    output = Output()
    output.write(b"y" * CHUNKS)
    assert not output.chunks()[-1][2]
    output.write(b"z" * TAIL)
    assert output.chunks() == []  # this may be all
    output.write(b"!")
    assert output.chunks() == [(CHUNKS // CHUNK, "", True)]
    assert output.chunks(ended=True) == [(CHUNKS // CHUNK + 1, "z" * (TAIL - 1) + "!", False)]


def test_what_fits_as_beginning_and_end_is_whole() -> None:
    output, whole = Output(), "x" + "é" * ((CHUNKS + TAIL) // 2 - 1)  # a character lies across the limit
    output.write(whole.encode())
    found = [*output.chunks(), *output.chunks(ended=True)]
    assert "".join(text for _, text, _ in found) == whole
    assert not any(truncated for _, _, truncated in found)


def test_bytes_that_are_no_text_leave_room_for_the_end() -> None:
    """They are three times as long when they are stored, and half of a character is one of them."""
    output = Output()
    for _ in range(CHUNKS // CHUNK):
        output.write(b"\xff\0" * (CHUNK // 2))
    output.write("the end €".encode()[:-1])
    found = output.chunks(ended=True)
    assert sum(len(text.encode()) for _, text, _ in found) <= KEPT_BYTES
    assert found[-1][1].endswith("�the end �")
    assert [truncated for _, _, truncated in found[-2:]] == [True, False]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.lists(VALUES, max_size=4), max_size=6), st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_any_cut(messages: list[list[Any]], cuts: list[int]) -> None:
    stream = b"".join(map(framed, messages))
    frames, got, at = Frames(), [], 0
    while at < len(stream):
        size = cuts[at % len(cuts)]
        got += frames.feed(stream[at : at + size])
        at += size
    assert got == messages


@pytest.mark.parametrize("data", [b"\xff" * 8, b"\0\0\0\2{}", b"\0\0\0\1[", b"\0\0\0\2\xff\xff"])
def test_nonsense_is_not_taken_for_a_frame(data: bytes) -> None:
    with pytest.raises(BrokenFrames):
        Frames().feed(data)


OUTCOMES: list[Outcome] = [
    SUCCEEDED,
    Failed(Fault("a", "b", "c"), 5),
    Failed(Fault("a")),
    Failed(Fault("retry"), 1_500, is_exact=True),
    TimedOut(Fault("timeout", "t")),
    Lost(Fault("l")),
    Cancelled("why"),
    Snoozed(1.5),
]


def test_words_between_processes_mean_the_same_on_both_sides() -> None:
    reports: list[Report] = [Done(at, 1, outcome, 5, 6, "{}", "tail", 4) for at, outcome in enumerate(OUTCOMES)]
    reports += [LogChunk(1, 2, 0, "text", True), Progress(1, 2, 0.5, "half"), Declined(1, 3, "no")]
    plain: list[Report] = [Done(9, 1, SUCCEEDED, 5, 6)]
    message = json.loads(json.dumps(told([*plain, *reports])))
    assert message[0] == "told"
    assert reports_of(message[1], message[2]) == [*reports, *plain]
    given = assignment(PythonTarget("a:b"), 7, payload={"x": [1]})._replace(window_ms=(1, 2))
    back = assignment_of(json.loads(json.dumps(row_of(given))), {})
    assert back == given._replace(window_ms=[1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("others", [[["what"]], [["done", 1]], [["done", 1, 1, ["x"], 1, 2]], [["log", 1]], [[]], [3]])
def test_reports_that_make_no_sense_are_refused(others: list[Any]) -> None:
    with pytest.raises(BrokenFrames):
        reports_of([], others)
    with pytest.raises(BrokenFrames):
        reports_of([[1, 2]], [])


def test_a_flight_is_asked_then_forced_then_given_up() -> None:
    flights = Flights(grace_ms=100)
    assert flights.next_ms() == NEVER_MS
    some = [assignment(PythonTarget("a:b"), number, timeout_s=number) for number in (1, 2)]
    assert flights.board(some, 1000) == flights.next_ms() == 2000
    assert flights.step(1999) == []
    [moved] = flights.step(2000)
    assert (moved.phase, moved.why, moved.reason) == (Phase.ASKED, "timeout", "Job timed out after 1s")
    assert flights.next_ms() == 2100
    assert flights.step(2100)[0].phase is Phase.FORCED
    assert flights.step(2100 + FORCED_MS)[0].phase is Phase.STUCK
    assert not flights.are_all_stuck
    assert flights.next_ms() == 3000
    assert flights.ask((2, 1), "cancel", "no more", 2700)
    assert not flights.ask((2, 1), "cancel", "once is enough", 2700)
    assert flights.next_ms() == 2800
    assert not flights.ask((2, 1), "cancel", "faster", 2710, grace_ms=0)
    assert flights.next_ms() == 2710
    assert not flights.ask((3, 1), "cancel", "who?", 2700)
    flights.step(2710)
    flights.step(2710 + FORCED_MS)
    assert flights.are_all_stuck


def test_what_was_raised_may_be_anything() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("even this")

    class MuteToo(GiveUp, Mute):
        __str__ = Mute.__str__

    assert raised(MuteToo()).error.code == "give_up"  # type: ignore[union-attr]
    outcome = raised(Mute())
    assert isinstance(outcome, Failed)
    assert outcome.error.code == name_of(Mute)
    assert outcome.error.trace
    assert len(trace_of(ValueError("x" * 100_000))) < 17_000
    long = raised(ValueError("\ud800\0" + "x" * 100_000))
    assert isinstance(long, Failed)
    assert long.error.text.startswith("?�xxx")
    assert len(long.error.text) < 4100
    assert stopped("timeout", 90_000, "").error.text == "Job timed out after 90s"  # type: ignore[union-attr]


@given(VALUES)
def test_what_was_returned_is_kept_or_refused(value: Any) -> None:
    text = written(value)
    assert isinstance(text, str)
    text.encode()
    assert "\\u0000" not in text.replace("\\\\", "")


class Deaf:
    def wrote(self, data: bytes) -> None: ...

    def progressed(self, share: float, note: str) -> None: ...


@pytest.mark.parametrize("seconds", [0, -5, float("nan")])
def test_a_snooze_into_the_past_is_a_mistake(seconds: float) -> None:
    """It would be an attempt a second, for ever."""
    ctx = Context(assignment(PythonTarget("a:b"), 7), Deaf(), Stop())
    with pytest.raises(ValueError, match=r"it takes a number of seconds above 0, such as snooze\(60\)"):
        ctx.snooze(seconds)
    with pytest.raises(Snooze) as told:
        ctx.snooze(0.5)
    assert told.value.seconds == 0.5


@pytest.mark.parametrize("after", [timedelta(minutes=5), "soon", float("inf"), float("nan"), -5, 0])
def test_a_retry_takes_seconds(after: Any) -> None:
    with pytest.raises(ValueError, match=r"it takes a number of seconds above 0, such as after=60"):
        Retry("not yet", after=after)
    assert Retry("much later", after=1e18).after == 1e9
    told = raised(Retry("not yet", after=Decimal("1.5")))  # type: ignore[arg-type]
    assert isinstance(told, Failed)
    assert (told.retry_after_ms, told.is_exact) == (1_500, True)


def test_stop_is_a_flag_and_something_to_wait_for() -> None:
    stop = Stop()
    assert not stop
    assert not stop.wait(0)
    stop.ask("enough")
    assert stop
    assert stop.wait()
    assert stop.reason == "enough"


@pytest.mark.parametrize(
    ("name", "allowed", "entry"),
    [
        ("shop.jobs:report", ("shop.jobs:report",), "shop.jobs:report"),
        ("shop.jobs:report", ("shop.jobs",), "shop.jobs"),
        ("shop.jobs:report", ("shop.*",), "shop.*"),
        ("shop:report", ("shop.*",), "shop.*"),
        ("shop.jobs.late:report", ("shop.jobs",), None),
        ("shopping.jobs:report", ("shop.*", "shop"), None),
        ("shop.jobs:report", ("shop.jobs:reports",), None),
        ("shop.jobs:report", (), None),
    ],
)
def test_the_list_of_handlers_is_exact(name: str, allowed: tuple[str, ...], entry: str | None) -> None:
    assert is_allowed(name, allowed) == entry


def test_shapes_of_functions() -> None:
    handlers = Handlers(())

    def decorated(*args: object, **more: object) -> None: ...

    def optional(ctx: object = None, payload: object = None) -> None: ...

    def own_affair(times: int = 3) -> None: ...

    for function, takes in ((decorated, 1), (optional, 2), (own_affair, 0)):
        handlers.add("x:y", function)
        handler = handlers.get("x:y")
        assert handler is not None
        assert (function.__name__, handler.takes) == (function.__name__, takes)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("0", 0),
        (" 12 ", 12_000),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("Thu, 01 Jan 1970 00:01:00 GMT", 50_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400_000),
        ("Thu, 99 Foo 1970", None),
    ],
)
def test_retry_after(header: str | None, expected: int | None) -> None:
    assert retry_after_ms(header, 10_000) == expected


def test_every_code_is_documented_and_some_are_for_good() -> None:
    page = PAGE.read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-zA-Z_]+)` \| (.*?) \|", page, re.MULTILINE))
    assert {code: rows.get(code) for code in CODES} == dict(CODES)
    permanent = {"give_up", "bad_payload", "result_too_large", "result_not_json", "address_refused", "bad_request"}
    assert {code for code in CODES if is_permanent(code)} == permanent
    for code in CODES:
        if code != "http_N":  # which depends
            assert _row(page, code).endswith("| no use |" if code in permanent else "| yes |")
    assert [is_permanent(f"http_{status}") for status in (400, 404, 408, 425, 429, 499, 500, 302)] == [
        True, True, False, False, False, True, False, False,
    ]  # fmt: skip


def _row(page: str, code: str) -> str:
    return next(line for line in page.splitlines() if line.startswith(f"| `{code}` |"))


class Nobody:
    """An executor that takes everything and does nothing."""

    def __init__(self) -> None:
        self.given: list[Assignment] = []
        self.cancelled: list[Any] = []

    async def learn(self, targets: Any) -> None: ...

    def knows(self, target: Target) -> bool:
        return True

    def why_not(self, target: Target) -> str | None:
        return None

    def start(self, assignments: Any) -> None:
        self.given += assignments

    def cancel(self, run_id: int, attempt: int, reason: str, grace_s: float | None = None) -> None:
        self.cancelled.append((run_id, attempt, reason, grace_s))

    def running(self) -> set[tuple[int, int]]:
        return {one.key for one in self.given}

    async def close(self, grace_s: float) -> None: ...


def test_each_target_goes_to_its_executor() -> None:
    async def scenario() -> None:
        heard, python, command = Heard(), Nobody(), Nobody()
        executor = ByTarget({PythonTarget: python, CommandTarget: command}, heard.tell)
        publish = PublishTarget("nats", "reports")
        targets: list[Target] = [PythonTarget("a:b"), CommandTarget(("true",)), publish, PythonTarget("a:c")]
        executor.start([assignment(target, at) for at, target in enumerate(targets)])
        assert [one.run_id for one in python.given] == [0, 3]
        assert executor.running() == {(0, 1), (1, 1), (3, 1)}
        assert [executor.knows(target) for target in targets] == [True, True, False, True]
        assert "no worker can publish to a broker yet" in (executor.why_not(publish) or "")
        assert "can publish" in await heard.declined(2)
        await executor.learn(targets)
        executor.cancel(1, 1, "no", 0)
        assert (1, 1, "no", 0) in command.cancelled
        await executor.close(0)

    asyncio.run(scenario())


def test_a_wire_never_waits_for_the_other_side() -> None:
    """Megabytes to somebody who does not read are kept, and arrive whole when he does."""

    async def scenario() -> None:
        here, there = socket.socketpair()
        got: list[list[Any]] = []
        all_there, gone = asyncio.Event(), asyncio.Event()

        def heard(message: list[Any]) -> None:
            got.append(message)
            if len(got) == 300:
                all_there.set()

        sender = Wire(here, heard, gone.set)
        for number in range(300):
            sender.send([number, "x" * 10_000])
        assert sender.backlog > 1_000_000
        reader = Wire(there, heard, lambda: None)
        await asyncio.wait_for(all_there.wait(), 30)
        assert [message[0] for message in got] == list(range(300))
        assert sender.backlog == 0
        reader.close()
        await asyncio.wait_for(gone.wait(), 30)
        sender.send(["into the void"])
        sender.close()

    asyncio.run(scenario())


def test_settings_of_executors() -> None:
    lists = 'handlers = ["shop.*", "books:close", "shop.*"]\ninternal = "10.0.0.0/8, *.svc.local"'
    config = read(f'[executor]\n{lists}\ngrace = "5s"', {}, {}).executor
    assert config.handlers == ("shop.*", "books:close")
    assert config.internal == ("10.0.0.0/8", "*.svc.local")
    assert config.grace_s == 5
    assert read(
        '[executor]\nsigning_secret = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"', {}, {}
    ).executor.signing_secret
    for wrong in ('handlers = ["shop jobs"]', "handlers = 3", 'environment = ["A=B"]', 'shell = "yes"', "hosts = 0"):
        with pytest.raises(ConfigError):
            read(f"[executor]\n{wrong}", {}, {})
