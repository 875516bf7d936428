"""Commands: real programs, kind and unkind."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetcron.executors import programs
from fleetcron.executors.process_tree import _listed_children, _searched_children, children_of, descendants
from fleetcron.executors.reports import Done
from fleetcron.model.outcome import Cancelled, Failed, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import CommandTarget, PythonTarget, Target
from tests.executors.processes import keepers, open_files, ours, still_alive, zombies
from tests.executors.stage import Heard, assignment, commands, shell

# A child in a session of its own that hears no SIGTERM: what a program has to do to get away.
DAEMON = "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 3600' &"
STUBBORN = f"trap '' TERM; {DAEMON} sleep 3600 & echo $$ $!; sleep 0.2; echo ready; wait; sleep 3600"


def run(target: Target, *, timeout_s: float = 3600, payload: dict[str, Any] | None = None, **settings: Any) -> Done:
    async def scenario() -> Done:
        async with commands(**settings) as (executor, heard):
            executor.start([assignment(target, timeout_s=timeout_s, payload=payload)])
            return await heard.end_of(1)

    return asyncio.run(scenario())


def pids_in(log: str) -> list[int]:
    return [int(word) for word in log.split() if word.isdigit()]


def test_what_a_command_is_told() -> None:
    """The environment starts empty; the identity of the run goes to every handler, the payload to standard input."""
    program = "import json, os, sys; print(json.dumps([dict(os.environ), sys.stdin.read(), os.getcwd()]))"
    target = CommandTarget((sys.executable, "-c", program), env={"COLOUR": "red"}, cwd="/")
    payload = {"text": "é; $(rm -rf /) `id`"}
    end = run(target, payload=payload, environment=("HOME", "GONE"))
    environment, given, cwd = json.loads(end.log_tail)
    environment.pop("LC_CTYPE", None)  # Python sets it for itself
    assert environment == {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "COLOUR": "red",
        "FLEETCRON_JOB": "nightly-report",
        "FLEETCRON_TENANT": "acme",
        "FLEETCRON_SCHEDULED_FOR": "2026-09-21T14:13:20Z",
        "FLEETCRON_RUN_ID": "1",
        "FLEETCRON_ATTEMPT": "1",
        "FLEETCRON_FENCE": "1",
        "FLEETCRON_COVERS": "1",
        "FLEETCRON_IDEMPOTENCY_KEY": "job:018f3b2e-7c3a-7b1e-9a1b-2c3d4e5f6071:scheduled_for:2026-09-21T14:13:20Z",
    }
    assert json.loads(given) == payload
    assert cwd == "/"


def test_a_large_payload_is_read_at_leisure() -> None:
    """More than a pipe holds, and a program that does not read it at all."""
    payload = {"text": "x" * 250_000}
    assert run(CommandTarget(("wc", "-c")), payload=payload).log_tail.strip() == str(250_000 + len('{"text":""}'))
    assert run(CommandTarget(("true",)), payload=payload).outcome == Succeeded()


def test_how_a_command_ends_is_its_outcome(tmp_path: Path) -> None:
    """S1-28: each end has its code."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    cases = {
        "exit_3": (shell("echo one; echo two >&2; exit 3"), "exit code 3: two"),
        "signal_9": (shell("kill -9 $$"), "ended by signal 9 (SIGKILL)"),
        "signal_34": (shell("kill -34 $$"), "ended by signal 34"),
        "not_found": (CommandTarget(("no-such-program-anywhere",)), "no-such-program-anywhere is not there"),
        "not_found ": (CommandTarget(("true",), cwd="/no/such/folder"), "/no/such/folder is not there"),
        "not_executable": (CommandTarget((str(plain),)), "cannot be run: [Errno 13] Permission denied"),
        "not_executable ": (CommandTarget(("true", "x" * 200_000)), "cannot be run: [Errno 7] Argument list too long"),
    }

    async def scenario() -> dict[str, Done]:
        async with commands() as (executor, heard):
            executor.start([assignment(target, at) for at, (target, _) in enumerate(cases.values())])
            ends = await heard.ends(len(cases))
            return {case: ends[at, 1] for at, case in enumerate(cases)}

    for case, end in asyncio.run(scenario()).items():
        assert isinstance(end.outcome, Failed)
        assert end.outcome.error.code == case.strip()
        assert cases[case][1] in end.outcome.error.text
        assert end.result_json is None


def test_there_is_no_shell_unless_the_operator_allows_it() -> None:
    text = CommandTarget(("echo $FLEETCRON_JOB | tr a-z A-Z",), shell=True)

    async def scenario() -> None:
        async with commands() as (executor, heard):
            assert not executor.knows(text)
            assert not executor.knows(PythonTarget("a:b"))
            assert "set executor.shell to allowed" in (executor.why_not(text) or "")
            executor.start([assignment(text, 1), assignment(CommandTarget(("echo", "$HOME", ";", "id")), 2)])
            assert "runs no shell" in await heard.declined(1)
            assert (await heard.end_of(2)).log_tail == "$HOME ; id\n"

    asyncio.run(scenario())
    assert run(text, shell="allowed").log_tail == "NIGHTLY-REPORT\n"


def test_output_comes_while_it_runs_and_is_cut_where_it_must_be() -> None:
    """Standard output and error in their order; half a character is not lost; a NUL does no harm."""

    async def scenario() -> None:
        async with commands() as (executor, heard):
            text = r"printf 'a\303'; sleep 0.3; printf '\251b\0'; echo err >&2; echo; read line < /dev/null; sleep 3600"
            executor.start([assignment(shell(text), 1)])
            assert await heard.log_has(1, "err") == "aéb�err\n\n"
            executor.cancel(1, 1, "seen enough")
            assert (await heard.end_of(1)).outcome == Cancelled("seen enough")

    asyncio.run(scenario())


def flood(megabytes: int) -> tuple[Done, Heard, int]:
    async def scenario() -> tuple[Done, Heard, int]:
        async with commands() as (executor, heard):
            text = f"head -c {megabytes}000000 /dev/zero | tr '\\0' y; echo the end"
            executor.start([assignment(shell(text), 1), assignment(shell("echo neighbour"), 2)])
            neighbour = await heard.end_of(2)
            assert neighbour.log_tail == "neighbour\n"
            assert neighbour.finished_ms - neighbour.started_ms < 1000
            end = await heard.end_of(1)
            [keeper] = keepers()
            largest = max(_peak_kb(pid) for pid in descendants(keeper))
            return end, heard, largest

    return asyncio.run(scenario())


def _peak_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in text else 0


def check_flood(megabytes: int) -> None:
    end, heard, largest_kb = flood(megabytes)
    assert end.outcome == Succeeded()
    assert end.log_bytes == megabytes * 1_000_000 + 8
    assert len(end.log_tail) == 64 * 1024
    assert end.log_tail.endswith("yyythe end\n")
    *beginning, last = heard.chunks(1)
    assert sum(len(chunk.text) for chunk in beginning) == 8 * 1024 * 1024
    assert [chunk.truncated for chunk in beginning] == [False] * (len(beginning) - 1) + [True]
    assert (last.text, last.truncated) == (end.log_tail, False)
    assert largest_kb < 80_000


def test_a_flood_of_output_delays_nobody_and_fills_no_memory() -> None:
    check_flood(100)


@pytest.mark.soak
def test_a_gigabyte_of_output() -> None:
    check_flood(1000)


def test_a_timeout_ends_everything_that_a_command_started() -> None:
    """S1-26: it ignores SIGTERM, forks, and has a daemon in another session: all gone within grace + 2 s."""

    async def scenario() -> None:
        async with commands(grace_s=0.5) as (executor, heard):
            executor.start([assignment(shell(STUBBORN), 1, timeout_s=1)])
            pids = pids_in(await heard.log_has(1, "ready"))
            assert len(pids) == 3
            end = await heard.end_of(1)
            assert end.outcome == TimedOut(Fault("timeout", "Job timed out after 1s"))
            assert end.finished_ms - end.started_ms <= 1000 + 500 + 2000
            assert still_alive(pids, 0) == []
            assert zombies() == []

    asyncio.run(scenario())


def test_who_hears_sigterm_has_the_grace_to_clean_up() -> None:
    text = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    end = run(shell(text), timeout_s=0.3, grace_s=30)
    assert end.outcome == TimedOut(Fault("timeout", "Job timed out after 0.3s"))
    assert end.log_tail.startswith("ready\n")
    assert end.log_tail.endswith("cleaned\n")
    assert end.finished_ms - end.started_ms < 10_000


def test_what_a_command_leaves_behind_ends_with_it() -> None:
    """It exits while a child lives: the child gets SIGTERM, and after the grace SIGKILL; then the attempt is over."""

    async def scenario() -> None:
        async with commands(grace_s=0.3) as (executor, heard):
            executor.start([assignment(shell(f"{DAEMON} sleep 3600 & echo $!; sleep 0.2; exit 4"), 1)])
            end = await heard.end_of(1)
            assert isinstance(end.outcome, Failed)
            assert end.outcome.error.code == "exit_4"
            pids = pids_in(end.log_tail)
            assert len(pids) == 2
            assert still_alive(pids, 0) == []

    asyncio.run(scenario())


def test_a_program_that_was_stopped_and_one_that_forks_again_and_again_end_too() -> None:
    async def scenario() -> None:
        async with commands(grace_s=0.1) as (executor, heard):
            one = "(sh -c 'trap \"\" TERM; sleep 3600 & wait; sleep 3600' &)"
            many = f"for i in $(seq 60); do {one}; done; echo $$ ready; sleep 3600"
            frozen = "echo $$ ready; kill -STOP $$"
            executor.start([assignment(shell(many), 1), assignment(shell(frozen), 2)])
            await heard.log_has(1, "ready")
            await heard.log_has(2, "ready")
            [keeper] = keepers()
            below = descendants(keeper)
            executor.cancel(1, 1, "enough")
            executor.cancel(2, 1, "enough")
            ends = await heard.ends(2)
            assert {end.outcome for end in ends.values()} == {Cancelled("enough")}
            left = set(still_alive(below, 0)) & set(descendants(keeper))
            assert left == set(children_of(keeper))  # the two supervisors, which wait for more

    asyncio.run(scenario())


def test_where_the_kernel_keeps_no_lists_all_processes_are_searched() -> None:
    async def scenario() -> None:
        async with commands() as (executor, heard):
            executor.start([assignment(shell("sleep 3600 & sleep 3600 & echo ready; wait"), 1)])
            await heard.log_has(1, "ready")
            for parent in ours():
                assert set(_searched_children(parent)) == set(_listed_children(parent))

    asyncio.run(scenario())


def test_cancel_reaches_a_command_that_has_hardly_begun() -> None:
    async def scenario() -> None:
        async with commands() as (executor, heard):
            for number in range(5):
                executor.start([assignment(shell("sleep 3600"), number)])
                executor.cancel(number, 1, "at once")
                assert (await heard.end_of(number)).outcome == Cancelled("at once")
            executor.cancel(77, 1, "never heard of it")
            assert executor.running() == set()

    asyncio.run(scenario())


def test_a_second_cancel_can_hurry() -> None:
    async def scenario() -> None:
        async with commands(grace_s=600) as (executor, heard):
            executor.start([assignment(shell(STUBBORN), 1)])
            await heard.log_has(1, "ready")
            executor.cancel(1, 1, "please")
            executor.cancel(1, 1, "now", grace_s=0)
            assert (await heard.end_of(1)).outcome == Cancelled("please")

    asyncio.run(scenario())


def test_closing_stops_what_runs() -> None:
    async def scenario() -> tuple[Done, list[int]]:
        async with commands(grace_s=600) as (executor, heard):
            executor.start([assignment(shell(STUBBORN), 1)])
            pids = pids_in(await heard.log_has(1, "ready"))
            await executor.close(0.1)
            assert executor.running() == set()
            return heard.done[1, 1], pids

    end, pids = asyncio.run(scenario())
    assert end.outcome == Lost(Fault("worker_stopped", "the worker was stopped"))
    assert still_alive(pids, 0) == []
    assert ours() == []


@pytest.mark.parametrize("victim", ["supervisor", "keeper"])
def test_whoever_watches_may_be_killed_and_still_nobody_gets_away(victim: str) -> None:
    async def scenario() -> None:
        async with commands(grace_s=600) as (executor, heard):
            executor.start([assignment(shell(STUBBORN), 1)])
            pids = pids_in(await heard.log_has(1, "ready"))
            [keeper] = keepers()
            [supervisor] = children_of(keeper)
            os.kill({"keeper": keeper, "supervisor": supervisor}[victim], 9)
            outcome = (await heard.end_of(1)).outcome
            assert isinstance(outcome, Lost)
            assert outcome.error.code == "supervisor_died"
            assert still_alive(pids, 2) == []
            executor.start([assignment(shell("echo on we go"), 2)])
            assert (await heard.end_of(2)).log_tail == "on we go\n"

    asyncio.run(scenario())


def test_a_machine_without_room_for_a_supervisor_is_a_failure_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tried again as the job says. A lost attempt is tried again at once: five of them are no time at all."""
    monkeypatch.setattr(programs, "KEEPER", "tests.executors.keeper_without_room")

    async def scenario() -> None:
        async with commands() as (executor, heard):
            for run_id in range(1, 7):
                executor.start([assignment(shell("true"), run_id)])
                outcome = (await heard.end_of(run_id)).outcome
                assert outcome == Failed(Fault("not_started", f"no room for another process: {os.strerror(11)}"))
            executor.start([assignment(shell("echo on we go"), 7)])
            assert (await heard.end_of(7)).log_tail == "on we go\n"

    asyncio.run(scenario())


def test_a_command_that_kills_its_own_supervisor_kills_itself() -> None:
    async def scenario() -> None:
        async with commands() as (executor, heard):
            executor.start(
                [assignment(shell(f"{DAEMON} sleep 0.2; echo ready; sleep 0.3; kill -9 $PPID; sleep 3600"), 1)]
            )
            pids = pids_in(await heard.log_has(1, "ready"))
            assert isinstance((await heard.end_of(1)).outcome, Lost)
            assert still_alive(pids, 2) == []

    asyncio.run(scenario())


def test_a_thousand_commands_leave_nothing_open_and_nobody_behind() -> None:
    """Descriptors of the worker, the keeper and the supervisors; zombies; processes."""

    async def scenario() -> None:
        async with commands() as (executor, heard):

            async def some(first: int, count: int) -> None:
                for at in range(first, first + count, 8):
                    executor.start([assignment(CommandTarget(("true",)), number) for number in range(at, at + 8)])
                    await heard.until(lambda: not executor.running())

            await some(0, 80)
            [keeper] = keepers()
            watched = [os.getpid(), keeper, *children_of(keeper)]
            before = [open_files(pid) for pid in watched]
            await some(1000, 1000)
            assert [open_files(pid) for pid in watched] == before
            assert watched == [os.getpid(), keeper, *children_of(keeper)]
            assert len(watched) == 2 + 8
            assert {end.outcome for end in heard.done.values()} == {Succeeded()}
            assert len(heard.done) == 1080
            assert zombies() == []

    asyncio.run(scenario())
