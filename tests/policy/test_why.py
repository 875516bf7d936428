"""Why a run stands where it stands: every state and every gate gives one sentence that names what is missing.

tests/store/check_attempts.py builds the same situations with the real verbs; here are the ones that are hard to meet.
"""

from dataclasses import replace
from typing import get_args

import pytest

from fleetcron.model.control import Switched
from fleetcron.model.queued import Control, Gate, Queued
from fleetcron.model.run import Run, RunLine, Waiting
from fleetcron.model.situation import KeyHolder, PoolWorker, Situation, Used
from fleetcron.model.states import RunState
from fleetcron.model.upstream import Upstream
from fleetcron.policy.why import why
from fleetcron.times.durations import rough_text

NOW = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC
RUN = Run(7, "0197", NOW, NOW, NOW - 60_000, None, None, 1, 1, 3, "tick", "live", RunState.PLANNED)
LINE = RunLine("acme", "orders", "reports", RUN)
QUEUED = Queued(
    7, "0197", "acme", "reports", "sync", "live", "tick", 0, 0, NOW, NOW, None, "skip", "j:0197", 1, "command", False,
    0, 0, 0, 0, False,
)  # fmt: skip
N1, N2 = PoolWorker("n1", 4, {}), PoolWorker("n2", 2, {"command": "its settings forbid it"})
SERVED = Situation(NOW + 5000, LINE, QUEUED, (N1,))


def in_state(state: RunState, **fields: object) -> RunLine:
    return replace(LINE, run=replace(RUN, state=state, **fields))  # type: ignore[arg-type]


def waiting(gate: str, key: str, **facts: object) -> str:
    line = replace(in_state(RunState.WAITING), waiting=Waiting(gate, key, NOW, None))
    return why(replace(SERVED, line=line, **facts))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_sentence(state: RunState) -> None:
    line = replace(in_state(state, attempt=1), waiting=Waiting("key", "j:0197", NOW, None))
    for workers in ((), (N1,), (N2,)):
        for queued in (None, QUEUED):
            assert len(why(Situation(NOW, line, queued, workers))) > 5


@pytest.mark.parametrize("gate", [*get_args(Gate), "moon"])
def test_every_gate_has_a_sentence_also_when_its_facts_are_gone(gate: str) -> None:
    said = waiting(gate, "tenant:acme" if gate == "paused" else "acme")
    assert said.startswith(("waits for ", "waited for ", "was held back ", "no worker of "))
    assert waiting(gate, "tenant:acme", workers=()).endswith(
        "that has tenant:acme; no worker serves the pool reports now" if gate == "handler"
        else "; no worker serves the pool reports now"
    )  # fmt: skip


def test_planned() -> None:
    early = replace(SERVED, now_ms=NOW - 30_000, queued=None)
    assert why(early) == "planned: it may start at 2027-01-15T08:00:00Z"
    assert why(replace(early, workers=())) == f"{why(early)}; no worker serves the pool reports now"
    assert why(replace(SERVED, queued=None)) == "due since 2027-01-15T08:00:00Z, and about to be queued"
    assert (
        why(replace(SERVED, workers=(N2,))) == "no worker of the pool reports has command; n2: its settings forbid it"
    )
    full = replace(SERVED, workers=(N1, N2), in_pool=Used(6, None), ready=1)
    due = "it is due since 2027-01-15T08:00:00Z"
    assert why(full) == f"waits for a free slot of the pool reports (6 of 6 in use): {due}"
    less = replace(full, in_pool=Used(2, 2), ready=3, line=in_state(RunState.PLANNED, lane="catchup"))
    counted = "2 of 2 in use, 2 other runs wait; catch-up leaves some free for live runs"
    assert why(less) == f"waits for a free slot of the pool reports ({counted}): {due}"


def test_keys() -> None:
    other = KeyHolder(812, "acme/stock", "n1", NOW)
    resting = KeyHolder(813, "acme/stock", None, NOW + 60_000)
    assert waiting("key", "k:acme:shop-db", holders=(other, resting)) == (
        "waits for the key shop-db: run 812 of job acme/stock holds it since 2027-01-15T08:00:00Z; "
        "run 813 of job acme/stock holds it and is tried again at 2027-01-15T08:01:00Z"
    )
    assert waiting("key", "j:0197", holders=(resting._replace(at_ms=NOW),)) == (
        "waits for its own job: run 813 waits for its next try"
    )
    early = KeyHolder(812, "acme/stock", "n1", NOW + 6000)
    assert waiting("key", "k:acme:a:b", holders=(early,)) == (
        "waits for the key a:b: run 812 of job acme/stock holds it and starts at 2027-01-15T08:00:06Z"
    )
    assert SERVED.queued is not None
    unseen = replace(SERVED, queued=SERVED.queued._replace(claim_key="k:acme:shop-db"), holders=(other,))
    text = "waits for the key shop-db: run 812 of job acme/stock holds it since 2027-01-15T08:00:00Z"
    assert why(unseen) == text  # it is free to start otherwise
    assert why(replace(unseen, in_pool=Used(4, None))).startswith("waits for a free slot of the pool reports")
    assert why(replace(unseen, holders=())).startswith("waits for a free slot of the pool reports")


def test_limits_that_are_gone_meanwhile() -> None:
    assert waiting("tenant", "acme", cap=Used(3, None)) == (
        "waits for tenant acme: 3, and no limit any more, in flight"
    )
    assert waiting("rate", "acme") == "waits for the rate of tenant acme"
    part = Switched(Control("type", "sync", 25, None, 1.0, None), "after the outage", "ann", NOW)
    for overlap, drawn in (("allow", "runs"), ("skip", "jobs"), ("queue", "jobs")):
        queued = QUEUED._replace(overlap=overlap)  # type: ignore[arg-type]
        assert waiting("paused", "type:sync", control=part, queued=queued) == (
            f"held back: type sync goes on with 25 % of its {drawn} by ann: after the outage"
        )
    assert waiting("handler", "python:a:b", workers=(N1, N2)) == (
        "waited for a worker of the pool reports that has python:a:b: n1, n2 look at it next"
    )


def test_a_handler_that_nobody_has_is_told_with_the_reasons() -> None:
    """S1-24, S3-7: each reason once, with the workers that have it."""
    handler = "python:shop.jobs:report"
    away, other = "shop.jobs cannot be imported: ModuleNotFoundError: No module named 'shop'", "not allowed"
    some = tuple(PoolWorker(f"n{at}", 1, {handler: other if at == 2 else away}) for at in range(1, 9))
    nobody = "no worker of the pool reports has python:shop.jobs:report"
    assert waiting("handler", handler, workers=some[:3]) == f"{nobody}; n1, n3: {away}; n2: {other}"
    assert waiting("handler", handler, workers=some) == f"{nobody}; n1, n3, n4, n5, n6 and 2 more: {away}; n2: {other}"
    different = tuple(PoolWorker(f"n{at}", 1, {handler: f"reason {at}"}) for at in range(7))
    assert waiting("handler", handler, workers=different).endswith("; n4: reason 4; and others")


def test_nobody_can_publish_yet() -> None:
    lacking = PoolWorker("n1", 1, {"publish:nats": "x"})
    said = "waits for a worker that has publish:nats, and no worker can publish to a broker yet: "
    assert waiting("handler", "publish:nats", workers=(lacking,)).startswith(said)
    queued = QUEUED._replace(handler="publish:nats")
    assert why(replace(SERVED, queued=queued, workers=(lacking,))).startswith(said)


def test_workers_that_are_about_to_end_still_use_slots() -> None:
    """They are not counted as workers: nothing starts there any more."""
    busy = replace(SERVED, in_pool=Used(6, None))
    assert "(6 of 6 in use)" in why(busy)
    assert "(6 of 2 in use)" in why(replace(busy, in_pool=Used(6, 2)))  # the limit has sunk


def test_upstream_jobs_are_named_with_the_state_that_people_see() -> None:
    planned = Upstream("0198", "load", "skip", RunState.PLANNED, False, False)
    line = replace(in_state(RunState.RETRYING, run_id=811), name="load")
    said = waiting("upstream", "0198", upstream=(planned,), upstream_runs={"0198": line})
    assert said == "waits for its upstream jobs: upstream load is retrying (run 811 of 2027-01-15T08:00:00Z)"
    open_ = planned._replace(answer=None, undecided=True)
    assert waiting("upstream", "0198", upstream=(open_,)) == "waits for its upstream jobs: upstream load is not decided"


def test_runs_that_are_over() -> None:
    def said(state: RunState, **fields: object) -> str:
        return why(Situation(NOW, in_state(state, **fields)))

    assert (
        said(RunState.SKIPPED, reason="overlap: run 6 was not finished") == "skipped: overlap: run 6 was not finished"
    )
    assert said(RunState.MERGED, reason="collapse", covered_by=9) == "merged into run 9: collapse"
    assert said(RunState.CANCELLED) == "cancelled"
    dead = "dead after 2 failed attempts and 1 lost one: lost: n1"
    assert said(RunState.DEAD, failures=2, losses=1, reason="lost: n1") == dead
    assert said(RunState.DEAD, losses=5) == "dead after 5 lost attempts"
    times = {"started_ms": NOW, "finished_ms": NOW + 2345}
    assert said(RunState.SUCCEEDED, attempt=1, **times) == "succeeded at 2027-01-15T08:00:02.345Z: it took 2.3s"


def test_a_run_that_was_asked_to_stop() -> None:
    line = replace(in_state(RunState.RUNNING, attempt=2), node_id="n1", begun_ms=NOW, cancel="ann asked")
    since = "attempt 2 runs on n1 since 2027-01-15T08:00:00Z"
    assert why(Situation(NOW, line)) == f"{since}; it was asked to stop: ann asked"


def test_retrying() -> None:
    line = replace(in_state(RunState.RETRYING, failures=1, attempt=1), next_ms=NOW + 9000)
    said = "1 failed attempt so far; the next try is at 2027-01-15T08:00:09Z"
    assert why(replace(SERVED, line=line)) == said
    assert why(replace(SERVED, line=line, workers=())) == f"{said}; no worker serves the pool reports now"
    due = replace(SERVED, line=line, now_ms=NOW + 9000)
    slot = "its next try waits for a free slot of the pool reports (0 of 4 in use)"
    assert why(due) == f"1 failed attempt so far; {slot}"
    assert why(replace(due, workers=())).endswith("; no worker serves the pool reports for its next try")
    parked = replace(line, waiting=Waiting("tenant", "acme", NOW, None))
    said = "1 failed attempt so far; its next try waits for tenant acme: 2 of 2 in flight"
    assert why(replace(due, line=parked, cap=Used(2, 2))) == said


def test_runs_of_a_job_that_is_over_are_promised_nothing() -> None:
    ended = replace(SERVED, ended="cancelled")
    line = replace(in_state(RunState.RETRYING, failures=1, attempt=1), next_ms=NOW + 9000)
    said = "1 failed attempt so far; its job was cancelled, so it is closed as cancelled"
    assert why(replace(ended, line=line)) == f"{said} at 2027-01-15T08:00:09Z"
    assert why(replace(ended, line=line, now_ms=NOW + 9000)) == f"{said} when its turn comes"
    parked = replace(line, waiting=Waiting("tenant", "acme", NOW, None))
    assert why(replace(ended, line=parked, now_ms=NOW + 9000)) == f"{said} when its turn comes"
    assert (
        why(replace(SERVED, ended="deleted")) == "its job was deleted, so it is closed as cancelled when its turn comes"
    )
    assert why(replace(ended, workers=())).endswith("; no worker serves the pool reports now")
    held = replace(line, node_id="n1", begun_ms=NOW + 9000)
    assert why(replace(ended, line=held)) == "1 failed attempt so far; the next try is at 2027-01-15T08:00:09Z"
    assert why(replace(ended, line=in_state(RunState.CANCELLED, reason="its job was cancelled"))).startswith(
        "cancelled"
    )


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0ms"), (999, "999ms"), (2345, "2.3s"), (59_999, "59.9s"), (60_000, "1m"), (200_000, "3m20s"),
     (7_500_000, "2h5m"), (86_400_000, "1d"), (273_600_000, "3d4h")],
)  # fmt: skip
def test_durations_for_people(ms: int, text: str) -> None:
    assert rough_text(ms) == text
