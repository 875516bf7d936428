"""Python functions that do not stop, hold the interpreter, crash, babble or cannot be imported."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.model.outcome import Failed, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import PythonTarget
from tests.executors.processes import alive
from tests.executors.stage import SUBJECTS, all_at_once, assignment, handler_hosts, module_that_hangs, pid_of, python


@pytest.mark.parametrize("name", ["cleans_up", "sleeps_in_a_thread", "spins"])
def test_a_timeout_ends_a_function_and_only_that_function(name: str) -> None:
    """S1-26: a coroutine is cancelled, a plain function sees the flag, and one that looks at nothing is thrown out."""

    async def scenario() -> None:
        async with handler_hosts(name, "pid_of", "sleeps") as (hosts, heard):
            before = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python(name), 1, timeout_s=0.2), assignment(python("sleeps"), 2)])
            end = await heard.end_of(1)
            assert isinstance(end.outcome, TimedOut)
            assert (end.outcome.error.code, end.outcome.error.text) == ("timeout", "Job timed out after 0.2s")
            assert end.finished_ms - end.started_ms >= 150  # it counts from when the worker sent it
            if name == "cleans_up":
                assert end.log_tail == "cleaned\n"
            assert await pid_of(hosts, heard, 11) == before
            assert hosts.running() == {(2, 1)}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["ignores", "waits_in_c"])
def test_a_function_that_does_not_stop_costs_its_host_but_not_its_neighbours(name: str, tmp_path: Path) -> None:
    """S1-26: the neighbour finishes, new work goes to a new host meanwhile, and then the old host is killed."""

    async def scenario() -> None:
        async with handler_hosts(name, "pid_of", "meets_all", "leaves_a_daemon", patience_s=30) as (hosts, heard):
            old = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python("leaves_a_daemon"), 11)])
            daemon = int((await heard.end_of(11)).result_json or 0)
            hosts.start([assignment(python(name), 1, timeout_s=0.1)])
            hosts.start([assignment(python("meets_all"), 2, payload={"parties": 2, "place": str(tmp_path)})])
            new, number = old, 20
            while new == old:  # until the old one is retired
                new, number = await pid_of(hosts, heard, number), number + 1
                await asyncio.sleep(0.02)
            assert (1, 1) not in heard.done  # it still runs, so its retry must not
            assert alive(old)
            (tmp_path / "me").touch()
            assert json.loads((await heard.end_of(2)).result_json or "") == old
            end = await heard.end_of(1)
            assert end.outcome == TimedOut(Fault("timeout", "Job timed out after 0.1s"))
            assert not alive(old)
            assert not alive(daemon)
            assert await pid_of(hosts, heard, 999_999) == new

    asyncio.run(scenario())


def test_neighbours_that_take_too_long_are_lost_with_the_host() -> None:
    async def scenario() -> None:
        async with handler_hosts("waits_in_c", "sleeps", patience_s=0.3) as (hosts, heard):
            hosts.start([assignment(python("waits_in_c"), 1, timeout_s=0.1), assignment(python("sleeps"), 2)])
            assert isinstance((await heard.end_of(1)).outcome, TimedOut)
            neighbour = (await heard.end_of(2)).outcome
            assert isinstance(neighbour, Lost)
            assert neighbour.error.code == "host_replaced"
            assert "nightly-report (run 1) does not stop" in neighbour.error.text

    asyncio.run(scenario())


def test_a_regular_expression_that_holds_the_interpreter_does_not_hold_the_worker() -> None:
    """The host does not answer: new work goes to another one long before the timeout, and the timeout ends it."""

    async def scenario() -> None:
        async with handler_hosts("hogs", "pid_of", silence_s=0.5, patience_s=0) as (hosts, heard):
            old = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python("hogs"), 1, timeout_s=2)])
            new, caught = None, 20
            while new is None:  # what came too early waits with it
                try:
                    new = await asyncio.wait_for(pid_of(hosts, heard, caught), 0.3)
                except TimeoutError:
                    caught += 1
            assert new != old
            assert (1, 1) not in heard.done
            assert isinstance((await heard.end_of(1)).outcome, TimedOut)
            assert not alive(old)
            for number in range(20, caught):
                outcome = (await heard.end_of(number)).outcome
                assert outcome == Succeeded() or (isinstance(outcome, Lost) and outcome.error.code == "host_replaced")

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["hogs", "waits_in_c"])
def test_who_had_to_be_killed_with_its_host_runs_alone_from_then_on(name: str) -> None:
    """S1-26: what does not stop hurts its neighbours once. Its next attempt is killed alone, however often."""

    async def scenario() -> None:
        async with handler_hosts(name, "sleeps", "pid_of", silence_s=0.5, patience_s=0.3) as (hosts, heard):
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


def test_a_function_runs_alone_as_soon_as_one_of_its_attempts_does_not_stop() -> None:
    """The host of that one lives on for as long as its neighbours are waited for."""

    async def scenario() -> None:
        async with handler_hosts("waits_in_c", "sleeps", "pid_of", patience_s=30) as (hosts, heard):
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


def test_who_holds_the_interpreter_is_found_although_others_time_out_before_it() -> None:
    """Of two hosts that did not answer, it was in both."""

    async def scenario() -> None:
        subjects = ("hogs", "sleeps", "sleeps_in_a_thread", "pid_of")
        async with handler_hosts(*subjects, silence_s=0.5, patience_s=0.3) as (hosts, heard):
            for at, name in enumerate(("sleeps", "sleeps_in_a_thread")):
                await pid_of(hosts, heard, at)
                hosts.start([assignment(python("hogs"), 10 + at), assignment(python(name), 20 + at, timeout_s=0.1)])
                assert isinstance((await heard.end_of(20 + at)).outcome, TimedOut)
                assert isinstance((await heard.end_of(10 + at)).outcome, Lost)
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


def test_a_crash_is_a_fault_of_whoever_was_alone_and_the_worker_goes_on() -> None:
    async def scenario() -> None:
        async with handler_hosts("crashes", "pid_of") as (hosts, heard):
            old = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python("crashes"), 1)])
            outcome = (await heard.end_of(1)).outcome
            assert isinstance(outcome, Failed)
            assert outcome.error.code == "host_died"
            assert "signal 11 (SIGSEGV)" in outcome.error.text
            assert "Segmentation fault" in (outcome.error.trace or "")
            assert await pid_of(hosts, heard, 11) != old

    asyncio.run(scenario())


def test_a_crash_among_others_is_nobodys_fault() -> None:
    async def scenario() -> None:
        async with handler_hosts("vanishes", "sleeps") as (hosts, heard):
            hosts.start([assignment(python("sleeps"), 1), assignment(python("vanishes"), 2)])
            for outcome in ((await heard.end_of(1)).outcome, (await heard.end_of(2)).outcome):
                assert isinstance(outcome, Lost)
                assert (outcome.error.code, outcome.error.text) == (
                    "host_died",
                    "its handler host ended: exit code 7",
                )
            assert hosts.running() == set()

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


_CRASHES = "import os\ndef work(): os._exit(7)"


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


def test_a_suspect_that_did_not_start_is_a_suspect_still(tmp_path: Path) -> None:
    """Who was declined has not come back. The next attempt gets a host that looks again."""
    slow = PythonTarget("shop_that_hangs:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_hangs"), grace_s=0.3)

    async def scenario(go_on: Callable[[], None]) -> None:
        async with handler_hosts("sleeps", "pid_of", config=config, path=tmp_path) as (hosts, heard):
            hosts._settings = replace(hosts._settings, start_ms=3_000)
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


def test_a_host_that_speaks_nonsense_is_replaced() -> None:
    async def scenario() -> None:
        async with handler_hosts("babbles", "noop") as (hosts, heard):
            hosts.start([assignment(python("babbles"), 1)])
            outcome = (await heard.end_of(1)).outcome
            assert isinstance(outcome, Failed)
            assert outcome.error.code == "host_died"
            assert "it spoke nonsense" in outcome.error.text
            hosts.start([assignment(python("noop"), 2)])
            assert (await heard.end_of(2)).outcome == Succeeded()

    asyncio.run(scenario())


def test_a_module_that_ends_its_process_is_an_unknown_handler() -> None:
    """And only that one: whoever is asked for at the same time has a reason of its own, or is there."""
    dying, failing = "tests.executors.subjects_that_die", "tests.executors.subjects_that_fail"

    async def scenario() -> None:
        config = ExecutorConfig(handlers=(SUBJECTS, dying, failing))
        async with handler_hosts(config=config) as (hosts, heard):
            dead = [PythonTarget(f"{dying}:f"), PythonTarget(f"{dying}:g")]
            fails = PythonTarget(f"{failing}:f")
            await hosts.learn([*dead, fails, python("noop")])
            for target in dead:
                assert hosts.why_not(target) == "the handler host ended while it was imported"
            assert "the database is away" in (hosts.why_not(fails) or "")
            hosts.start([assignment(python("noop"), 1)])
            assert (await heard.end_of(1)).outcome == Succeeded()

    asyncio.run(scenario())


def test_an_import_beside_a_crash_is_looked_for_again(tmp_path: Path) -> None:
    """It was the function that ran just then: nobody who was only imported at that moment is unknown for it."""
    target = PythonTarget("shop_that_hangs:work")

    async def scenario(go_on: Callable[[], None]) -> None:
        config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_hangs"))
        async with handler_hosts("vanishes", config=config, path=tmp_path) as (hosts, heard):
            learning = asyncio.create_task(hosts.learn([target]))
            [host] = hosts._hosts
            while not host._importing:
                await asyncio.sleep(0)
            hosts.start([assignment(python("vanishes"), 1)])
            assert isinstance((await heard.end_of(1)).outcome, Lost)  # nobody knows yet
            while not learning.done():  # alone first, and then where it is to run
                go_on()
                await asyncio.sleep(0.01)
            assert hosts.why_not(target) is None
            hosts.start([assignment(target, 2)])
            assert (await heard.end_of(2)).outcome == Succeeded()

    with module_that_hangs(tmp_path) as go_on:
        asyncio.run(scenario(go_on))


def test_an_import_that_ends_busy_hosts_is_believed_to_do_it_the_second_time() -> None:
    dies = PythonTarget("tests.executors.subjects_that_die:f")

    async def scenario() -> None:
        config = ExecutorConfig(handlers=(SUBJECTS, "tests.executors.subjects_that_die"), grace_s=0.3, patience_s=0.5)
        async with handler_hosts("sleeps", "noop", config=config) as (hosts, heard):
            hosts.start([assignment(python("sleeps"), 1)])
            await hosts.learn([dies])
            assert hosts.why_not(dies) == "the handler host ended while it was imported"
            assert isinstance((await heard.end_of(1)).outcome, Lost)  # and not its fault
            hosts.start([assignment(python("noop"), 2)])
            assert (await heard.end_of(2)).outcome == Succeeded()

    asyncio.run(scenario())


def test_a_module_that_ends_its_process_does_it_to_others_once(tmp_path: Path) -> None:
    """It is looked for again and again, as its new code may be better: where nothing runs, until it is."""
    module = tmp_path / "shop_that_dies.py"
    module.write_text("import os\nos._exit(9)\n")
    dies, beside = PythonTarget("shop_that_dies:f"), PythonTarget("shop_that_dies:g")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_dies"), grace_s=0.3, patience_s=0.5)

    async def scenario() -> None:
        async with handler_hosts("sleeps", "cleans_up", "noop", config=config, path=tmp_path) as (hosts, heard):
            hosts.start([assignment(python("sleeps"), 1)])
            await hosts.learn([dies])
            assert isinstance((await heard.end_of(1)).outcome, Lost)
            hosts.start([assignment(python("cleans_up"), 2), assignment(python("noop"), 3)])
            await heard.end_of(3)
            for target in (dies, beside, dies):
                await hosts.learn([target])
                assert hosts.why_not(target) == "the handler host ended while it was imported"
            module.write_text("def f(): pass\n")
            await hosts.learn([dies])
            hosts.start([assignment(dies, 4)])
            assert (await heard.end_of(4)).outcome == Succeeded()
            assert hosts.running() == {(2, 1)}  # which nobody has hurt

    asyncio.run(scenario())


def test_a_module_that_is_harmless_only_when_it_is_alone_is_not_tried_for_ever(tmp_path: Path) -> None:
    (tmp_path / "shop_alone.py").write_text(f"import os, sys\nif {SUBJECTS!r} in sys.modules: os._exit(9)\n")
    target = PythonTarget("shop_alone:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_alone"), grace_s=0.3, patience_s=0.5)

    async def scenario() -> None:
        async with handler_hosts("cleans_up", "noop", config=config, path=tmp_path) as (hosts, heard):
            for run_id in range(4):  # in hosts with and without work
                await hosts.learn([target])
                hosts.start([assignment(python("noop"), run_id)])
                assert (await heard.end_of(run_id)).outcome == Succeeded()
            hosts.start([assignment(python("cleans_up"), 10)])
            await hosts.learn([target])
            assert hosts.why_not(target) == "the handler host ended while it was imported"
            assert hosts.running() == {(10, 1)}

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


def test_whoever_is_looked_for_sits_out_the_pause_after_a_failed_start() -> None:
    """The named ones are imported before a host is ready: one of them that ends it hides the others for a second."""
    dies = PythonTarget("tests.executors.subjects_that_die:f")

    async def scenario() -> None:
        named = (dies.function, python("noop").function)
        async with handler_hosts(config=ExecutorConfig(handlers=named)) as (hosts, heard):
            await hosts.learn([dies])
            assert hosts.why_not(dies) == "the handler host ended while it was imported"
            await hosts.learn([python("noop")])
            assert hosts.why_not(python("noop")) is None
            hosts.start([assignment(python("noop"), 1)])
            assert (await heard.end_of(1)).outcome == Succeeded()

    asyncio.run(scenario())


def test_a_host_that_cannot_start_is_said_and_not_tried_in_a_loop() -> None:
    dying = "tests.executors.subjects_that_die"

    async def scenario() -> None:
        async with handler_hosts(config=ExecutorConfig(handlers=(f"{dying}:f",))) as (hosts, heard):
            hosts.start([assignment(PythonTarget(f"{dying}:f"), 1)])
            outcome = (await heard.end_of(1)).outcome
            assert isinstance(outcome, Lost)
            assert outcome.error == Fault("host_start_failed", "the handler host could not be started: exit code 9")
            await hosts.learn([PythonTarget(f"{dying}:f")])  # not before the pause is over
            assert hosts._hosts == []

    asyncio.run(scenario())
