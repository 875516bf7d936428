"""SQLite and PostgreSQL in lock step: whatever is done to both, they answer the same and keep the same rows.

Many statements have two texts, one for each engine, and the simulator proves only SQLite's. Here both are moved by the
same hand, through the verbs of the store and the real policies, and after each step every table is compared
(`rows_alike.py` says what may differ, and why).
"""

import asyncio
from collections import Counter
from typing import Final

import pytest

from tests.proof.drawn import Dice, Move
from tests.proof.pair import opened_pair, shortened

pytestmark = pytest.mark.soak  # not yet bounded for the short run

# What must have happened, so that nobody compares empty tables: in any share, and in a long one.
OFTEN: Final = (
    "run succeeded", "run dead", "run skipped", "run merged", "run cancelled", "attempt failed", "attempt lost",
    "attempt snoozed", "run_replayed", "worker_lost", "ledger", "parked", "stands for others", "waits for key",
)  # fmt: skip
RARELY: Final = (
    "run expired", "attempt timed_out", "attempt cancelled", "runs_backfilled", "ledger_superseded", "run_discarded",
    "finish_refused", "runs_withdrawn", "job_finished", "control_released", "waits for tenant", "waits for paused",
    "waits for quota_tenant", "waits for quota_type", "waits for rate", "waits for upstream", "waits for handler",
)  # fmt: skip


def told_in_lock_step(postgres_url: str, numbers: range, steps: int) -> Counter[str]:
    """The stories of these numbers. What has happened in them."""

    async def tell() -> Counter[str]:
        async with opened_pair(postgres_url) as pair:

            async def fails(story: list[Move]) -> Exception | None:
                try:
                    await pair.play(story)
                except Exception as error:
                    return error
                return None

            for number in numbers:
                story = Dice(number).story(steps)
                if await fails(story) is not None:
                    short = await shortened(story, fails)
                    text = "\n".join(map(str, short))
                    raise AssertionError(f"story {number}:\n{text}") from await fails(short)
            return pair.done

    done = asyncio.run(tell())
    print(f"\n{dict(sorted(done.items()))}")
    return done


@pytest.mark.timeout(600)  # a story that fails is told again and again, until it is short
def test_both_stores_say_and_keep_the_same(postgres18_url: str) -> None:
    """I12, S4-38: the bounded share."""
    done = told_in_lock_step(postgres18_url, range(12), 60)
    assert [what for what in OFTEN if not done[what]] == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(6))
def test_both_stores_say_and_keep_the_same_for_long(postgres18_url: str, part: int) -> None:
    done = told_in_lock_step(postgres18_url, range(1_000 + part * 100, 1_100 + part * 100), 60)
    assert [what for what in (*OFTEN, *RARELY) if not done[what]] == []
