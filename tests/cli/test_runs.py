"""`fleetcron runs`, `runs show`, `runs log` and `why`: what happened to a run, as people and scripts read it."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import pytest

from fleetcron.cli.runs import COMMANDS, WAITS
from fleetcron.model.outcome import Cancelled
from fleetcron.model.queued import Gate
from fleetcron.model.rules import OverlapRule
from fleetcron.model.states import RunState
from fleetcron.scheduler.desk import Desk
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.times.instants import from_ms, iso
from tests.cli.folder import Folder
from tests.store.check_attempts import Chunk, Progress
from tests.store.engines import hand_cranked
from tests.store.floor import MINUTE, Floor, ok

ROOT = Path(__file__).parents[2]

Story = Callable[[Floor], Awaitable[None]]


class Past:
    """A database in the folder of the command, with a story that happened in the last minutes."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path / 'fleetcron.db'}"
        self.minute = (time.time_ns() // 1_000_000 - 2 * MINUTE) // MINUTE * MINUTE

    def tell(self, story: Story, after_ms: int = 0) -> None:
        async def main() -> None:
            async with hand_cranked(self.url, self.minute + after_ms) as (engine, clock):
                store = Store(engine)
                assert await store.shards.fix(2) == Ok(2)
                held = ok(await store.shards.take("*", [0, 1], "scheduler", 3_600_000))
                await story(Floor(store, clock, Desk(store, actor="ann", shards=2), held))

        asyncio.run(main())


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


async def four_jobs(f: Floor) -> None:
    """One succeeded, one runs, one waits for it, and one is to be tried again."""
    shared = OverlapRule("allow", concurrency_key="shop-db")
    await f.define("runs", overlap=shared, payload={"kind": "full"})
    await f.next_minute()
    await f.join("n1")
    [running] = await f.claim("n1")
    output = [Chunk(running.run_id, 1, 0, "page 1\n"), Chunk(running.run_id, 1, 1, "page \x1b[31m2\n")]
    ok(await f.store.output.append("n1", output, [Progress(running.run_id, 1, 0.5, "page 2")]))
    await f.define("done")
    await f.define("fails")
    await f.define("waits", overlap=shared)
    await f.next_minute()
    done, failed = sorted(await f.claim("n1"), key=lambda run: run.name)
    await f.clock.advance(2000)
    await f.succeed("n1", done)
    await f.fail("n1", failed)


def test_the_list_shows_what_runs_waits_and_failed(quick: Folder, past: Past) -> None:
    """S1-13, S1-14, S3-21: the state of each, how late it started, how long it took, and what else there is to say."""
    past.tell(four_jobs)
    runs = {(run["name"], run["state"]): run for run in quick.json("runs")["runs"]}
    assert {name: state for name, state in runs if name != "runs"} == {
        "waits": "waiting",
        "done": "succeeded",
        "fails": "retrying",
    }
    assert {state for name, state in runs if name == "runs"} == {"running", "waiting"}
    done, fails, running = runs["done", "succeeded"], runs["fails", "retrying"], runs["runs", "running"]
    assert (done["delay_ms"], done["duration_ms"], done["attempt"]) == (500, 1500, 1)
    assert (fails["failures"], fails["reason"]) == (1, "ValueError: no such shop")
    assert fails["next_try"] > fails["started_at"]
    assert (running["node_id"], running["progress"], running["note"]) == ("n1", 0.5, "page 2")
    assert runs["waits", "waiting"]["waiting"]["gate"] == "key"
    assert [run["name"] for run in quick.json("runs", "--state", "retrying")["runs"]] == ["fails"]
    assert [run["name"] for run in quick.json("runs", "--state", "running", "--job", "runs")["runs"]] == ["runs"]

    shown = quick("runs").stdout
    assert "ABOUT" in shown.splitlines()[0]
    assert "+500ms" in shown
    assert "1.5s" in shown
    assert "n1 50% page 2" in shown
    assert "waits for a run before it" in shown
    assert "ValueError: no such shop" in shown


def test_one_run_with_its_attempts(quick: Folder, past: Past) -> None:
    """S0-27, S3-30: everything about one run on a page."""
    past.tell(four_jobs)
    number = {(run["name"], run["state"]): str(run["run_id"]) for run in quick.json("runs")["runs"]}
    shown = quick("runs", "show", number["fails", "retrying"]).stdout
    assert shown.startswith(f"run {number['fails', 'retrying']} of default/fails\n  state         retrying\n")
    assert "why           1 failed attempt so far: ValueError: no such shop; " in shown
    assert "ATTEMPT  WORKER  STARTED" in shown
    assert "12 bytes  ValueError: no such shop" in shown
    assert "The last error:\n  line 1\n  line 2\n" in shown
    assert f"fleetcron runs log {number['fails', 'retrying']}" in shown

    run = quick.json("runs", "show", number["runs", "running"])
    assert run["payload"] == {"kind": "full"}
    assert run["next_run"]["run_id"] > run["run_id"]
    assert run["why"].startswith("attempt 1 runs on n1 since ")
    [attempt] = run["attempts"]
    assert attempt.keys() == {
        *("attempt", "node_id", "outcome", "started_at", "finished_at", "duration_ms", "error", "result"),
        *("log_bytes", "progress", "note"),
    }
    assert (attempt["node_id"], attempt["outcome"], attempt["finished_at"]) == ("n1", None, None)
    [attempt] = quick.json("runs", "show", number["done", "succeeded"])["attempts"]
    assert (attempt["outcome"], attempt["result"], attempt["duration_ms"]) == ("succeeded", {"rows": 3}, 1500)
    [attempt] = quick.json("runs", "show", number["fails", "retrying"])["attempts"]
    assert attempt["error"] == {"code": "ValueError", "text": "no such shop", "trace": "line 1\nline 2"}
    assert "No attempt has begun." in quick("runs", "show", number["waits", "waiting"]).stdout
    assert "next tick" in quick("runs", "show", number["runs", "running"]).stdout


def test_what_it_printed(quick: Folder, past: Past) -> None:
    past.tell(four_jobs)
    [running] = quick.json("runs", "--state", "running")["runs"]
    number = str(running["run_id"])
    assert quick("runs", "log", number).stdout == "page 1\npage \\x1b[31m2\n"
    assert quick("runs", "log", number, "--raw").stdout == "page 1\npage \x1b[31m2\n"
    assert "exclude each other" in quick("runs", "log", number, "--raw", "--json", code=2).stderr
    nothing = quick("runs", "log", number, "--attempt", "2", code=2).stderr
    assert nothing == f"error: run {number} has no attempt 2: the latest is 1\n"
    lines = [json.loads(line) for line in quick("runs", "log", number, "--json").stdout.splitlines()]
    assert [(line["attempt"], line["seq"], line["text"]) for line in lines] == [
        (1, 0, "page 1\n"),
        (1, 1, "page \x1b[31m2\n"),
    ]
    [done] = quick.json("runs", "--job", "done")["runs"]
    assert quick("runs", "log", str(done["run_id"]), "--follow").stderr == "Nothing was printed.\n"


def test_a_run_that_has_not_started_has_printed_nothing_yet(quick: Folder, past: Past) -> None:
    past.tell(four_jobs)
    [waits] = quick.json("runs", "--job", "waits")["runs"]
    number = str(waits["run_id"])
    assert quick("runs", "log", number).stderr == f"It has not started; why: fleetcron why {number}\n"
    assert quick("runs", "log", number, "--json").stdout == ""
    quick("runs", "cancel", number)
    for more in ((), ("--follow",)):
        assert quick("runs", "log", number, *more).stderr == f"It never started; why: fleetcron why {number}\n"


def test_a_cancelled_attempt_says_it_once(quick: Folder, past: Past) -> None:
    async def story(f: Floor) -> None:
        await f.define("a")
        await f.next_minute()
        await f.join("n1")
        [run] = await f.claim("n1")
        await f.end("n1", run, Cancelled("cancel_previous: run 2 takes its place"))

    past.tell(story)
    for words in (("runs",), ("runs", "show", "1"), ("why", "1")):
        said = quick(*words).stdout
        assert "cancel_previous: run 2 takes its place" in said
        assert "cancelled: cancelled" not in said.replace("  ", ": ")
    assert "  cancelled  cancel_previous: run 2 takes its place\n" in quick("runs", "show", "1").stdout


def test_ticks_from_before_the_job_are_not_proposed(quick: Folder) -> None:
    """They had no run, and nobody could say more about them."""
    given = "jobs: [{name: a, schedule: {every: 1h, anchor: 2026-01-01T00:00:00Z}, run: {command: [x]}}]"
    quick("apply", "-", given=given)
    [job] = quick.json("jobs")["jobs"]
    said = quick("why", "a@2026-01-01T00:30:00Z").stdout
    assert said == f"2026-01-01T00:30:00Z is no tick of default/a; the nearest since it exists is: {job['next']}\n"
    later = quick("why", "a@2099-01-01T00:30:00Z").stdout
    assert later.endswith("; the nearest are: 2099-01-01T00:00:00Z, 2099-01-01T01:00:00Z\n")


def test_following_ends_with_the_run(fleetcron: Folder, past: Past) -> None:
    """From any process, live, from attempt to attempt; and it ends by itself."""
    taken = {}

    async def begin(f: Floor) -> None:
        await f.define("a")
        await f.next_minute()
        await f.join("n1")
        [taken["run"]] = await f.claim("n1")
        ok(await f.store.output.append("n1", [Chunk(taken["run"].run_id, 1, 0, "first\n")]))

    past.tell(begin)
    run = taken["run"]
    argv = [sys.executable, "-m", "fleetcron", "runs", "log", str(run.run_id), "--follow"]
    with subprocess.Popen(
        argv,
        cwd=fleetcron.path,
        env=fleetcron._environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == "first\n"

        async def fail_and_retry(f: Floor) -> None:
            ok(await f.store.output.append("n1", [Chunk(run.run_id, 1, 1, "more\n")]))
            await f.fail("n1", run)
            await f.clock.advance(31_000)
            await f.queue()
            [again] = await f.claim("n1")
            ok(await f.store.output.append("n1", [Chunk(run.run_id, 2, 0, "again\n")]))
            taken["run"] = again

        past.tell(fail_and_retry, MINUTE + 1000)
        assert [following.stdout.readline(), following.stdout.readline()] == ["more\n", "again\n"]
        assert following.stderr.readline() == "--- attempt 2\n"

        async def succeed(f: Floor) -> None:
            ok(await f.store.output.append("n1", [Chunk(run.run_id, 2, 1, "done\n")]))
            await f.succeed("n1", taken["run"])

        past.tell(succeed, MINUTE + 40_000)
        rest, errors = following.communicate(timeout=30)
    assert (rest, errors, following.returncode) == ("done\n", "", 0)


def test_why(quick: Folder, past: Past) -> None:
    """S3-7, S3-21: one sentence for a run, and for a tick without one."""
    past.tell(four_jobs)
    runs = {(run["name"], run["state"]): run for run in quick.json("runs")["runs"]}
    waits, running = runs["waits", "waiting"], runs["runs", "running"]
    said = quick("why", str(waits["run_id"])).stdout
    assert said.startswith("waits for the key shop-db: run ")
    assert quick("runs", "why", str(waits["run_id"])).stdout == said
    known = quick.json("why", str(waits["run_id"]))
    assert known["why"] == said.strip()
    assert known["waiting"]["key"] == "k:default:shop-db"
    assert {holder["run_id"] for holder in known["holders"]} == {running["run_id"]}
    tick = quick("why", f"waits@{waits['scheduled_for']}").stdout
    assert tick == f"run {waits['run_id']}: {said}"

    between = iso(from_ms(past.minute + MINUTE + 1000))
    assert f"is no tick of default/runs; the nearest are: {running['scheduled_for']}, " in quick(
        "why", f"runs@{between}"
    ).stdout.replace(".000", "")
    assert "the job was created later" in quick("why", "runs@2020-01-01T00:00:00Z").stdout
    assert "not planned yet: a scheduler makes its run" in quick("why", "runs@2050-01-01T00:00:00Z").stdout
    quick("jobs", "pause", "waits")
    assert "the job is paused" in quick("why", "waits@2050-01-01T00:00:00Z").stdout
    late = "jobs: [{name: late, schedule: {at: '2020-01-01T09:00Z'}, run: {command: [x]}}]"
    quick("apply", "-", given=late)
    assert quick("why", "late@2020-01-01T09:00:00Z").stdout == ("missed: the job was created after its only instant\n")
    assert quick.json("why", "late@2020-01-01T09:00:00Z")["state"] == "missed"


def test_every_command_about_runs_is_documented() -> None:
    page = (ROOT / "docs/learn/command-line.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"fleetcron runs {name}" not in page] == []
    states = (ROOT / "docs/learn/runs.md").read_text("utf-8")
    assert [state for state in RunState if f"| `{state}` |" not in states] == []
    assert set(WAITS) == set(get_args(Gate))
    assert [gate for gate in WAITS if f"`{gate}`" not in states] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs", "show", "99"), "there is no run 99"),
        (("runs", "log", "99", "--follow"), "there is no run 99"),
        (("why", "99"), "there is no run 99"),
        (("why", "9" * 30), "is neither the number of a run nor JOB@INSTANT"),
        (("why", "runs"), "is neither the number of a run nor JOB@INSTANT"),
        (("why", "nothing@2027-01-01"), "there is no job nothing of tenant default"),
        (("why", "runs@soon"), "'soon' is not an instant"),
        (("runs", "show", "x"), "'x' is not the number of a run"),
        (("runs", "shwo"), "There is no command 'shwo'. Did you mean show?"),
    ],
)
def test_what_is_not_there(quick: Folder, past: Past, arguments: tuple[str, ...], said: str) -> None:
    async def nothing(f: Floor) -> None:
        await f.define("runs")

    past.tell(nothing)
    assert said in quick(*arguments, code=2).stderr
