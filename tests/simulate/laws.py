"""The invariants as functions of what was seen. Each names its number; all of them together judge a world."""

from collections.abc import Callable, Iterator
from typing import Final

from tests.simulate import laws_of_overlap as overlap
from tests.simulate import laws_of_policies as policies
from tests.simulate import laws_of_ticks as ticks
from tests.simulate import laws_of_work as work
from tests.simulate.evidence import Evidence, Violation
from tests.simulate.record import Record
from tests.simulate.scenario import Scenario

Law = Callable[[Evidence], Iterator[Violation]]

LAWS: Final[tuple[Law, ...]] = (
    work.i5_everything_ends,
    ticks.i1_no_tick_lost,
    ticks.i1_left_out_only_by_policy,
    ticks.i1_overlap_is_decided_by_facts,
    policies.i1_skipped_only_for_upstream_that_failed,
    policies.i1_expired_after_the_deadline,
    overlap.i1_waiting_ticks_give_way,
    overlap.i1_cancelled_only_by_a_newer_tick,
    overlap.i1_merged_into_a_newer_tick,
    ticks.i2_one_row_per_tick,
    work.i3_one_attempt_at_a_time,
    work.i3_no_overlap_unless_allowed,
    policies.i3_within_the_limits,
    overlap.i3_the_previous_run_is_asked_to_stop,
    ticks.i4_planned_for_the_right_instant,
    work.i4_never_early,
    policies.i4_upstream_comes_first,
    overlap.i4_queued_ticks_start_in_order,
    work.i5_healthy,
    work.i6_at_most_one_extra_attempt_per_fault,
    work.i7_final_is_final,
    work.i8_attempts_without_holes,
    work.i9_no_stale_token,
    work.i9_who_renews_is_not_lost,
    work.i10_fair_shares,
    work.i11_conservation,
    work.i12_one_story,
)


def judged(scenario: Scenario, record: Record) -> list[Violation]:
    """What is wrong with a world, the most telling first."""
    seen = Evidence(scenario, record)
    if record.busy is not None:  # it was ended in the middle
        return list(work.i5_everything_ends(seen))
    return [violation for law in LAWS for violation in law(seen)]
