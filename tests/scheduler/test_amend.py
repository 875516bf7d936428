"""What changes of a job do to its ticks: edit, pause, resume, cancel, delete, other tables. Pure."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from fleetcron.errors import RefusedError
from fleetcron.model.amendment import Amendment
from fleetcron.model.definition import Definition
from fleetcron.model.job import Job
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, MisfireRule, OnceEntry, OverlapRule
from fleetcron.model.standing import Position, Standing
from fleetcron.model.target import CommandTarget
from fleetcron.model.timing import Timing
from fleetcron.policy import amend
from fleetcron.policy.adopt import moved
from fleetcron.scheduler.plan import plan
from fleetcron.scheduler.tables import Never
from fleetcron.times.instants import from_ms, iso
from fleetcron.times.timetable import BlackoutRule, Timetable
from fleetcron.times.windows import blackout
from tests.scheduler.drawn import CHANGES, DAY, DEFINITIONS, HOUR, INSTANTS, LENGTHS, MINUTE, SECOND, made, unlimited
from tests.times.examples import AMOUNT, for_all

NOON = CHANGES[-1] + 12 * HOUR
CREATED = CHANGES[0]  # what `made` takes for the instant of creation


def job(*entries: object, **fields: object) -> Definition:
    return Definition("a", entries, CommandTarget(("true",)), **fields)  # type: ignore[arg-type]


HOURLY = job(CronEntry("0 * * * *"))


def standing(
    definition: Definition, at: Position, state: str = "active", next_due_ms: int | None = None, **fields: object
) -> Standing:
    known = Job("id", definition, "active", 1, None, None, CREATED, "somebody", CREATED)
    known = replace(known, state=state, **fields)  # type: ignore[arg-type]
    return Standing(known, made(definition)[0], at, 0, next_due_ms)


def once(ms: int, **fields: object) -> Definition:
    return job(OnceEntry(iso(from_ms(ms))), **fields)


def edited(before: Standing, definition: Definition, now: int, *, strict: bool = False) -> Amendment:
    timing, timetable, _ = made(definition)
    old = made(before.job.definition)[1]
    return amend.edit(before, definition, old, timing, timetable, now, "me", strict=strict)


@AMOUNT
def test_a_timing_that_ends_leaves_exactly_its_undecided_ticks(amount: float) -> None:
    """Every tick up to the change is planned or in the gap, none after it; max_ticks counts those up to the change."""

    @for_all(400 * amount, DEFINITIONS, INSTANTS, LENGTHS, LENGTHS, st.sampled_from([0, MINUTE, HOUR]))
    def law(definition: Definition, begin: int, until: int, later: int, lookahead: int) -> None:
        timing, timetable, ticks = made(definition)
        planned = plan(timing, timetable, Position(begin), begin + until, lookahead)
        now = begin + until + later
        left = amend.leave(timing, timetable, planned.to, now)
        allowed = ticks.between(begin, max(now, planned.to.cursor_ms))[: definition.max_ticks]
        undecided = [tick for tick in allowed if planned.to.cursor_ms < tick <= now]
        if undecided:
            assert left.undecided is not None
            assert ticks.between(*left.undecided) == undecided
        else:
            assert left.undecided is None
        used = len([tick for tick in allowed if tick <= now]) if definition.max_ticks is not None else 0
        assert left.at == Position(now, used)


@AMOUNT
def test_an_edit_never_fires_at_once(amount: float) -> None:
    """Editing a cron fires it at once (Hangfire): no tick up to the edit is answered under the new rules."""

    states = st.sampled_from(["active", "paused", "finished"])

    @for_all(300 * amount, DEFINITIONS, DEFINITIONS.map(unlimited), INSTANTS, LENGTHS, states)
    def law(old: Definition, new: Definition, cursor: int, since: int, state: str) -> None:
        now = cursor + since
        made_ = edited(standing(old, Position(cursor), state), new, now)
        assert made_.answers == ()
        if made(old)[0] == made(new)[0] and state != "finished":  # the same rules: nothing ends, nothing begins
            assert (made_.after.at.cursor_ms, made_.gaps) == (cursor, ())
            return
        assert made_.after.at.cursor_ms == now
        assert made_.after.next_due_ms is None or made_.after.next_due_ms > now
        following = made(new)[2].next(now)
        if state == "paused":
            assert (made_.after.job.state, made_.after.next_due_ms) == ("paused", None)
        elif following is not None:
            assert (made_.after.job.state, made_.after.next_due_ms) == ("active", following)
        else:
            assert (made_.after.job.state, made_.after.next_due_ms) == ("finished", None)


@pytest.mark.parametrize("ago", [10 * SECOND, 2 * HOUR])
@pytest.mark.parametrize("state", ["active", "finished"])
def test_an_edit_does_not_answer_a_single_instant_again(ago: int, state: str) -> None:
    """The instant of the job has its run, or its line in the ledger: a new description must not give it another."""
    definition = once(NOON - ago)
    before = standing(definition, Position(NOON - ago), state)
    made_ = edited(before, replace(definition, description="clearer"), NOON)
    assert (made_.answers, made_.gaps, made_.after.next_due_ms) == ((), (), None)
    assert made_.after.job.state == "finished"


def test_a_new_job_may_be_a_moment_late() -> None:
    """`at` in the past: within the grace it runs; beyond it the API refuses, and apply says missed."""
    timing, timetable, _ = made(once(NOON - 30 * SECOND))
    job_ = Job("id", once(NOON - 30 * SECOND), "active", 1, None, None, NOON, "me", NOON)
    made_ = amend.create(job_, timing, timetable, 0, NOON, strict=True)
    assert (made_.after.next_due_ms, made_.answers) == (NOON - 30 * SECOND, ())
    assert plan(timing, timetable, made_.after.at, NOON, 0).runs[0].scheduled_for_ms == NOON - 30 * SECOND
    with pytest.raises(RefusedError, match="only instant has passed"):
        amend.create(job_, timing, timetable, 0, NOON + HOUR, strict=True)
    missed = amend.create(job_, timing, timetable, 0, NOON + HOUR, strict=False)
    assert missed.after.job.state == "finished"
    assert [(one.from_ms, one.answer, one.reason) for one in missed.answers] == [
        (NOON - 30 * SECOND, "missed", "in_the_past")
    ]


def test_an_edit_leaves_the_undecided_past_to_the_old_rules() -> None:
    before = standing(HOURLY, Position(NOON - 3 * HOUR))
    made_ = edited(before, job(EveryEntry(MINUTE, 0)), NOON + 1)
    [gap] = made_.gaps
    assert (gap.from_ms, gap.to_ms, gap.cause, gap.policy, gap.noticed_ms) == (
        NOON - 3 * HOUR, NOON + 1, "edit", None, NOON + 1,
    )  # fmt: skip
    assert made_.before is before
    assert made_.after.at == Position(NOON + 1)


def test_max_ticks_lives_on_through_edits() -> None:
    """It counts ticks, run or not; forecasts that are taken back are given back."""
    four = job(EveryEntry(MINUTE, 0), max_ticks=4)
    timing, timetable, _ = made(four)
    planned = plan(timing, timetable, Position(NOON), NOON, 3 * MINUTE)
    assert planned.to == Position(NOON + 3 * MINUTE, 3)
    before = standing(four, planned.to)
    hourly = edited(before, job(EveryEntry(HOUR, 0), max_ticks=4), NOON + MINUTE)
    assert hourly.after.at == Position(NOON + MINUTE, 1)  # one has come, two were forecasts
    assert edited(before, job(EveryEntry(HOUR, 0)), NOON + MINUTE).after.at == Position(NOON + MINUTE)
    fewer = edited(before, job(EveryEntry(HOUR, 0), max_ticks=1), NOON + MINUTE)
    assert fewer.after.job.state == "finished"
    more = edited(fewer.after, job(EveryEntry(HOUR, 0), max_ticks=2), NOON + 2 * MINUTE)
    assert (more.after.job.state, more.after.at.ticks_used) == ("active", 1)


def test_a_pause_withdraws_and_a_resume_decides_the_window() -> None:
    """S3-3, unpause does not re-arm (Temporal): every resume looks for the next tick anew."""
    before = standing(HOURLY, Position(NOON), next_due_ms=NOON + HOUR)
    table = made(HOURLY)[1]
    paused = amend.pause(before, table, NOON + MINUTE, "me", "all")
    assert (paused.after.job.state, paused.after.job.on_resume, paused.after.next_due_ms) == ("paused", "all", None)
    assert paused.gaps == ()
    resumed = amend.resume(paused.after, table, NOON + 3 * HOUR + MINUTE, "me")
    assert resumed is not None
    [gap] = resumed.gaps
    assert (gap.from_ms, gap.to_ms, gap.cause, gap.policy) == (
        NOON + MINUTE, NOON + 3 * HOUR + MINUTE, "pause", "all",
    )  # fmt: skip
    assert resumed.notice == "all"  # and for what edits meanwhile have left
    assert (resumed.after.job.state, resumed.after.next_due_ms) == ("active", NOON + 4 * HOUR)
    assert amend.resume(resumed.after, table, NOON + 4 * HOUR, "me") is None


def test_a_pause_decides_what_was_late_before_it() -> None:
    before = standing(HOURLY, Position(NOON - 2 * HOUR))
    [gap] = amend.pause(before, made(HOURLY)[1], NOON + MINUTE, "me", "skip").gaps
    assert (gap.from_ms, gap.to_ms, gap.cause, gap.policy, gap.noticed_ms) == (
        NOON - 2 * HOUR, NOON + MINUTE, "outage", None, NOON + MINUTE,
    )  # fmt: skip


def test_an_edit_of_a_paused_job_waits_for_its_resume() -> None:
    before = standing(HOURLY, Position(NOON), "paused", on_resume="latest")
    made_ = edited(before, job(EveryEntry(HOUR, 5)), NOON + 2 * HOUR)
    assert [(gap.cause, gap.noticed_ms, gap.policy) for gap in made_.gaps] == [("pause", None, None)]
    assert made_.notice is None
    assert (made_.after.job.state, made_.after.next_due_ms) == ("paused", None)


@pytest.mark.parametrize(("end", "cause"), [(amend.cancel, "cancel"), (amend.delete, "delete")])
def test_an_end_cancels_what_is_undecided(end: object, cause: str) -> None:
    before = standing(HOURLY, Position(NOON - 2 * HOUR), next_due_ms=NOON - HOUR)
    made_: Amendment = end(before, made(HOURLY)[1], NOON, "me")  # type: ignore[operator]
    assert [(gap.to_ms, gap.cause, gap.policy) for gap in made_.gaps] == [(NOON, cause, "cancel")]
    assert made_.after.next_due_ms is None
    assert made_.notice == "cancel"
    assert (made_.after.job.deleted_ms is None) == (cause == "cancel")


def test_what_cannot_be_is_refused_with_the_reason() -> None:
    table = made(HOURLY)[1]
    over = standing(HOURLY, Position(NOON), "cancelled")
    with pytest.raises(RefusedError, match="cancelled, which is final"):
        edited(over, HOURLY, NOON)
    with pytest.raises(RefusedError, match="only an active job can be paused"):
        amend.pause(over, table, NOON, "me", "skip")
    with pytest.raises(RefusedError, match="only a paused job can be resumed"):
        amend.resume(over, table, NOON, "me")
    with pytest.raises(RefusedError, match="only an active or paused job can be cancelled"):
        amend.cancel(over, table, NOON, "me")
    with pytest.raises(RefusedError, match="never fires after"):
        edited(standing(HOURLY, Position(NOON)), once(NOON - HOUR), NOON, strict=True)
    assert amend.delete(over, table, NOON, "me").gaps == ()


def test_where_only_the_latest_counts_not_all_are_caught_up() -> None:
    """Neither by a pause, nor by a resume, nor by an edit in between: as `misfire: all` is refused."""
    table, latest = made(HOURLY)[1], replace(HOURLY, overlap=OverlapRule("cancel_previous"))
    with pytest.raises(RefusedError, match="with latest or skip"):
        amend.pause(standing(latest, Position(NOON)), table, NOON, "me", "all")
    rests = standing(latest, Position(NOON), "paused", on_resume="latest")
    with pytest.raises(RefusedError, match="with latest or skip"):
        amend.resume(rests, table, NOON + HOUR, "me", "all")
    with pytest.raises(RefusedError, match="with latest or skip"):
        edited(standing(HOURLY, Position(NOON), "paused", on_resume="all"), latest, NOON + HOUR)
    assert amend.resume(rests, table, NOON + HOUR, "me") is not None


def test_a_job_that_has_finished_leaves_no_gap_whatever_tables_say_later() -> None:
    before = standing(HOURLY, Position(NOON - 5 * HOUR), "finished")  # there was no tick to come; now there is
    made_ = edited(before, replace(HOURLY, description="again"), NOON)
    assert made_.gaps == ()
    assert (made_.after.job.state, made_.after.next_due_ms) == ("active", NOON + HOUR)


def test_a_stuck_job_is_not_over_when_it_is_resumed() -> None:
    """It has no ticks under the present tables, and waits for others."""
    never = Never("no day is left")
    stuck = standing(HOURLY, Position(NOON), problem="no day is left")
    assert amend.resume(stuck, never, NOON + HOUR, "me") is None
    paused = replace(stuck, job=replace(stuck.job, state="paused"))
    resumed = amend.resume(paused, never, NOON + HOUR, "me")
    assert resumed is not None
    assert (resumed.after.job.state, resumed.after.job.problem) == ("active", "no day is left")
    assert resumed.after.next_due_ms is None


@AMOUNT
def test_new_tables_move_a_job_exactly_when_its_ticks_move(amount: float) -> None:
    """Ticks up to the change under the old tables, later ones under the new; whoever is not moved plans the same."""
    uses = st.sampled_from([(), (CalendarUse("freeze"),), (CalendarUse("freeze", on="defer"),)])

    @for_all(400 * amount, DEFINITIONS, uses, INSTANTS, LENGTHS, st.sampled_from([0, MINUTE, HOUR, DAY]))
    def law(definition: Definition, uses: tuple[CalendarUse, ...], begin: int, since: int, lookahead: int) -> None:
        other = replace(definition, calendars=uses)
        timing, old, old_ticks = made(definition)
        new, new_ticks = table_of(other)
        planned = plan(timing, old, Position(begin), begin, lookahead)
        at, now = planned.to, begin + since
        found = moved(timing, old, new, at, "active", planned.next_due_ms, now)
        undecided = [t for t in old_ticks.between(begin, now)[: definition.max_ticks] if t > at.cursor_ms]
        if found is None:
            assert not undecided
            same = old_ticks.between(now, at.cursor_ms)
            assert new_ticks.between(now, at.cursor_ms) == same
            assert [new_ticks.start(tick) for tick in same] == [old_ticks.start(tick) for tick in same]
            assert planned.next_due_ms is not None
        else:
            assert found.left.at.cursor_ms == now
            assert (found.left.undecided is not None) == bool(undecided)
            following = new_ticks.next(now)
            used = found.left.at.ticks_used
            over = definition.max_ticks is not None and used >= definition.max_ticks
            if following is None or over:
                had_ticks = not over and old_ticks.next(now) is not None
                assert found.stuck == (had_ticks or planned.next_due_ms is None)
                following = None if found.stuck else now  # to be finished
            assert found.next_due_ms == following


def table_of(definition: Definition) -> tuple[Timetable, Any]:
    try:
        _, timetable, ticks = made(definition)
    except Exception:
        return Never("nothing is left"), Nothing()
    return timetable, ticks


class Nothing:
    def between(self, after: int, until: int) -> list[int]:
        return []

    def next(self, after: int) -> None:
        return None


def test_new_tables_that_only_delay_starts_move_the_job_too() -> None:
    """A blackout between a tick and its delayed start changes no tick, but a forecast must not start inside it."""
    definition = job(CronEntry("0 * * * *"), jitter_ms=50 * MINUTE)
    timing, old, _ = made(definition)
    start = old.start_ms(NOON)
    window = blackout("freeze", [(from_ms(start - MINUTE), from_ms(start + MINUTE))])
    new = Timetable(old.entries, calendars=[BlackoutRule(window)], jitter=50 * 60, seed=definition.seed)
    assert new.start_ms(NOON) < start
    at = plan(timing, old, Position(NOON - HOUR), NOON - MINUTE, 5 * MINUTE).to
    assert at.cursor_ms == NOON
    assert moved(timing, old, old, at, "active", NOON + HOUR, NOON - MINUTE) is None
    assert moved(timing, old, new, at, "active", NOON + HOUR, NOON - MINUTE) is not None


def test_the_past_of_a_paused_job_belongs_to_the_old_tables() -> None:
    timing, old, _ = made(HOURLY)
    found = moved(timing, old, Never("none"), Position(NOON), "paused", None, NOON + 2 * HOUR)
    assert found is not None
    assert found.left.undecided == (NOON, NOON + 2 * HOUR)
    assert found.next_due_ms is None


@pytest.mark.parametrize("state", ["finished", "cancelled"])
def test_what_has_ended_is_not_moved(state: str) -> None:
    timing, old, _ = made(HOURLY)
    assert moved(timing, old, Never("none"), Position(NOON), state, None, NOON + HOUR) is None  # type: ignore[arg-type]


def test_a_timing_is_the_same_by_content() -> None:
    """Equal schedules share a timing; where the ticks depend on the name, they do not."""
    rule = MisfireRule("all")
    assert job(EveryEntry(HOUR, 0), misfire=rule).timing(1) == replace(
        job(EveryEntry(HOUR, 0), misfire=rule), name="b"
    ).timing(2)
    assert job(CronEntry("H * * * *")).timing(1) != replace(job(CronEntry("H * * * *")), name="b").timing(1)
    assert Timing.from_body(HOURLY.timing(1).body()) == HOURLY.timing(1)
