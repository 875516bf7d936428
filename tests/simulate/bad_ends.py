"""Known-bad variants: how attempts end, and what follows from it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fleetcron.model.outcome import WORKER_STOPPED, Failed, Fault
from fleetcron.policy import settle
from fleetcron.store import ends as store_ends
from fleetcron.store import workers as store_workers
from fleetcron.store.ends import Attempts
from fleetcron.worker import settling
from tests.simulate.changing import put, text


def finish_by_run_only() -> None:
    text(
        "leases_mine",
        ("l.attempt, l.node_id,", "n.attempt AS attempt, :node_id AS node_id,"),
        ("WHERE l.attempt = n.attempt AND l.node_id = :node_id", "WHERE true"),
    )


def finish_by_state_only() -> None:
    text(
        "leases_mine",
        ("l.attempt, l.node_id,", "n.attempt AS attempt, :node_id AS node_id,"),
        ("WHERE l.attempt = n.attempt AND l.node_id = :node_id", "WHERE l.node_id IS NOT NULL"),
    )


def finish_without_attempt() -> None:
    text(
        "leases_mine",
        ("l.attempt, l.node_id,", "n.attempt AS attempt, l.node_id,"),
        ("WHERE l.attempt = n.attempt AND", "WHERE"),
    )


def finish_without_owner() -> None:
    text("leases_mine", ("AND l.node_id = :node_id", "AND :node_id IS NOT NULL"))


def unknown_is_failed() -> None:
    finish = Attempts.finish

    async def changed(self: Attempts, node_id: str, ended: Sequence[Any], decide: Any, *, again: bool = False) -> Any:
        if again:  # the reply was lost: it is taken for a failure
            ended = [each._replace(outcome=Failed(Fault("unknown"))) for each in ended]
        return await finish(self, node_id, ended, decide, again=again)

    put(Attempts, "finish", changed)


def attempt_number_stays() -> None:
    text("leases_retake", ("attempt = leases.attempt + 1", "attempt = leases.attempt"))


def final_runs_can_end_again() -> None:
    text("attempts_finish", (" AND runs.finished_ms IS NULL", ""))
    finish_by_run_only()


def retry_before_its_time() -> None:
    real = settle.settle

    def early(*arguments: Any, **facts: Any) -> Any:
        become = real(*arguments, **facts)
        return become if become.due_ms is None else replace(become, due_ms=0)

    put(settling, "settle", early)
    put(store_ends, "_not_early", lambda row, become: become)


def dead_without_an_event() -> None:
    put(store_ends, "_dead", lambda settled: ())


def ends_leave_their_leases() -> None:
    text("attempts_finish", ("DELETE FROM leases WHERE", "DELETE FROM leases WHERE false AND"))


def lapsed_is_called_stopped() -> None:
    real = store_workers.Lost
    put(store_workers, "Lost", lambda error: real(replace(error, code=WORKER_STOPPED)))


def lost_is_not_counted() -> None:
    real = settle.settle

    def free(outcome: Any, budget: Any, rule: Any, **facts: Any) -> Any:
        become = real(outcome, budget, rule, **facts)
        return replace(become, budget=budget) if type(outcome).__name__ == "Lost" else become

    put(settling, "settle", free)
