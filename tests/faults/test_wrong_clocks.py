"""The clock of a node may say what it wants: only the database's counts."""

import asyncio
from contextlib import ExitStack
from time import monotonic

import pytest

from tests.faults import truth
from tests.faults.fleet import until
from tests.faults.inside import JOBS, Shifted, running
from tests.faults.node import quick
from tests.services.postgres import Template

MINUTE_MS, DAY_MS = 60_000, 86_400_000
LOOKAHEAD_MS = 1000


async def work(url: str, shift_ms: int, jump_ms: int = 0) -> tuple[str, truth.Tables, float]:
    """Some seconds of work under a clock that is wrong, and jumps in the middle; rounds per second."""
    clock = Shifted(shift_ms)
    async with running(quick(url, "a"), clock) as node:
        began = monotonic()
        for _ in range(2):
            runs = node.health.counts["runs"]
            await until(lambda runs=runs: node.health.counts["runs"] > runs + len(JOBS))
            clock.ms += jump_ms
        assert node.health.ok
        rate = node.health.rounds / (monotonic() - began)
        tables = await truth.read_postgres(url)
    return f"{shift_ms} ms, jumps {jump_ms} ms", tables, rate


def test_plans_are_exact_whatever_the_node_believes(store_template18: Template) -> None:
    """S0-10, S2-41, S4-6: a day and four minutes off, and jumping; nothing early, nothing lost, no busy loop."""

    async def scenario(urls: list[str]) -> list[tuple[str, truth.Tables, float]]:
        shifts = [(DAY_MS, 0), (-DAY_MS, 0), (4 * MINUTE_MS, 0), (-4 * MINUTE_MS, 0), (0, DAY_MS), (0, -DAY_MS)]
        return await asyncio.gather(*(work(url, *shift) for url, shift in zip(urls, shifts, strict=True)))

    with ExitStack() as stack:
        urls = [stack.enter_context(store_template18.copy()) for _ in range(6)]
        found = asyncio.run(scenario(urls))
    for what, tables, rate in found:
        verdict = truth.judge(tables)
        print(f"\n{what}: {rate:.1f} rounds a second; {verdict}")
        assert verdict.wrong == [], what
        assert rate < 30, what
        for run in tables["runs"]:
            assert run["scheduled_for_ms"] <= run["created_ms"] + LOOKAHEAD_MS, what
            assert run["created_ms"] <= (tables.now_ms or 0), what


def test_shards_go_to_the_node_whose_clock_is_right(store_template18: Template) -> None:
    """S2-41: beside a node with a good clock one that is a day off leaves the shards to it, and planning goes on."""

    async def scenario(url: str) -> None:
        async with running(quick(url, "wrong"), Shifted(DAY_MS)) as wrong:
            await until(lambda: wrong.health.counts["runs"] > len(JOBS))
            async with running(quick(url, "right"), jobs=()) as right:
                await until(lambda: len(right.member.holder.held()) == 16)
                await until(lambda: not wrong.member.holder.held())
                await until(lambda: right.health.counts["runs"] > len(JOBS))
                verdict = truth.judge(await truth.read_postgres(url))
                assert verdict.wrong == []
                assert verdict.events["run_conflict"] == 0

    with store_template18.copy() as url:
        asyncio.run(scenario(url))


@pytest.mark.soak
def test_a_minute_of_jumps(store_template18: Template) -> None:
    async def scenario(url: str) -> tuple[float, truth.Tables]:
        clock = Shifted(0)
        async with running(quick(url, "a"), clock) as node:
            began = monotonic()
            for turn in range(60):
                runs = node.health.counts["runs"]
                await until(lambda runs=runs: node.health.counts["runs"] > runs)
                clock.ms = (DAY_MS, -DAY_MS, 4 * MINUTE_MS, -4 * MINUTE_MS, 0)[turn % 5]
            return node.health.rounds / (monotonic() - began), await truth.read_postgres(url)

    with store_template18.copy() as url:
        rate, tables = asyncio.run(scenario(url))
    assert truth.judge(tables).wrong == []
    assert rate < 30
