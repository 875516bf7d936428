"""Known-bad variants: how ticks become runs, and which runs may be beside each other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from fleetcron.coordination.holder import Holder
from fleetcron.model.definition import Definition
from fleetcron.model.shard import Held
from fleetcron.policy import misfire, overlap
from fleetcron.scheduler.loop import Scheduler
from fleetcron.store.cursors import Advanced, Cursors
from fleetcron.store.engine import Script
from fleetcron.store.statements import Statements, parse
from fleetcron.store.written import Ok, Unknown
from fleetcron.times.timetable import Timetable
from fleetcron.worker import loop as worker_loop
from tests.simulate.changing import put, text, without_index


def insert_and_advance_apart() -> None:
    """The cursor is committed, and then the runs are inserted."""
    known = Statements.for_engine("sqlite")._statements
    whole = known["cursors_advance_if_unmoved"]
    cut = next(at for at, text in enumerate(whole.before) if text.startswith("INSERT INTO runs"))
    first = ";\n".join((*whole.before[:cut], "SELECT :ticks, :answers, :gaps, :epoch, :now_ms, 0 AS jobs"))
    known["advance_first"] = parse("sqlite", "advance_first", f"-- move\n{first}")
    sequence = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0)"
    mark = f"DELETE FROM temp.mark;\nINSERT INTO temp.mark {sequence}"
    second = ";\n".join((mark, *whole.before[cut:], whole.sql))
    known["advance_second"] = parse("sqlite", "advance_second", f"-- write\n{second}")
    real = Cursors.advance

    async def advance(self: Cursors, held: Sequence[Held], moves: Any, **facts: Any) -> Any:
        engine = self._engine

        class Apart:
            name = engine.name

            async def write(self, script: Callable[[], Script[Any]]) -> Any:
                found: list[Any] = []

                def move() -> Script[Any]:
                    work = script()
                    answer = next(work)
                    while answer[0] != "cursors_advance_if_unmoved":
                        try:
                            answer = work.send((yield answer))
                        except StopIteration as refused:
                            return refused.value
                    _, call = answer
                    yield "advance_first", call
                    found[:] = [call]
                    return None

                moved = await engine.write(move)
                if not found or not isinstance(moved, Ok):
                    return moved
                [call] = found
                left = {key: call[key] for key in known["advance_second"].parameters}

                def write() -> Script[Any]:
                    [done] = yield "advance_second", left
                    yield "notify", {"topic": "work"}
                    return Advanced(done["jobs"], done["runs"], 0, int(done["answered"]))

                return await engine.write(write)

        return await real(Cursors(Apart()), held, moves, **facts)  # type: ignore[arg-type]

    put(Cursors, "advance", advance)


def no_compare_and_set() -> None:
    text(
        "cursors_advance_if_unmoved",
        ("AND p.cursor_ms = c.cursor_ms AND p.ticks_used = c.ticks_used", ""),
        ("i.next_due_ms <= :horizon_ms", ":horizon_ms IS NOT NULL"),  # whoever was planned is not due: the same guard
        ("INSERT INTO temp.batch", "INSERT OR REPLACE INTO temp.batch"),
    )


def no_fence() -> None:
    text("shards_fence", ("AND t.term = h.value ->> 'term'", ""))
    put(Holder, "held", lambda self: sorted(self._until_ms))
    put(Holder, "_drop", lambda self, held: None)


def no_unique_tick() -> None:
    without_index("runs_one_per_tick")
    clause = "ON CONFLICT (job_id, scheduled_for_ms) WHERE kind <> 'manual' DO NOTHING"
    for name in ("cursors_advance_if_unmoved", "runs_insert_if_absent"):
        text(name, (clause, ""))


def no_guard_of_ticks() -> None:
    no_unique_tick()
    no_compare_and_set()
    no_fence()


def only_the_key() -> None:
    no_compare_and_set()
    no_fence()


def only_the_compare_and_set() -> None:
    no_unique_tick()
    no_fence()


def only_the_fence() -> None:
    no_unique_tick()
    no_compare_and_set()


def unwritten_plans_are_forgotten() -> None:
    """A plan in memory that logs errors and goes on: who was planned once is not planned again."""
    advance, due = Cursors.advance, Cursors.due
    done: dict[int, set[tuple[int, int]]] = {}

    async def forgetful(self: Cursors, held: Any, moves: Any, **facts: Any) -> Any:
        written = await advance(self, held, moves, **facts)
        if isinstance(written, Unknown):
            done.setdefault(id(self), set()).update((each.group.timing_id, each.group.at.cursor_ms) for each in moves)
        return written

    async def rest(self: Cursors, *arguments: Any) -> Any:
        found = await due(self, *arguments)
        known = done.get(id(self), set())
        return replace(found, groups=tuple(g for g in found.groups if (g.timing_id, g.at.cursor_ms) not in known))

    put(Cursors, "advance", forgetful)
    put(Cursors, "due", rest)


def recovery_drops_silently() -> None:
    real = misfire._answer

    def silent(timetable: Any, after: int, until: int, answer: str, reason: Any, **more: Any) -> Any:
        return (
            iter(()) if reason in ("too_old", "over_limit") else real(timetable, after, until, answer, reason, **more)
        )

    put(misfire, "_answer", silent)


def looks_each_minute() -> None:
    step = Scheduler.step

    async def rarely(self: Scheduler) -> int:
        return 60_000 if await step(self) else 0

    put(Scheduler, "step", rarely)


def no_calendars() -> None:
    timing = Definition.timing
    put(Definition, "timing", lambda self, created_ms: replace(timing(self, created_ms), calendars=(), tenant=""))


def served_as_they_come() -> None:
    numbers = count()
    put(worker_loop, "ranks", lambda wanted, shares: ([next(numbers) for _ in wanted], {}))


def no_jitter() -> None:
    put(Timetable, "start_ms", lambda self, tick: tick)


def skip_by_who_looks_when() -> None:
    put(overlap, "_was_final", lambda before, at_ms: before.finished_ms is not None)


def replayed_runs_count_again() -> None:
    text("runs_previous", ("AND i.lane = 'live' AND i.round = 0", "AND (i.lane = 'live' OR i.round > 0)"))


def no_key_on_leases() -> None:
    without_index("leases_exclusive")
    without_index("leases_one_of_job")


def claim_without_looking_at_keys() -> None:
    text("leases_of_keys", ("WHERE", "WHERE false AND"))
    _no_key_and_no_second_look()


def cancel_does_not_wait() -> None:
    real = overlap._instead

    def at_once(run: Any, facts: Any, holders: Any, gone: Any) -> Any:
        found = real(run, facts, holders, gone)
        if found.cancel is not None:
            holders[:] = [each for each in holders if each.run_id != found.cancel]
            return overlap.Overlapped(cancel=found.cancel)
        return found

    put(overlap, "_instead", at_once)
    _no_key_and_no_second_look()


def _no_key_and_no_second_look() -> None:
    """A claim looks once more who holds a key, after it has written its own leases."""
    text("leases_crowds", ("WHERE", "WHERE false AND"))
    no_key_on_leases()


def nobody_is_let_go_on() -> None:
    text("queue_release", ("WHERE", "WHERE false AND"))
