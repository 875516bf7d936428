"""Python functions that do not stop, hold the interpreter, crash, babble or cannot be imported."""

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.model.outcome import Failed, Fault, Lost, Succeeded, TimedOut
from fleetcron.model.target import PythonTarget
from tests.executors.processes import alive
from tests.executors.stage import SUBJECTS, assignment, handler_hosts, module_that_hangs, pid_of, python


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
@pytest.mark.usefixtures("force_is_short")
def test_a_function_that_does_not_stop_costs_its_host_but_not_its_neighbours(name: str, tmp_path: Path) -> None:
    """S1-26: the neighbour finishes, new work goes to a new host meanwhile, and then the old host is killed."""

    async def scenario() -> None:
        async with handler_hosts(name, "pid_of", "meets_all", "leaves_a_daemon", grace_s=0.1, patience_s=30) as (
            hosts,
            heard,
        ):
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


@pytest.mark.usefixtures("force_is_short")
def test_neighbours_that_take_too_long_are_lost_with_the_host() -> None:
    async def scenario() -> None:
        async with handler_hosts("waits_in_c", "sleeps", grace_s=0.1, patience_s=0.1) as (hosts, heard):
            hosts.start([assignment(python("waits_in_c"), 1, timeout_s=0.1), assignment(python("sleeps"), 2)])
            assert isinstance((await heard.end_of(1)).outcome, TimedOut)
            neighbour = (await heard.end_of(2)).outcome
            assert isinstance(neighbour, Lost)
            assert neighbour.error.code == "host_replaced"
            assert "nightly-report (run 1) does not stop" in neighbour.error.text

    asyncio.run(scenario())


@pytest.mark.usefixtures("force_is_short")
def test_a_regular_expression_that_holds_the_interpreter_does_not_hold_the_worker() -> None:
    """The host does not answer: new work goes to another one long before the timeout, and the timeout ends it."""

    async def scenario() -> None:
        async with handler_hosts("hogs", "pid_of", grace_s=0.1, silence_s=0.5, patience_s=0) as (hosts, heard):
            old = await pid_of(hosts, heard, 10)
            hosts.start([assignment(python("hogs"), 1, timeout_s=1.5)])
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


@pytest.mark.usefixtures("turns_are_short")
def test_a_host_on_trial_takes_no_work_so_what_waits_is_told_that_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ready, and its import hangs. The machine has no room for another process."""
    slow = PythonTarget("shop_that_hangs:work")
    config = ExecutorConfig(handlers=(SUBJECTS, "shop_that_hangs"), grace_s=0.3)

    def no_room(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    async def scenario() -> None:
        async with handler_hosts(config=config, path=tmp_path) as (hosts, heard):
            hosts._doubted.add(slow.function)
            looking = asyncio.create_task(hosts.learn([slow]))
            while not any(host.is_ready for host in hosts._trials):
                await asyncio.sleep(0.01)
            with monkeypatch.context() as machine:
                machine.setattr("fleetcron.executors.handler_hosts.HandlerHost", no_room)
                hosts.start([assignment(python("noop"), 1)])
                outcome = (await heard.end_of(1)).outcome
            why = "the handler host could not be started: no room for another process: Resource temporarily unavailable"
            assert outcome == Lost(Fault("host_start_failed", why))
            looking.cancel()

    with module_that_hangs(tmp_path):
        asyncio.run(scenario())
