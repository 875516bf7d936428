"""What the stories of two stores are drawn from: small worlds, in which things meet."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final, TypeAlias

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.control import SCOPES, Scope, Wish
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Cancelled, Failed, Fault, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.rules import (
    CalendarUse,
    CronEntry,
    Entry,
    EveryEntry,
    MisfireRule,
    OnceEntry,
    OverlapPolicy,
    OverlapRule,
    RetryRule,
)
from fleetcron.model.target import PythonTarget
from fleetcron.times.instants import from_ms, iso, parse_instant, to_ms

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
BEGIN_MS: Final = to_ms(parse_instant("2026-11-01T05:58:30Z"))  # the clocks of New York go back in two minutes
TENANTS, POOLS, TYPES, NODES = ("t1", "t2"), ("p1", "p2"), ("x", "y"), ("n1", "n2", "n3")
JOBS: Final = (("t1", "a"), ("t1", "b"), ("t1", "c"), ("t2", "a"), ("t2", "d"))
LOOKED_AT: Final = (None, "planned", "waiting", "running", "dead", "retrying", "skipped", "cancelled", "succeeded")
_KNOWN: Final[Mapping[Scope, tuple[str, ...]]] = {"tenant": TENANTS, "pool": POOLS, "type": TYPES}

Move: TypeAlias = tuple[Any, ...]  # its name, and what it takes
# how often each is drawn
MOVES: Final = {
    "a_while": 14, "work": 16, "finish": 14, "finish_all": 5, "time_passes": 1, "promote": 1, "claim": 4,
    "finish_late": 1, "hand_back": 2, "bury": 2, "renew": 1, "say": 1, "join": 2, "go": 1, "handlers": 2,
    "apply": 3, "define": 1, "hold": 3, "end_job": 1, "calendar": 1, "trigger": 3, "cancel": 2, "reopen": 3,
    "replay_many": 1, "backfill": 2, "limit_tenant": 1, "limit_pool": 1, "switch": 3, "release": 3, "plan": 1,
    "plan_stale": 1, "fill": 1, "keep_up": 2, "look": 2, "look_at": 2,
}  # fmt: skip


class Dice:
    """Whatever happens in a story: picks are taken modulo what there is when a move is made."""

    def __init__(self, number: int) -> None:
        self._random = Random(number)
        self.one_of = self._random.choice

    def opening(self) -> list[Move]:
        """Calendars, jobs, workers, and perhaps limits."""
        first = [("calendar", CalendarDocument("freeze", tenant, windows=((0, 1000),))) for tenant in TENANTS]
        jobs = [("apply", self.definition()) for _ in range(6)]
        workers = [("join", node, 1 + number) for number, node in enumerate(NODES)]
        limits = [self.move(name) for name in ("limit_tenant", "limit_pool") if self.one_of((False, True))]
        return [*first, *jobs, *workers, *limits]

    def move(self, name: str) -> Move:
        drawn = getattr(self, f"_{name}", None)
        return (name, *drawn()) if drawn else (name,)

    # -- what people write

    def definition(self) -> Definition:
        one_of = self.one_of
        tenant, name = one_of(JOBS)
        others = [other for its, other in JOBS if its == tenant and other > name]
        overlap, misfire, rich = self._overlap(), self._misfire(), one_of((False, False, True))
        if overlap.policy == "cancel_previous" and misfire.policy == "all":
            misfire = MisfireRule("latest")
        depends = (one_of(others),) if rich and others and one_of((False, True)) else ()
        return Definition(
            name,
            tuple(self._entry() for _ in range(one_of((1, 2)) if rich else 1)),
            PythonTarget(one_of(("m:f", "m:g"))),
            tenant=tenant,
            type=one_of(TYPES),
            pool=one_of(POOLS),
            priority=one_of((0, 0, 5, -1)),
            payload={"n": one_of((0, 1, "ü"))},
            max_ticks=one_of((None, None, 2, 5)) if rich else None,
            jitter_ms=one_of((0, 800)) if rich else 0,
            calendars=one_of((*[()] * 8, (CalendarUse("freeze", on="defer"),), (CalendarUse("freeze"),))),
            retry=self._retry(),
            overlap=overlap,
            misfire=misfire,
            start_deadline_ms=MINUTE if depends else one_of((*[None] * 5, 2_500, MINUTE)),
            depends_on=depends,
            on_upstream_failure=one_of(("skip", "run", "wait")) if depends else "skip",
            pause_after_failures=one_of((None, None, None, 1, 2)),
        )

    def _entry(self) -> Entry:
        one_of = self.one_of
        if one_of((True, True, True, False)):
            return EveryEntry(one_of((SECOND, 2 * SECOND, 3 * SECOND, 3 * SECOND, 10 * SECOND)), one_of((0, None)))
        if one_of((True, True, False)):
            expression = one_of(("* * * * *", "*/20 * * * * *", "0 1-2 * * *", "58-59 1 * * *"))
            return CronEntry(expression, one_of(("UTC", "America/New_York")), dst_fold=one_of(("first", "both")))
        return OnceEntry(iso(from_ms(BEGIN_MS + one_of((-600, -30, 5, 20, 100)) * SECOND)))

    def _overlap(self) -> OverlapRule:
        one_of = self.one_of
        policy: OverlapPolicy = one_of(("skip", "queue", "collapse", "cancel_previous", "allow"))
        most = one_of((None, 1, 2)) if policy == "allow" else None
        return OverlapRule(policy, most, one_of((None, None, "k")))

    def _misfire(self) -> MisfireRule:
        one_of = self.one_of
        return MisfireRule(
            one_of(("skip", "latest", "all")),
            one_of((0, 15 * SECOND, HOUR)),
            one_of((1, 3, 6)),
            one_of((0, 500, 5 * SECOND, MINUTE)),
            one_of(("catchup", "live")),
        )

    def _retry(self) -> RetryRule:
        one_of = self.one_of
        return RetryRule(
            one_of((1, 2, 3)),
            one_of(("fixed", "exponential")),
            one_of(((0,), (700,), (2_000,))),
            max_losses=one_of((1, 2, 5)),
            give_up_on=one_of(((), ("broken",))),
        )

    def outcome(self) -> Outcome:
        broken = Fault(self.one_of(("broken", "late")), self.one_of(("no", 'ü "quoted" \\ ☃')))
        return self.one_of(
            (
                Succeeded(), Succeeded(), Succeeded(), Failed(broken), Failed(broken), Failed(broken, 4_000),
                TimedOut(broken), Snoozed(0.0), Snoozed(0.7), Cancelled("asked to"),
            )
        )  # fmt: skip

    # -- moves

    def _pick(self) -> int:
        return self._random.randrange(1000)

    def _picks(self, most: int = 3) -> list[int]:
        return [self._pick() for _ in range(self._random.randint(1, most))]

    def _time_passes(self) -> Move:
        return (self.one_of((1, 300, 1_000, 1_000, 2_500, 7_000, 31_000, 2 * MINUTE, HOUR)),)

    def _a_while(self) -> Move:
        ms = self.one_of((300, 1_000, 1_000, 1_000, 2_500, 7_000, 40_000))
        return ms, self.one_of((0, 2_000, 6_000)), self.one_of((0, 2, 50, 50))

    def _work(self) -> Move:
        return self.one_of(NODES), self.one_of((0, 500, 1_000, 3_000))

    def _finish(self) -> Move:
        return [(pick, self.outcome()) for pick in self._picks(4)], self.one_of((False, False, True))

    def _finish_all(self) -> Move:
        return (self._pick(),)

    def _finish_late(self) -> Move:
        return self._pick(), self.outcome()

    def _promote(self) -> Move:
        return self.one_of((0, 1_000)), self.one_of((1, 100))

    def _claim(self) -> Move:
        room, one_of = self._random.randint(0, 4), self.one_of
        wish = {
            "room": room,
            "catchup_room": self._random.randint(0, room),
            "lacks": one_of(((), (), ("python:m:g",))),
            "early_room": one_of((None, None, 0, 1)),
            "catchup_first": one_of((False, True)),
        }
        return one_of(NODES), one_of(POOLS), wish, one_of((False, False, True))

    def _hand_back(self) -> Move:
        return (self._picks(),)

    def _bury(self) -> Move:
        return self._pick(), self.one_of(NODES), self.one_of((False, True, True))

    def _renew(self) -> Move:
        return (self.one_of(NODES),)

    def _say(self) -> Move:
        return self._pick(), self._random.randrange(4), self.one_of((0.25, 1 / 3))

    def _join(self) -> Move:
        return self.one_of(NODES), self._random.randint(1, 3)

    def _go(self) -> Move:
        return self.one_of(NODES), self.one_of(("leave", "close_pools", "forsake"))

    def _handlers(self) -> Move:
        return self.one_of(NODES), self.one_of((False, True))

    def _apply(self) -> Move:
        return (self.definition(),)

    def _define(self) -> Move:
        return self.definition(), self.one_of(("create", "edit"))

    def _hold(self) -> Move:
        return self.one_of(JOBS), self.one_of((None, "skip", "latest", "all")), self.one_of(("pause", "resume"))

    def _end_job(self) -> Move:
        return self.one_of(JOBS), self.one_of(("cancel_job", "delete_job"))

    def _calendar(self) -> Move:
        begin = BEGIN_MS + self.one_of((-3600, 0, 8, 60)) * SECOND
        window = begin, begin + self.one_of((3, 20, 7200)) * SECOND
        return (CalendarDocument("freeze", self.one_of(TENANTS), windows=(window,)),)

    def _trigger(self) -> Move:
        return self.one_of(JOBS), self.one_of((None, {"n": 1})), self.one_of(("k1", "k2", "k3", "k4"))

    def _cancel(self) -> Move:
        return self._picks(), self.one_of((None, "no more"))

    def _reopen(self) -> Move:
        return self._picks(), self.one_of(("replay", "replay", "discard"))

    def _replay_many(self) -> Move:
        return self.one_of((None, *TENANTS)), self.one_of((1, 10))

    def _backfill(self) -> Move:
        return self.one_of(JOBS), self.one_of((5_000, 30_000)), self.one_of((2_000, 30_000))

    def _limit_tenant(self) -> Move:
        fields = {
            "weight": (1, 3), "max_jobs": (None, None, 3), "max_in_flight": (None, 1, 2), "rate": (None, "1/s", "5/s"),
            "burst": (1, 3),
        }  # fmt: skip
        return self.one_of(TENANTS), self._some_of(fields)

    def _limit_pool(self) -> Move:
        fields: dict[str, tuple[Any, ...]] = {
            "slots": (None, 1, 3),
            "per_tenant": (None, 1, 2),
            "per_type": ({}, {"x": 1}, {"x": 2, "y": 1}),
        }
        return self.one_of(POOLS), self._some_of(fields)

    def _some_of(self, fields: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        return {name: self.one_of(values) for name, values in fields.items() if self.one_of((False, True))}

    def _switch(self) -> Move:
        one_of, scope = self.one_of, self.one_of(SCOPES)
        percent, attempts, backoff = one_of((None, 0, 50, 100)), one_of((None, 1, 2)), one_of((None, 1.0, 3.0))
        for_ms = one_of((None, 2_000, HOUR))
        return (Wish(scope, one_of(_KNOWN[scope]), percent, attempts, backoff, for_ms, "an incident"),)

    def _release(self) -> Move:
        scope = self.one_of(SCOPES)
        return scope, self.one_of(_KNOWN[scope])

    def _plan(self) -> Move:
        return (self.one_of((0, 3_000)),)

    def _fill(self) -> Move:
        return (self.one_of((0, 1, 5, 100)),)

    def _look(self) -> Move:
        return self.one_of(JOBS), self.one_of(LOOKED_AT)

    def _look_at(self) -> Move:
        return (self._pick(),)
