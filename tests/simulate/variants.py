"""Known-bad variants of the code: each takes one guard away, or two where one hides the other. A test counts how many
the laws catch; whatever nobody catches has a reason here, or is a fault that the worlds do not have.

They change statements and functions of the running process for good: only a process that is thrown away applies one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.simulate import bad_ends, bad_leases, bad_plans, bad_policies


@dataclass(frozen=True, slots=True)
class Variant:
    """`faults` are those that its worlds have. `hidden`: the proof that its worlds cannot differ from those of the code
    as it is, so that nobody can catch it; None: somebody must. `bared_by`: the variants in which what hides it is gone
    too, which must be caught. `elsewhere`: the check that catches it, because its worlds hardly ever meet it; it counts
    as missed. `kind` of world: dense, plain or crowded. `minutes`: None is as long as its kind is."""

    what: str
    apply: Callable[[], None]
    faults: tuple[str, ...]
    hidden: str | None = None
    bared_by: tuple[str, ...] = ()
    elsewhere: str | None = None
    kind: str = "dense"
    minutes: float | None = None


VARIANTS: Final[dict[str, Variant]] = {
    "finish_by_run_only": Variant("a finish matches the run alone", bad_ends.finish_by_run_only, ("freeze", "cut")),
    "finish_by_state_only": Variant("a finish matches whatever runs", bad_ends.finish_by_state_only, ("freeze", "cut")),
    "finish_without_attempt": Variant(
        "a finish matches run and owner", bad_ends.finish_without_attempt, ("straggle", "cut", "lossy")
    ),
    "finish_without_owner": Variant(
        "a finish matches run and attempt",
        bad_ends.finish_without_owner,
        ("freeze", "cut"),
        # A claim raises the number of the run in the transaction that makes its lease, and only a hand-back lowers it,
        # of an attempt that never began and so has no end. So for any (run, attempt) that began there is one lease in
        # all of time, and one owner of it. Whoever ends it and matches both is him.
        "no two nodes ever begin the same attempt of a run: the number alone is the fence",
        ("finish_by_run_only", "attempt_number_stays"),
    ),
    "unknown_is_failed": Variant("a lost reply counts as a failure", bad_ends.unknown_is_failed, ("lossy",)),
    "attempt_number_stays": Variant(
        "a second attempt has the number of the first", bad_ends.attempt_number_stays, ("kill",)
    ),
    "final_runs_can_end_again": Variant(
        "an end is written over an end", bad_ends.final_runs_can_end_again, ("freeze", "cut")
    ),
    "retry_before_its_time": Variant(
        "a retry ignores backoff and tick", bad_ends.retry_before_its_time, ("kill", "database_clock")
    ),
    "dead_without_an_event": Variant("nobody is told of dead runs", bad_ends.dead_without_an_event, ()),
    "ends_leave_their_leases": Variant("an end leaves its lease behind", bad_ends.ends_leave_their_leases, ()),
    "lost_is_not_counted": Variant("lost attempts cost nothing", bad_ends.lost_is_not_counted, ("kill", "freeze")),
    "lapsed_is_called_stopped": Variant(
        "a vanished worker counts as stopped in an orderly way", bad_ends.lapsed_is_called_stopped, ("kill", "freeze")
    ),
    "no_watching": Variant("an expired lease is taken at once", bad_leases.no_watching, ("database_clock",)),
    "leases_by_node_clocks": Variant(
        "the watcher's own clock says what has expired", bad_leases.leases_by_node_clocks, ("node_clock",)
    ),
    "reaper_without_guard": Variant(
        "whoever was seen is buried, whatever he did since",
        bad_leases.reaper_without_guard,
        ("aimed", "freeze", "cut"),
    ),
    "forsake_without_life": Variant(
        "an old life gives up what the new one holds", bad_leases.forsake_without_life, ("aimed", "freeze", "cut")
    ),
    "unknown_renewal_counts": Variant(
        "a renewal without an answer counts", bad_leases.unknown_renewal_counts, ("cut",)
    ),
    # The margin hides it nearly always: replies come within the deadline of a call, 1 s here, and the margin is 1.6 s
    # or more. Some thirty worlds are needed for one where that is not enough.
    "renewal_counts_from_the_reply": Variant(
        "a lease counts from the reply", bad_leases.renewal_counts_from_the_reply, ("slow", "freeze", "cut")
    ),
    "no_margin": Variant(
        "work stops when the lease ends",
        bad_leases.no_margin,
        ("cut",),
        # The work stops at sent + ttl. A watcher has seen the beat at written >= sent + the way there, counts a ttl
        # from then on its own steady clock, asks to bury, and only then somebody claims: three more ways. Steady clocks
        # differ by less than 100 ppm (3 ms in 30 s), and here handlers end at the instant at which they are ended. The
        # margin is for what a real machine adds to that: a process that is slow to die, a thread that gets no turn.
        "a lease counts from when its renewal was sent, whoever watches it from when he saw it: that is later",
        ("reply_counts_and_no_margin",),
    ),
    "reply_counts_and_no_margin": Variant(
        "a lease counts from the reply, and there is no margin",
        bad_leases.reply_counts_and_no_margin,
        ("slow", "cut"),
        minutes=20.0,
    ),
    "drain_stops_the_heartbeat_first": Variant(
        "who drains does not renew", bad_leases.drain_stops_the_heartbeat_first, ("rolling",)
    ),
    "who_loses_its_lease_goes_on": Variant(
        "a lost lease stops nothing", bad_leases.who_loses_its_lease_goes_on, ("cut", "freeze")
    ),
    "lost_lease_stops_nothing": Variant(
        "a lost lease stops nothing, but handlers are not allowed to go on",
        bad_leases.lost_lease_stops_nothing,
        ("cut",),
        # Each renewal allows the handlers to go on until a quarter of the margin before its lease is over; who does
        # not renew allows nothing more, and they end then, whatever the worker does.
        "the dead man's switch ends them before the lease does",
        ("who_loses_its_lease_goes_on", "no_dead_mans_switch"),
    ),
    "no_dead_mans_switch": Variant("handlers go on without their worker", bad_leases.no_dead_mans_switch, ("freeze",)),
    "hand_back_without_owner": Variant(
        "anybody hands back anything",
        bad_leases.hand_back_without_owner,
        ("rolling", "aimed"),
    ),
    "hand_back_without_batch": Variant(
        "a hand-back that comes late fits the next claim",
        bad_leases.hand_back_without_batch,
        ("aimed",),
        # The same worker has to take a run again that it gave back, within the seconds for which a request can be late,
        # and a worker gives back little: in 8 worlds of 20 minutes 3 of 77 that were written came back so soon.
        elsewhere="what_was_not_started_goes_back",
    ),
    "start_by_the_nodes_clock": Variant(
        "the node's clock starts runs", bad_leases.start_by_the_nodes_clock, ("node_clock",)
    ),
    "start_when_claimed": Variant("what is claimed early starts early", bad_leases.start_when_claimed, ()),
    "starts_two_seconds_late": Variant("whatever is due waits", bad_leases.starts_two_seconds_late, ()),
    "deadline_not_asked": Variant(
        "nobody asks for the start deadline", bad_leases.deadline_not_asked, ("outage", "down")
    ),
    "insert_and_advance_apart": Variant(
        "cursor and runs in two transactions", bad_plans.insert_and_advance_apart, ("step", "lossy", "kill")
    ),
    # The term lets one node plan a shard, and that one plans round after round: only some eighty worlds have one where
    # that is not enough.
    "no_compare_and_set": Variant(
        "a cursor moves wherever it stands", bad_plans.no_compare_and_set, ("straggle", "freeze", "cut")
    ),
    "no_fence": Variant(
        "a term is not checked, and held for ever",
        bad_plans.no_fence,
        ("freeze", "cut", "straggle"),
        # A node that has lost its shard plans from a cursor that it has read. If the new one has moved it meanwhile,
        # the compare-and-set refuses; if not, its plan is the one that the new owner would make: plans are pure. Gaps
        # have no cursor: there the key of ticks refuses the second (without it: only_the_compare_and_set).
        "the cursor's compare-and-set refuses the same writes",
        ("only_the_key", "only_the_compare_and_set", "no_guard_of_ticks"),
    ),
    "no_unique_tick": Variant(
        "no unique key for ticks",
        bad_plans.no_unique_tick,
        ("straggle", "freeze", "cut"),
        # A tick is inserted by whoever moved the cursor over it, in the same transaction, and cursors move forward.
        # Ticks of gaps are inserted by the one node whose term is valid, which cuts the gap in the same transaction.
        "the cursor's compare-and-set lets nobody plan a tick twice",
        ("only_the_compare_and_set", "only_the_fence", "no_guard_of_ticks"),
    ),
    "only_the_key": Variant(
        "no compare-and-set, no fence",
        bad_plans.only_the_key,
        ("aimed", "straggle", "freeze", "asking"),
        minutes=20.0,
    ),
    # a cursor does not guard the gaps: two that believe to hold a shard decide the same piece
    "only_the_compare_and_set": Variant(
        "no key, no fence", bad_plans.only_the_compare_and_set, ("straggle", "freeze", "cut")
    ),
    "only_the_fence": Variant("no key, no compare-and-set", bad_plans.only_the_fence, ("straggle", "freeze", "cut")),
    "no_guard_of_ticks": Variant(
        "no key, no compare-and-set, no fence", bad_plans.no_guard_of_ticks, ("straggle", "freeze", "cut")
    ),
    "unwritten_plans_are_forgotten": Variant(
        "a plan that failed is not made again", bad_plans.unwritten_plans_are_forgotten, ("lossy", "cut")
    ),
    "recovery_drops_silently": Variant(
        "what is too old gets no answer", bad_plans.recovery_drops_silently, ("outage",)
    ),
    "looks_each_minute": Variant("a scheduler looks once a minute", bad_plans.looks_each_minute, ()),
    "no_calendars": Variant("calendars are ignored", bad_plans.no_calendars, (), kind="plain"),
    "served_as_they_come": Variant(
        "whoever comes first is served first", bad_plans.served_as_they_come, (), kind="crowded"
    ),
    "no_jitter": Variant("jitter is ignored", bad_plans.no_jitter, ()),
    "replayed_runs_count_again": Variant(
        "a tick is skipped for a run that people replay", bad_plans.replayed_runs_count_again, ("asking",)
    ),
    "skip_by_who_looks_when": Variant(
        "overlap is judged when somebody looks", bad_plans.skip_by_who_looks_when, ("down", "freeze", "limits")
    ),
    "no_key_on_leases": Variant(
        "no unique key on leases",
        bad_plans.no_key_on_leases,
        ("kill", "straggle"),
        # The claim reads which keys are taken and writes its leases in one transaction, and SQLite runs one at a time.
        # PostgreSQL does not: tests/faults/test_claim_interleavings.py interleaves two claims there, in each order.
        "one transaction at a time decides in these worlds, so what was read is still true when it is written",
        ("claim_without_looking_at_keys",),
    ),
    "claim_without_looking_at_keys": Variant(
        "neither the key nor a look at it", bad_plans.claim_without_looking_at_keys, ()
    ),
    "cancel_does_not_wait": Variant("cancel_previous does not wait for the end", bad_plans.cancel_does_not_wait, ()),
    "nobody_is_let_go_on": Variant("an end promotes nobody", bad_plans.nobody_is_let_go_on, ()),
    # the jobs of a dense world depend on nobody
    "upstream_is_not_waited_for": Variant(
        "dependencies are ignored", bad_policies.upstream_is_not_waited_for, (), kind="plain"
    ),
    "upstream_that_runs_is_enough": Variant(
        "an upstream job that has not ended is waited for no longer",
        bad_policies.upstream_that_runs_is_enough,
        (),
        kind="plain",
    ),
    "skipped_for_upstream_that_succeeded": Variant(
        "a run is skipped because its upstream job succeeded",
        bad_policies.skipped_for_upstream_that_succeeded,
        (),
        kind="plain",
    ),
    "caps_are_ignored": Variant("caps and quotas are ignored", bad_policies.caps_are_ignored, ("limits",)),
    "slots_of_the_fleet_are_ignored": Variant(
        "a pool has as many slots as its workers", bad_policies.slots_of_the_fleet_are_ignored, ("limits",)
    ),
    "queued_ticks_in_any_order": Variant(
        "queued ticks do not wait for each other", bad_policies.queued_ticks_in_any_order, ("asking", "outage")
    ),
    "collapse_merges_nobody": Variant("collapse merges nobody", bad_policies.collapse_merges_nobody, ()),
    "collapse_merges_before_it_is_due": Variant(
        "a tick is merged into one that is not due", bad_policies.collapse_merges_before_it_is_due, ()
    ),
    "cancel_previous_cancels_nobody": Variant(
        "cancel_previous asks nobody to stop", bad_policies.cancel_previous_cancels_nobody, ()
    ),
    "waiting_ticks_are_not_cancelled": Variant(
        "cancel_previous leaves those that wait", bad_policies.waiting_ticks_are_not_cancelled, ("limits",)
    ),
    "cancelled_before_the_next_is_due": Variant(
        "cancel_previous cancels before the next tick is due", bad_policies.cancelled_before_the_next_is_due, ()
    ),
    "older_ticks_cancel_newer_ones": Variant(
        "cancel_previous: a tick that comes late cancels a newer one",
        bad_policies.older_ticks_cancel_newer_ones,
        ("outage", "asking"),
    ),
    "expired_before_the_deadline": Variant(
        "a run expires before its deadline", bad_policies.expired_before_the_deadline, ()
    ),
}
