"""The states of runs and jobs: every move that is legal, and no other."""

from itertools import product

import pytest

from fleetcron.errors import RefusedError
from fleetcron.model.states import JOB_MOVES, JOB_STATES, MOVES, RunState, check_job_move, check_move, is_final

RUN_MOVES = """
planned     running waiting skipped expired merged cancelled
waiting     planned skipped expired merged cancelled
running     succeeded retrying dispatched dead cancelled
retrying    running cancelled
dispatched  running succeeded retrying dead cancelled
dead        planned
cancelled   planned
succeeded
skipped
expired
merged
"""


def test_runs_move_as_the_table_says_and_no_other_way() -> None:
    """S0-26: pending is planned, completed succeeded, failed retrying or dead; the others have their names."""
    legal = {(line.split()[0], new) for line in RUN_MOVES.strip().splitlines() for new in line.split()[1:]}
    for old, new in product(RunState, RunState):
        if (str(old), str(new)) in legal:
            check_move(old, new)
            continue
        with pytest.raises(RefusedError, match=f"a run that is {old} cannot become {new}"):
            check_move(old, new)
    assert {(str(old), str(new)) for old, ways in MOVES.items() for new in ways} == legal
    assert set(MOVES) == set(RunState)


def test_a_run_is_final_if_only_a_replay_can_open_it() -> None:
    for state in RunState:
        assert is_final(state) == (MOVES[state] <= {RunState.PLANNED} and state is not RunState.WAITING)


def test_every_run_can_come_to_an_end() -> None:
    ending = {state for state in RunState if state.is_final}
    for _ in RunState:
        ending |= {state for state, ways in MOVES.items() if ways & ending}
    assert ending == set(RunState)


def test_jobs_move_as_the_table_says_and_no_other_way() -> None:
    legal = {
        ("active", "paused"), ("active", "cancelled"), ("active", "finished"), ("paused", "active"),
        ("paused", "cancelled"), ("finished", "active"), ("finished", "cancelled"),
    }  # fmt: skip
    assert {(old, new) for old, ways in JOB_MOVES.items() for new in ways} == legal
    for old, new in set(product(JOB_STATES, JOB_STATES)) - legal:
        with pytest.raises(RefusedError, match=f"a job that is {old} cannot become {new}"):
            check_job_move(old, new)
    for old, new in legal:
        check_job_move(old, new)
