"""Suspects: functions of which one has crashed its host or did not stop. Each runs alone until it has come back."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.model.outcome import Failed, Lost, Succeeded, TimedOut
from fleetcron.model.target import PythonTarget
from tests.executors.stage import SUBJECTS, all_at_once, assignment, handler_hosts, module_that_hangs, pid_of, python

STUBBORN = {"grace_s": 0.1, "patience_s": 0.1}  # for those that would use more of it for nothing
_CRASHES = "import os\ndef work(): os._exit(7)"


@pytest.mark.parametrize("name", ["hogs", "waits_in_c"])
@pytest.mark.usefixtures("force_is_short")
def test_who_had_to_be_killed_with_its_host_runs_alone_from_then_on(name: str) -> None:
    """S1-26: what does not stop hurts its neighbours once. Its next attempt is killed alone, however often."""

    async def scenario() -> None:
        subjects = (name, "sleeps", "pid_of")
        async with handler_hosts(*subjects, silence_s=0.5, **STUBBORN) as (hosts, heard):
            await pid_of(hosts, heard, 9)
            hosts.start([assignment(python("sleeps"), 1), assignment(python(name), 2, timeout_s=0.1)])
            assert isinstance((await heard.end_of(2)).outcome, TimedOut)
            assert isinstance((await heard.end_of(1)).outcome, Lost)
            hosts.start([assignment(python("sleeps"), 10)])
            old = await pid_of(hosts, heard, 11)
            for run_id in (20, 21):
                hosts.start([assignment(python(name), run_id, timeout_s=0.1)])
                assert await pid_of(hosts, heard, 30 + run_id) == old  # beside it
                assert isinstance((await heard.end_of(run_id)).outcome, TimedOut)
            assert await pid_of(hosts, heard, 12) == old
            assert hosts.running() == {(10, 1)}  # which nobody has hurt

    asyncio.run(scenario())


@pytest.mark.usefixtures("force_is_short")
def test_a_function_runs_alone_as_soon_as_one_of_its_attempts_does_not_stop() -> None:
    """The host of that one lives on for as long as its neighbours are waited for."""

    async def scenario() -> None:
        async with handler_hosts("waits_in_c", "sleeps", "pid_of", grace_s=0.1, patience_s=30) as (hosts, heard):
            await pid_of(hosts, heard, 9)
            hosts.start([assignment(python("sleeps"), 1), assignment(python("waits_in_c"), 2, timeout_s=0.1)])
            while not hosts._suspects:
                await asyncio.sleep(0.01)
            hosts.start([assignment(python("waits_in_c"), 3, timeout_s=0.1)])
            new = await pid_of(hosts, heard, 10)
            assert isinstance((await heard.end_of(3)).outcome, TimedOut)
            assert await pid_of(hosts, heard, 11) == new
            assert hosts.running() == {(1, 1), (2, 1)}

    asyncio.run(scenario())


def test_who_holds_the_interpreter_is_found_although_others_time_out_before_it(tmp_path: Path) -> None:
    """Of two hosts that did not answer, it was in both."""

    async def scenario() -> None:
        subjects = ("hogs", "sleeps", "sleeps_in_a_thread", "pid_of")
        async with handler_hosts(*subjects, silence_s=0.5, **STUBBORN) as (hosts, heard):
            for at, name in enumerate(("sleeps", "sleeps_in_a_thread")):
                await pid_of(hosts, heard, at)
                begun = tmp_path / name
                hosts.start([assignment(python("hogs"), 10 + at, payload={"begun": str(begun)})])
                while not begun.exists():  # it tells nothing once it holds the interpreter
                    await asyncio.sleep(0.01)
                hosts.start([assignment(python(name), 20 + at, timeout_s=0.1)])
                # Killed a grace, a force and a patience after the ping that it leaves without an answer: 0.7 s, so it
                # is known as silent by then.
                assert isinstance((await heard.end_of(20 + at)).outcome, TimedOut)
                assert isinstance((await heard.end_of(10 + at)).outcome, Lost)
            assert hosts._suspects == {python(name).function for name in ("hogs", "sleeps", "sleeps_in_a_thread")}
            hosts.start([assignment(python("hogs"), 12)])
            new = await pid_of(hosts, heard, 30)
            for at, name in enumerate(("sleeps", "sleeps_in_a_thread")):  # alone, and then among the others again
                hosts.start([assignment(python(name), 40 + at, payload={"seconds": 0.01})])
                slept = json.loads((await heard.end_of(40 + at)).result_json or "")
                assert slept != f"slept in {new}"
                hosts.start([assignment(python(name), 50 + at, payload={"seconds": 0.01})])
                slept = json.loads((await heard.end_of(50 + at)).result_json or "")
                assert slept == f"slept in {new}"
            assert hosts.running() == {(12, 1)}

    asyncio.run(scenario())


def test_after_such_a_crash_each_suspect_runs_alone_until_it_has_come_back() -> None:
    """So the second crash tells who it is, and costs nobody else anything."""

    async def scenario() -> None:
        async with handler_hosts("vanishes", "sleeps", "pid_of", "noop") as (hosts, heard):
            await pid_of(hosts, heard, 9)
            hosts.start([assignment(python(name), at) for at, name in enumerate(("sleeps", "vanishes", "sleeps"))])
            await heard.ends(4)
            hosts.start([assignment(python("sleeps"), 10), assignment(python("vanishes"), 11)])
            hosts.start([assignment(python("sleeps"), 12, payload={"seconds": 0.01}), assignment(python("noop"), 13)])
            guilty = (await heard.end_of(11)).outcome
            assert isinstance(guilty, Failed)
            assert guilty.error.code == "host_died"
            slept = json.loads((await heard.end_of(12)).result_json or "")
            assert (await heard.end_of(13)).outcome == Succeeded()
            assert hosts.running() == {(10, 1)}  # which nobody has hurt
            assert slept != f"slept in {await pid_of(hosts, heard, 14)}"
            hosts.start([assignment(python("sleeps"), 15, payload={"seconds": 0.01})])
            slept = json.loads((await heard.end_of(15)).result_json or "")
            assert slept == f"slept in {await pid_of(hosts, heard, 16)}"  # innocent, and among the others again

    asyncio.run(scenario())


@pytest.mark.usefixtures("turns_are_short")
def test_a_suspect_runs_alone_although_its_import_takes_long(tmp_path: Path) -> None:
    """A host is ready before the import of a slow one is over. It waits for that one, and does not decline it."""
    slow = PythonTarget("shop_that_hangs:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_hangs"), grace_s=0.3)

    async def scenario(go_on: Callable[[], None]) -> None:
        async with handler_hosts("sleeps", config=config, path=tmp_path) as (hosts, heard):
            go_on()
            await hosts.learn([slow])
            hosts.start([assignment(python("sleeps"), 1), assignment(slow, 2)])
            await heard.ends(2)
            hosts.start([assignment(slow, 3)])
            while not any(host.is_ready for host in hosts._singles):
                await asyncio.sleep(0.01)
            go_on()
            await heard.until(lambda: (3, 1) not in hosts.running())
            outcome = heard.done[3, 1].outcome
            assert isinstance(outcome, Failed)  # and nobody else
            assert outcome.error.code == "host_died"

    with module_that_hangs(tmp_path, work=_CRASHES) as go_on:
        asyncio.run(scenario(go_on))


@pytest.mark.usefixtures("turns_are_short")
def test_a_suspect_that_did_not_start_is_a_suspect_still(tmp_path: Path) -> None:
    """Who was declined has not come back. The next attempt gets a host that looks again."""
    slow = PythonTarget("shop_that_hangs:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_hangs"), grace_s=0.3)

    async def scenario(go_on: Callable[[], None]) -> None:
        async with handler_hosts("sleeps", "pid_of", config=config, path=tmp_path) as (hosts, heard):
            hosts._settings = replace(hosts._settings, start_ms=2_000)
            go_on()
            await hosts.learn([slow])
            hosts.start([assignment(python("sleeps"), 1), assignment(slow, 2)])
            await heard.ends(2)
            hosts.start([assignment(slow, 3)])
            await heard.declined(3)
            (tmp_path / "shop_that_hangs.py").write_text(_CRASHES)
            hosts.start([assignment(python("pid_of"), 4), assignment(slow, 3, attempt=2)])
            outcome = (await heard.end_of(3, 2)).outcome
            assert isinstance(outcome, Failed)
            assert (await heard.end_of(4)).outcome == Succeeded()

    with module_that_hangs(tmp_path, work=_CRASHES) as go_on:
        asyncio.run(scenario(go_on))


def test_who_can_only_be_imported_once_is_no_suspect_for_ever(tmp_path: Path) -> None:
    """As one that opens a port in its import: a host of its own cannot have it while another one has."""
    (tmp_path / "shop_for_one.py").write_text(
        "import os, pathlib\n"
        f"mine = pathlib.Path({str(tmp_path / 'taken')!r})\n"
        "if mine.exists() and pathlib.Path('/proc', mine.read_text()).exists(): raise OSError('it is taken')\n"
        "mine.write_text(str(os.getpid()))\n"
        "def work(ctx): return ctx.cancelled.wait(ctx.payload['seconds']) or os.getpid()\n"
    )
    one = PythonTarget("shop_for_one:work")
    config = ExecutorConfig(handlers=("shop_for_one", SUBJECTS), grace_s=0.3)

    async def scenario() -> None:
        async with handler_hosts("vanishes", "pid_of", config=config, path=tmp_path) as (hosts, heard):
            await hosts.learn([one])
            hosts.start([assignment(one, 1, payload={"seconds": 3600}), assignment(python("vanishes"), 2)])
            await heard.ends(2)
            common = await pid_of(hosts, heard, 3)
            while not hosts._fresh()[0].has(one.function):
                await asyncio.sleep(0.01)
            hosts.start([assignment(one, 4, payload={"seconds": 0})])
            assert (await heard.end_of(4)).result_json == str(common)

    asyncio.run(scenario())


def test_all_suspects_run_at_the_same_time_each_in_a_process_of_its_own(tmp_path: Path) -> None:
    """One crash makes a suspect of whoever was there. They hold their slots: they run in them, and do not queue up."""
    (tmp_path / "meeting").mkdir()

    async def scenario() -> None:
        async with handler_hosts("meets_all", "vanishes", slots=9) as (hosts, heard):
            alone = {"parties": 99, "place": str(tmp_path)}
            hosts.start([assignment(python("meets_all"), 20, payload=alone), assignment(python("vanishes"), 21)])
            await heard.ends(2)
            hosts.start(all_at_once(8, tmp_path / "meeting"))
            ends = await heard.ends(10)
            assert len({ends[at, 1].result_json for at in range(8)}) == 8
            while hosts._singles:  # nobody needs them any more
                await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_there_is_an_end_to_hosts_for_suspects_and_who_gets_none_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a slot and a lease it can wait, and others may have room for it."""
    monkeypatch.setattr("fleetcron.executors.handler_hosts._SINGLES", 2)

    async def scenario() -> None:
        async with handler_hosts("sleeps", "vanishes", "noop") as (hosts, heard):
            hosts.start([assignment(python("sleeps"), 1), assignment(python("vanishes"), 2)])
            await heard.ends(2)
            hosts.start([assignment(python("sleeps"), at) for at in (3, 4, 5)])
            reason = "was in a host that ended and has to run alone; all 2 hosts for that are busy"
            assert await heard.declined(5) == f"{SUBJECTS}:sleeps {reason}"
            assert hosts.running() == {(3, 1), (4, 1)}
            hosts.start([assignment(python("noop"), 6)])
            assert (await heard.end_of(6)).outcome == Succeeded()

    asyncio.run(scenario())


def test_a_suspect_whose_new_code_ends_its_process_is_unknown_until_it_is_better(tmp_path: Path) -> None:
    """Its own host dies of it before it is ready. That is no reason to start no others."""
    module = tmp_path / "shop_of_today.py"
    module.write_text(_CRASHES)
    target = PythonTarget("shop_of_today:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_of_today"), grace_s=0.3)

    async def scenario() -> None:
        async with handler_hosts("sleeps", config=config, path=tmp_path) as (hosts, heard):
            await hosts.learn([target])
            hosts.start([assignment(python("sleeps"), 1), assignment(target, 2)])
            await heard.ends(2)
            module.write_text("import os\nos._exit(9)\n")
            hosts.start([assignment(target, 3)])
            await heard.declined(3)
            assert hosts._pause is None
            assert hosts.why_not(target) == "the handler host ended while it was imported"
            module.write_text("def work(): pass\n")
            await hosts.learn([target])
            hosts.start([assignment(target, 3, attempt=2)])
            assert (await heard.end_of(3, 2)).outcome == Succeeded()

    asyncio.run(scenario())
