"""SQLite and PostgreSQL in lock step: whatever is done to both, they answer the same and keep the same rows.

Many statements have two texts, one for each engine, and the simulator proves only SQLite's. Here both are moved by the
same hand, through the verbs of the store and the real policies, and after each step every table is compared
(`rows_alike.py` says what may differ, and why).
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.proof.drawn import MOVES, Dice, Move
from tests.proof.pair import Pair, opened_pair
from tests.services.postgres import Template
from tests.soak.rounds import Soak, Tally

EXAMPLES: Final = 500  # of the long suite
A_ROUND: Final = 50
STEPS: Final = 50
SETS: Final = 12  # of five stories, at most
NUMBERS: Final = st.integers(0, 2**32)
WEIGHTED: Final = [name for name, times in MOVES.items() for _ in range(times)]

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


class LockStep(RuleBasedStateMachine):
    """Hypothesis draws which move comes next, and a number from which everything about it follows; when a story fails
    it leaves out every move that is not needed for that."""

    def __init__(self, runner: asyncio.Runner, pair: Pair) -> None:
        super().__init__()
        self._runner, self._pair = runner, pair
        runner.run(pair.begin())

    @initialize(number=NUMBERS)
    def opens(self, number: int) -> None:
        for move in Dice(number).opening():
            self._make(move)

    @rule(name=st.sampled_from(WEIGHTED), number=NUMBERS)
    def goes_on(self, name: str, number: int) -> None:
        self._make(Dice(number).move(name))
        self._pair.done["moves"] += 1

    def _make(self, move: Move) -> None:
        self._runner.run(self._pair.make(move))

    def teardown(self) -> None:
        self._pair.end()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


def in_lock_step(runner: asyncio.Runner, postgres_url: str, number: int, examples: int, steps: int) -> Counter[str]:
    """The stories of this number. What has happened in them."""
    opening = opened_pair(postgres_url)
    pair = runner.run(opening.__aenter__())
    try:
        run_state_machine_as_test(
            seed(number)(lambda: LockStep(runner, pair)),  # type: ignore[arg-type]
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps + 1,  # the opening is one
                deadline=None,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        runner.run(opening.__aexit__(None, None, None))
    print(f"\n{dict(sorted(pair.done.items()))}")
    return pair.done


@pytest.mark.timeout(900)  # a story that fails is told again and again, until it is short
def test_both_stores_say_and_keep_the_same(runner: asyncio.Runner, store_template18: Template) -> None:
    """I12, S4-38: the bounded share. Five stories, and more while something has not happened in them: Hypothesis draws
    numbers that stand in our sources, too, so any change of those is a change of the stories."""
    done: Counter[str] = Counter()
    for number in range(SETS):
        with store_template18.copy() as url:
            done += in_lock_step(runner, url, number, 5, STEPS)
        if all(done[what] for what in OFTEN):
            break
    assert [what for what in OFTEN if not done[what]] == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_both_stores_say_and_keep_the_same_for_long(
    runner: asyncio.Runner, store_template18: Template, soak: Soak
) -> None:
    goal = {"story": EXAMPLES, "move": EXAMPLES * STEPS}
    suite = soak.suite("both stores in lock step", "both", goal=goal, seed=1000)
    for number in suite.rounds(EXAMPLES // A_ROUND + 1):
        with store_template18.copy() as url:
            done = in_lock_step(runner, url, suite.seed + number, A_ROUND, STEPS)
        runs = sum(many for what, many in done.items() if what.startswith("run "))
        attempts = sum(many for what, many in done.items() if what.startswith("attempt "))
        suite.over(
            {"story": done["stories"], "move": done["moves"]}, Tally(done + Counter(runs=runs, attempts=attempts))
        )
    suite.check()
    assert [what for what in (*OFTEN, *RARELY) if not suite.counted()[what]] == []
