"""What people see of runs: a list that ends now, all that is kept of one, and nothing that commands their terminal."""

import json
import time
from typing import Any

import pytest

from fleetcron.model.outcome import Failed, Fault, Lost
from fleetcron.model.rules import EveryEntry, OverlapRule
from tests.cli.folder import Folder, InThisProcess
from tests.cli.test_runs import Past, four_jobs
from tests.cli.test_runs import past as past
from tests.store.check_attempts import Chunk
from tests.store.engines import change
from tests.store.floor import MINUTE, Floor, ok

BELL = "\x1b]0;owned\x07\u009b31m\u202e"  # a title, a colour by C1, and letters that run backwards


async def much_ahead(f: Floor) -> None:
    """One run that failed a moment ago, and many that are planned for the next minutes."""
    await f.define("old")
    await f.next_minute()
    await f.join("n1")
    [run] = await f.claim("n1")
    await f.fail("n1", run)
    for number in range(60):
        await f.define(f"many-{number}", schedule=(EveryEntry(86_400_000, anchor_ms=f.clock.now_ms() + MINUTE // 2),))
    await f.plan()


def test_the_list_ends_now(quick: Folder, past: Past) -> None:
    """S3-21: what runs and what failed is not pushed off the page by what is planned."""
    past.tell(much_ahead)
    ago: Any = {"shift_s": (past.minute + MINUTE - time.time_ns() // 1_000_000) // 1000 + 2}  # much is still to come
    shown = quick("runs", **ago).stdout.splitlines()
    assert shown[1].split()[1:4:2] == ["default/old", "retrying"]
    assert shown[2:] == ["61 runs planned for later are not shown: --planned"]
    told = quick.json("runs", **ago)
    assert ([run["name"] for run in told["runs"]], told["planned_later"]) == (["old"], 61)
    assert quick.json("runs", "--job", "old", **ago)["planned_later"] == 1
    every = quick.json("runs", "--planned", "--limit", "99", **ago)
    assert (len(every["runs"]), every["planned_later"]) == (62, 0)
    assert "planned for later" not in quick("runs", "--planned", **ago).stdout
    assert len(quick.json("runs", "--state", "planned", "--limit", "99", **ago)["runs"]) == 61
    assert len(quick.json("runs", "--to", "2100-01-01", "--limit", "99", **ago)["runs"]) == 62
    none = quick("runs", "--job", "many-1", **ago).stdout
    assert none == "No run has come to its tick yet.\n1 run planned for later is not shown: --planned\n"
    later = quick.json("runs", "--from", "2100-01-01", **ago)
    assert (later["runs"], later["planned_later"]) == ([], 0)


def test_on_a_page_the_latest_tick_comes_first(quick: Folder, past: Past) -> None:
    """Runs are planned by job, so that their numbers say little about time."""

    async def two(f: Floor) -> None:
        await f.define("a", schedule=(EveryEntry(15_000, anchor_ms=0),))
        await f.define("b", schedule=(EveryEntry(20_000, anchor_ms=0),))
        await f.plan()

    past.tell(two)
    told = quick.json("runs")
    ticks = [run["scheduled_for"] for run in told["runs"]]
    assert len(ticks) == 7
    assert ticks == sorted(ticks, reverse=True)
    page = quick.json("runs", "--limit", "4")
    rest = quick.json("runs", "--before", str(page["before"]))
    numbers = [run["run_id"] for run in (*page["runs"], *rest["runs"])]
    assert sorted(numbers) == sorted(run["run_id"] for run in told["runs"])


async def lost_and_dead(f: Floor) -> None:
    """An attempt that printed and was lost, and one that died of something long."""
    await f.define("a", payload={"for": "{{ scheduled_for }} {{ tenant }}", "n": list(range(300))})
    await f.next_minute()
    await f.join("n1")
    [run] = await f.claim("n1")
    ok(await f.store.output.append("n1", [Chunk(run.run_id, 1, 0, f"page\t1 {BELL}\n")]))
    await f.end("n1", run, Lost(Fault("lost", "the worker n1 vanished")))
    await f.queue()
    for _ in range(2):
        [run] = await f.claim("n1")
        trace = "".join(f"line {number}\n" for number in range(1, 501)) + "x" * 1000
        await f.end("n1", run, Failed(Fault("ValueError", f"{BELL} {'long ' * 500}", trace)))
        await f.clock.advance(40_000)
        await f.queue()


def test_one_run_is_a_page(quick: Folder, past: Past) -> None:
    """S3-30: what a lost attempt printed, the payload as it was given, and the end of an error."""
    past.tell(lost_and_dead)
    shown = quick("runs", "show", "1").stdout
    [lost] = [line for line in shown.splitlines() if line.startswith("1 ")]
    size = len(f"page\t1 {BELL}\n".encode())
    assert f"  lost     {size} bytes  lost: the worker n1 vanished" in lost
    told = quick.json("runs", "show", "1")
    assert [attempt["log_bytes"] for attempt in told["attempts"]] == [size, 0, 0]
    filled = f"{told['scheduled_for']} default"
    assert told["payload"] == {"for": filled, "n": list(range(300))}
    assert f'\n  payload       {{"for": "{filled}", "n": [0, 1, ' in shown
    assert "…   (--json has all of it)\n" in shown
    error = shown.partition("The last error:\n")[2].splitlines()
    assert error[:2] == ["  … 481 lines before these: --json has them all", "  line 482"]
    assert error[20] == f"  {'x' * 199}…"
    assert len(told["attempts"][2]["error"]["trace"].splitlines()) == 501
    assert max(map(len, shown.splitlines())) < 400
    assert len(shown.splitlines()) < 45


def test_a_merged_run_names_the_one_that_works(quick: Folder, past: Past) -> None:
    async def merged(f: Floor) -> None:
        await f.define("a", overlap=OverlapRule("allow"))
        await f.next_minute()
        await f.next_minute()
        await f.next_minute()
        await f.join("n1")
        last = max(await f.claim("n1"), key=lambda run: run.run_id)
        await f.succeed("n1", last)
        await change(f.store.engine, "DELETE FROM leases")
        for run_id in (1, 2):
            ended = f"state = 'merged', finished_ms = 1, covered_by = {run_id + 1}"
            await change(f.store.engine, f"UPDATE runs SET {ended} WHERE run_id = {run_id}")

    past.tell(merged, -2 * MINUTE)
    said = "merged into run 2; run 2 was merged too, in the end into run 3, which has succeeded"
    assert quick("why", "1").stdout == f"{said}\n"
    assert f"  why           {said}\n" in quick("runs", "show", "1").stdout
    assert quick("why", "2").stdout == "merged into run 3; run 3 has succeeded\n"
    assert quick.json("why", "1")["merged_into"] == quick.json("runs", "show", "1")["merged_into"] == [2, 3]
    assert quick.json("why", "3")["merged_into"] == []
    runs = quick.json("runs")["runs"]
    assert [(run["run_id"], run["covered_by"], run["worked_by"]) for run in runs] == [
        (3, None, None),
        (2, 3, 3),
        (1, 2, 3),
    ]
    assert [line.endswith("  run 3 does its work") for line in quick("runs").stdout.splitlines()[1:4]] == [
        False,
        True,
        True,
    ]


def test_the_list_of_jobs_says_how_the_last_run_stands(quick: Folder, past: Past) -> None:
    """S0-27: not the state of its row, which is planned until its end."""
    past.tell(four_jobs)
    last = {job["name"]: job["last"]["state"] for job in quick.json("jobs")["jobs"]}
    assert last == {"done": "succeeded", "fails": "retrying", "runs": "waiting", "waits": "waiting"}
    shown = quick("jobs").stdout
    assert [word for word in ("succeeded", "retrying", "waiting") if f"  {word} " not in shown] == []
    assert quick.json("jobs", "show", "fails")["last"]["state"] == "retrying"


@pytest.mark.parametrize(
    "words",
    [
        ("runs",),
        ("runs", "show", "1"),
        ("runs", "log", "1", "--attempt", "1"),
        ("runs", "why", "1"),
        ("dead",),
        ("runs", "show", "1", "--json"),
        ("runs", "log", "1", "--attempt", "1", "--json"),
        ("runs", "cancel", "1"),
        ("runs", "--job", BELL),
        ("tenants", "show", BELL),
        ("jobs", "trigger", BELL),
        ("holds",),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)
def test_nothing_commands_a_terminal(quick: InThisProcess, past: Past, words: tuple[str, ...]) -> None:
    """What handlers print, texts of errors and names that people write: on a terminal, where it would matter."""
    past.tell(lost_and_dead)
    said = quick.on_a_terminal(*words, NO_COLOR="1")
    assert not {"\x1b", "\x07", "\u009b", "\u202e"} & set(said)


def test_raw_is_raw_on_a_terminal_too(quick: InThisProcess, past: Past) -> None:
    past.tell(lost_and_dead)
    words = ("runs", "log", "1", "--attempt", "1")
    assert quick.on_a_terminal(*words) == "page\t1 \\x1b]0;owned\\x07\\x9b31m\\u202e\r\n"
    assert quick.on_a_terminal(*words, "--raw") == f"page\t1 {BELL}\r\n"
    assert json.loads(quick.on_a_terminal(*words, "--json"))["text"] == f"page\t1 {BELL}\n"


def test_all_runs_of_a_job_are_cancelled(quick: Folder, past: Past) -> None:
    """Also the one that runs, which is asked to stop; what runs for others goes on."""
    past.tell(four_jobs)
    assert quick("runs", "cancel", "--job", "runs", "--yes").stdout.splitlines() == [
        "default/runs: 1 run cancelled.",
        "1 run is asked to stop.",
    ]
    assert quick("runs", "cancel", "--job", "runs", "--yes").stdout.splitlines() == [
        "default/runs: 0 runs cancelled.",
        "1 run had ended by then, or had been asked to stop before.",
    ]
    [waits] = quick.json("runs", "--job", "waits")["runs"]
    assert waits["state"] == "waiting"  # for a key that is free now: it was called, and is looked at next


def test_many_runs_show_how_far_it_is(quick: InThisProcess) -> None:
    job = "jobs: [{name: a, schedule: {every: 1h, anchor: 2026-01-01T00:00:00Z}, run: {command: [x]}}]"
    quick("apply", "-", given=job)
    quick("jobs", "backfill", "a", "--from", "2026-01-01", "--to", "2026-01-29")
    said = quick.on_a_terminal("runs", "cancel", "--job", "a", "--yes")
    assert "cancelling" in said
    assert "672/672" in said
    assert said.endswith("default/a: 672 runs cancelled.\r\n")
