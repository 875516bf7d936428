"""When which fault happens: decided before the world begins, each kind by its own chance."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple

from tests.simulate.scenario import Scenario

STEPS: Final = (
    "advance.fence", "advance.write", "claim.begin", "claim.written", "finish.begin", "finish.written", "gaps.decided",
    "gaps.write", "hand_back.written", "node.heartbeat", "promote.lock", "promote.written", "shards.taken",
    "shards.taking", "shards.renewed", "shards.written", "store.began", "store.commit", "store.committed",
    "sweep.written", "tick.due", "tick.planned", "tick.written", "worker.bury", "worker.buried", "worker.forsake",
    "worker.forsaken", "worker.join", "worker.renew",
)  # fmt: skip

# What nodes ask the store for; a fault may be aimed at one of them.
VERBS: Final = (
    "Attempts.finish", "Attempts.hand_back", "Claims.claim", "Cursors.advance", "Workers.bury", "Workers.forsake",
    "Workers.join", "Workers.leave", "Workers.renew",
)  # fmt: skip


class Blow(NamedTuple):
    """Something that happens at an instant and lasts for a while."""

    at_s: float
    kind: str
    slot: str | None
    lasts_s: float
    detail: tuple[object, ...] = ()


def planned(scenario: Scenario) -> list[Blow]:
    """In the order in which they happen. All of them have ended when everything is healed."""
    end_s = scenario.minutes * 60
    found = [
        blow
        for kind in scenario.faults
        if kind in _DRAW
        for blow in _DRAW[kind](scenario, Random(f"{scenario.seed}/faults/{kind}"))
        if blow.at_s < end_s
    ]
    return sorted(found, key=lambda blow: (blow.at_s, blow.kind))


def _times(scenario: Scenario, chance: Random, mean_s: float, horizon_s: float = 3600.0) -> Iterator[float]:
    """Not depending on how long the world lasts: a shorter one has the same beginning."""
    mean_s /= 3 if scenario.is_dense else 1
    at_s = 20 + chance.expovariate(1 / mean_s)
    while at_s < horizon_s:
        yield at_s
        at_s += 5 + chance.expovariate(1 / mean_s)


def _slot(scenario: Scenario, chance: Random) -> str:
    return chance.choice(scenario.slots).name


def _kills(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 120):
        yield Blow(at_s, "kill", _slot(scenario, chance), chance.choice((0.3, 2, 8, 30)) * chance.uniform(0.5, 1.5))


def _steps(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 60):
        slot, name, times = _slot(scenario, chance), chance.choice(STEPS), chance.randint(1, 4)
        yield Blow(at_s, "step", slot, chance.uniform(0.3, 10), (name, times))


def _freezes(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 120):
        lasts_s = chance.choice((1, scenario.ttl_s, 2 * scenario.ttl_s, 4 * scenario.ttl_s)) * chance.uniform(0.6, 1.4)
        yield Blow(at_s, "freeze", _slot(scenario, chance), lasts_s)


def _cuts(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 120):
        lasts_s = chance.choice((2, 10, scenario.ttl_s, 3 * scenario.ttl_s)) * chance.uniform(0.6, 1.4)
        yield Blow(at_s, "cut", _slot(scenario, chance), lasts_s, (chance.choice(("there", "back", "both")),))


def _lossy(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 120):
        shares = chance.choice(((0.05, 0.0), (0.0, 0.05), (0.1, 0.1), (0.0, 0.3)))
        yield Blow(at_s, "lossy", None, chance.uniform(20, 120), shares)


def _straggle(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 120):
        yield Blow(at_s, "straggle", None, chance.uniform(20, 120), (chance.choice((0.02, 0.1)),))


def _slow(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 150):
        yield Blow(at_s, "slow", None, chance.uniform(10, 90), (chance.choice((0.1, 0.5, 0.9)),))


def _down(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 250):
        yield Blow(at_s, "down", None, chance.choice((0.2, 3, 20, 90)) * chance.uniform(0.5, 1.5))


def _node_clock(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 90):
        shift_ms = chance.choice((1, -1)) * chance.choice((500, 5_000, 60_000, 86_400_000))
        yield Blow(at_s, "node_clock", _slot(scenario, chance), chance.uniform(5, 200), (shift_ms,))


def _database_clock(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 240):
        shift_ms = chance.choice((1, -1)) * chance.choice((300, 3_000, 20_000, 60_000))
        yield Blow(at_s, "database_clock", None, chance.uniform(1, 240), (shift_ms,))


def _outage(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 500):
        yield Blow(at_s, "outage", None, chance.choice((15, 60, 180)) * chance.uniform(0.7, 1.5))


def _rolling(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    for at_s in _times(scenario, chance, 200):
        yield Blow(at_s, "rolling", None, chance.uniform(1, 20))


def _aimed(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    """Requests of one kind arrive late, get lost, or their answers do, or come when hardly anybody waits any more."""
    for at_s in _times(scenario, chance, 60):
        how, share = chance.choice(("late", "late", "back", "there", "slow")), chance.choice((0.3, 0.7, 0.95))
        yield Blow(at_s, "aimed", None, chance.uniform(5, 60), (chance.choice(VERBS), how, share))


def _limits(scenario: Scenario, chance: Random) -> Iterator[Blow]:
    """People change limits and hold runs back: it is not to lose anything."""
    for at_s in _times(scenario, chance, 100):
        what: tuple[object, ...] = chance.choice(
            (
                ("tenant", "acme", "max_in_flight", chance.choice((1, 2, None))),
                ("tenant", "zeta", "rate", chance.choice(("1/s", "20/m", None))),
                ("pool", "default", "slots", chance.choice((1, 3, None))),
                ("hold", "tenant", "acme", chance.choice((0, 50))),
                ("hold", "pool", "side", 0),
            )
        )
        yield Blow(at_s, "limits", None, chance.uniform(10, 120), what)


_DRAW: Final[dict[str, Callable[[Scenario, Random], Iterator[Blow]]]] = {
    "kill": _kills, "step": _steps, "freeze": _freezes, "cut": _cuts, "lossy": _lossy, "straggle": _straggle,
    "slow": _slow, "down": _down, "node_clock": _node_clock, "database_clock": _database_clock, "outage": _outage,
    "rolling": _rolling, "limits": _limits, "aimed": _aimed,
}  # fmt: skip
