"""How handler hosts find functions: what they know, what is new, and imports that hang."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fleetcron.config import ExecutorConfig
from fleetcron.model.outcome import Succeeded
from fleetcron.model.target import PythonTarget
from tests.executors.stage import (
    PATIENCE_S,
    SUBJECTS,
    all_at_once,
    assignment,
    handler_hosts,
    module_that_hangs,
    python,
)


def test_what_one_host_has_learned_the_others_learn_too(tmp_path: Path) -> None:
    """A function that is asked for when several hosts run already: none of its runs is declined."""

    async def scenario() -> None:
        async with handler_hosts("meets_all", slots=4, hosts=2) as (hosts, heard):
            hosts.start(all_at_once(4, tmp_path))
            assert len({end.result_json for end in (await heard.ends(4)).values()}) == 2
            await hosts.learn([python("noop")])
            hosts.start([assignment(python("noop"), at) for at in range(10, 50)])
            ends = await heard.ends(44)
            assert {end.outcome for end in ends.values()} == {Succeeded()}

    asyncio.run(scenario())


def test_new_code_is_found_although_a_host_has_the_old_one(tmp_path: Path) -> None:
    """Python imports a module once: only a new process can see what was written since. What runs may finish."""
    module = tmp_path / "shop_of_today.py"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    module.write_text(f"import os\ndef old():\n    open({str(pipe)!r}).readline()\n    return os.getpid()\n")
    old, new = (PythonTarget(f"shop_of_today:{name}") for name in ("old", "new"))
    config = ExecutorConfig(handlers=("shop_of_today",))

    async def scenario() -> None:
        async with handler_hosts(config=config, path=tmp_path) as (hosts, heard):
            await hosts.learn([old, new])
            assert hosts.knows(old)
            assert hosts.why_not(new) == "shop_of_today has no function new"
            host = hosts._hosts[0]
            await hosts.learn([new])
            assert hosts._hosts == [host]  # nothing has changed, so nothing is to be had from a new process
            hosts.start([assignment(old, 1)])
            module.write_text("import os\ndef old(): return 'new'\ndef new(): return os.getpid()\n")
            await hosts.learn([new])
            assert hosts.knows(new), hosts.why_not(new)
            hosts.start([assignment(new, 2), assignment(old, 3)])
            assert (await heard.end_of(3)).result_json == '"new"'
            assert (1, 1) not in heard.done
            with pipe.open("w") as end:
                end.write("\n")
            assert (await heard.end_of(1)).result_json != (await heard.end_of(2)).result_json
            assert {end.outcome for end in heard.done.values()} == {Succeeded()}

    asyncio.run(scenario())


def test_a_module_that_comes_later_is_found(tmp_path: Path) -> None:
    target = PythonTarget("shop_of_tomorrow:late")

    async def scenario() -> None:
        config = ExecutorConfig(handlers=("shop_of_tomorrow",))
        async with handler_hosts(config=config, path=tmp_path / "shop") as (hosts, heard):
            await hosts.learn([target])
            assert "No module named 'shop_of_tomorrow'" in (hosts.why_not(target) or "")
            (tmp_path / "shop").mkdir()
            (tmp_path / "shop" / "shop_of_tomorrow.py").write_text("def late(): pass\n")
            await hosts.learn([target])
            hosts.start([assignment(target, 1)])
            assert (await heard.end_of(1)).outcome == Succeeded()

    asyncio.run(scenario())


def test_what_one_host_has_is_there_whatever_another_one_says(tmp_path: Path) -> None:
    """The second host cannot import it, as when its license is for one process: the work goes to the first, and waits
    there while it is busy (so each takes a moment)."""
    (tmp_path / "shop_for_one.py").write_text(
        "import os, time, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'taken')!r}).touch(exist_ok=False)\n"
        "def work(): time.sleep(0.1); return os.getpid()\n"
    )
    one = PythonTarget("shop_for_one:work")
    config = ExecutorConfig(handlers=("shop_for_one", SUBJECTS), hosts=2)
    (tmp_path / "meeting").mkdir()

    async def scenario() -> None:
        async with handler_hosts("meets_all", config=config, path=tmp_path, slots=2) as (hosts, heard):
            await hosts.learn([one])
            hosts.start(all_at_once(2, tmp_path / "meeting"))
            both = {end.result_json for end in (await heard.ends(2)).values()}
            assert len(both) == 2
            assert hosts.knows(one)
            hosts.start([assignment(one, at) for at in range(3, 7)])
            works = {(await heard.end_of(at)).result_json for at in range(3, 7)}
            assert len(works) == 1
            assert works <= both
            assert {end.outcome for end in heard.done.values()} == {Succeeded()}

    asyncio.run(scenario())


def shop(place: Path, *handlers: str) -> tuple[ExecutorConfig, list[PythonTarget]]:
    """One module that hangs in its import, one beside it, and one that is not there."""
    (place / "shop_z.py").write_text("def work(): pass\n")
    targets = [PythonTarget(f"{name}:work") for name in ("shop_that_hangs", "shop_z", "shop_nobody_has")]
    return ExecutorConfig(handlers=(*handlers, "shop_z", "shop_nobody_has")), targets


@pytest.mark.parametrize("allowed", ["shop_that_hangs", "shop_that_hangs:work"])
@pytest.mark.usefixtures("turns_are_short")
def test_an_import_that_hangs_keeps_only_its_own_functions_waiting(allowed: str, tmp_path: Path) -> None:
    """They are asked for together. A function that the list names is imported when a host starts, too."""
    config, [hangs, beside, gone] = shop(tmp_path, allowed)

    async def scenario(go_on: Callable[[], None]) -> None:
        async with handler_hosts(config=config, path=tmp_path) as (hosts, heard), asyncio.timeout(PATIENCE_S / 2):
            learning = asyncio.create_task(hosts.learn([hangs, beside, gone]))
            while "cannot be imported: ModuleNotFoundError" not in (hosts.why_not(gone) or ""):
                await asyncio.sleep(0.01)
            await hosts.learn([beside])
            hosts.start([assignment(beside, 1)])
            assert (await heard.end_of(1)).outcome == Succeeded()
            assert not learning.done()
            go_on()
            await learning
            hosts.start([assignment(hangs, 2)])
            assert (await heard.end_of(2)).outcome == Succeeded()
            assert len(hosts._hosts) == 1

    with module_that_hangs(tmp_path) as go_on:
        asyncio.run(scenario(go_on))


@pytest.mark.usefixtures("turns_are_short")
def test_an_import_that_hangs_for_too_long_is_an_unknown_handler(tmp_path: Path) -> None:
    """The reason is its own. The others have theirs, and its host goes on to be used."""
    config, [hangs, beside, gone] = shop(tmp_path, "shop_that_hangs")

    async def scenario(go_on: Callable[[], None]) -> None:
        async with handler_hosts(config=config, path=tmp_path) as (hosts, heard):
            hosts._settings = replace(hosts._settings, start_ms=2_000)
            await hosts.learn([hangs, beside, gone])
            assert hosts.why_not(hangs) == "its import was not over within 2 s"
            assert hosts.why_not(beside) is None
            assert "cannot be imported: ModuleNotFoundError" in (hosts.why_not(gone) or "")
            await hosts.learn([hangs])  # which is not begun again
            hosts.start([assignment(beside, 1)])
            assert (await heard.end_of(1)).outcome == Succeeded()
            go_on()
            while not hosts.knows(hangs):  # nobody has to ask again
                await asyncio.sleep(0.01)
            hosts.start([assignment(hangs, 2)])
            assert (await heard.end_of(2)).outcome == Succeeded()
            assert len(hosts._hosts) == 1

    with module_that_hangs(tmp_path) as go_on:
        asyncio.run(scenario(go_on))


@pytest.mark.usefixtures("turns_are_short")
def test_a_run_whose_import_hangs_in_the_next_host_is_declined(tmp_path: Path) -> None:
    """The function was there, its host has ended, and the code of now hangs: its run does not wait for ever."""
    config, [hangs, *_] = shop(tmp_path, SUBJECTS, "shop_that_hangs")
    (tmp_path / "shop_that_hangs.py").write_text("def work(): pass\n")

    async def scenario() -> None:
        async with handler_hosts("vanishes", config=config, path=tmp_path) as (hosts, heard):
            hosts._settings = replace(hosts._settings, start_ms=2_000)
            await hosts.learn([hangs])
            assert hosts.knows(hangs)
            with module_that_hangs(tmp_path) as go_on:
                hosts.start([assignment(python("vanishes"), 1)])
                await heard.end_of(1)
                hosts.start([assignment(hangs, 2)])
                assert "is not loaded here" in await heard.declined(2)
                assert hosts.running() == set()
                assert hosts.why_not(hangs) == "its import was not over within 2 s"
                go_on()
                while not hosts.knows(hangs):
                    await asyncio.sleep(0.01)
                hosts.start([assignment(hangs, 3)])
                assert (await heard.end_of(3)).outcome == Succeeded()

    asyncio.run(scenario())


def test_modules_that_import_each_other_are_not_begun_at_once(tmp_path: Path) -> None:
    """In two threads each would hold what the other needs, and Python gives one of them half a module."""
    (tmp_path / "ring_a.py").write_text("import time\ntime.sleep(0.2)\ndef a(): pass\nfrom ring_b import b\n")
    (tmp_path / "ring_b.py").write_text("from ring_a import a\ndef b(): pass\n")
    targets = [PythonTarget("ring_a:a"), PythonTarget("ring_b:b")]

    async def scenario() -> None:
        config = ExecutorConfig(handlers=("ring_a", "ring_b"))
        async with handler_hosts(config=config, path=tmp_path) as (hosts, _):
            await hosts.learn(targets)
            assert [hosts.why_not(target) for target in targets] == [None, None]

    asyncio.run(scenario())
