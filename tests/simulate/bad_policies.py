"""Known-bad variants: policies that are ignored, or that answer without a reason."""

from dataclasses import replace
from typing import Any

from fleetcron.model.states import RunState
from fleetcron.policy import choose, depends, overlap
from tests.simulate.changing import put, text


def upstream_is_not_waited_for() -> None:
    put(depends, "verdict", lambda *facts: depends.Ready())


def upstream_that_runs_is_enough() -> None:
    real = depends._of_one

    def started(upstream: Any, *times: int) -> Any:
        return depends.Ready() if upstream.answer == RunState.PLANNED else real(upstream, *times)

    put(depends, "_of_one", started)


def skipped_for_upstream_that_succeeded() -> None:
    real = depends._of_one

    def skips(upstream: Any, *times: int) -> Any:
        if upstream.answer == RunState.SUCCEEDED and not upstream.undecided and upstream.on_failure == "skip":
            return depends.SkipBecause(f"upstream {upstream.name} is {upstream.answer}")
        return real(upstream, *times)

    put(depends, "_of_one", skips)


def caps_are_ignored() -> None:
    put(choose._Chooser, "_capped", lambda self, run: None)


def slots_of_the_fleet_are_ignored() -> None:
    text("limits_of_pool", ("SELECT slots,", "SELECT NULL AS slots,"))


def queued_ticks_in_any_order() -> None:
    put(overlap, "_in_order", lambda run, facts, holders, gone: overlap.FREE)


def collapse_merges_nobody() -> None:
    real = overlap._succeeded
    put(overlap, "_succeeded", lambda run, facts: () if run.overlap == "collapse" else real(run, facts))


def collapse_merges_before_it_is_due() -> None:
    real = overlap._succeeded

    def early(run: Any, facts: Any) -> Any:
        ahead = 60_000 if run.overlap == "collapse" else 0
        return real(run, replace(facts, now_ms=facts.now_ms + ahead))

    put(overlap, "_succeeded", early)


def cancel_previous_cancels_nobody() -> None:
    put(overlap, "_instead", lambda run, facts, holders, gone: overlap.FREE)


def waiting_ticks_are_not_cancelled() -> None:
    real = overlap._succeeded
    put(overlap, "_succeeded", lambda run, facts: () if run.overlap == "cancel_previous" else real(run, facts))


def cancelled_before_the_next_is_due() -> None:
    real = overlap._instead

    def early(run: Any, facts: Any, holders: Any, gone: Any) -> Any:
        return real(run, replace(facts, now_ms=max(facts.now_ms, run.due_ms)), holders, gone)

    put(overlap, "_instead", early)


def older_ticks_cancel_newer_ones() -> None:
    put(overlap, "_is_newer", lambda held, run: False)


def expired_before_the_deadline() -> None:
    real = choose._Chooser._too_late

    def early(self: Any, run: Any) -> None:
        real(self, run if run.deadline_ms is None else run._replace(deadline_ms=run.deadline_ms - 10_000))

    put(choose._Chooser, "_too_late", early)
