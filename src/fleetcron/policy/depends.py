"""Whether a run may start, as far as its upstream jobs are concerned, and which dependencies a job may have. Pure.

S1-19: a dependency is matched by period, whatever the schedules: the latest tick of the upstream in (previous tick, own
tick] has to have succeeded. S1-20: what is not decided yet is waited for.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from fleetcron.model.states import RunState
from fleetcron.model.upstream import COUNTED, Upstream

# The end of an upstream run lets its dependants go at once; if many wait, the first of them, and whoever gets through
# the next. Answers in the ledger and decided gaps do not, and an end that is written while somebody is being parked can
# miss him (no lock could make them wait for each other without the danger of a deadlock: an end has leases that claims
# wait for). Hence a look now and then: soon after the first park, since that is when an end can have been missed, and
# after as long as it has waited already, up to the most.
LOOK_FIRST_MS: Final = 200
LOOK_MS: Final = 5_000
LOOK_AT_FAILED_MS: Final = 30_000  # only a replay can help, and its end lets them go
# Whoever is looked at again stands where he stood: in front of all that came later. 20,000 that came back every 5 s let
# nobody through, not even the job that they waited for. So the more wait, the longer each: together they come back no
# faster than this, a small part of what one worker can look at. Above what is counted, each look is twice as far away.
LOOKS_PER_S: Final = 100
LOOK_LONGEST_MS: Final = 600_000

N = TypeVar("N", bound=Hashable)


class Ready(NamedTuple):
    pass


class WaitFor(NamedTuple):
    """`look_ms` is when to look again at the latest."""

    job_id: str
    look_ms: int
    text: str = ""


class SkipBecause(NamedTuple):
    text: str


Verdict: TypeAlias = Ready | WaitFor | SkipBecause


def verdict(
    upstreams: Sequence[Upstream], now_ms: int, deadline_ms: int | None, since_ms: int | None = None
) -> Verdict:
    """All must be satisfied. One that failed and skips is the end, whatever the others will become. `since_ms` is when
    it first had to wait for anything."""
    waited_ms = 0 if since_ms is None else now_ms - since_ms
    soon_ms = now_ms + min(max(waited_ms, LOOK_FIRST_MS), LOOK_MS)
    each = [(upstream, _of_one(upstream, now_ms, soon_ms)) for upstream in sorted(upstreams, key=_by_name)]
    skip = next((one for _, one in each if isinstance(one, SkipBecause)), None)
    if skip is not None:
        return skip
    waits = [(upstream, one) for upstream, one in each if isinstance(one, WaitFor)]
    if not waits:
        return Ready()
    upstream, first = waits[0]  # it waits among all those that wait for this one
    look_ms = max(min(one.look_ms for _, one in waits), now_ms + _turn_ms(upstream, waited_ms))
    if deadline_ms is not None and deadline_ms >= now_ms:
        look_ms = min(look_ms, deadline_ms + 1)  # the first instant at which it is too late
    return first._replace(look_ms=look_ms)


def _turn_ms(upstream: Upstream, waited_ms: int) -> int:
    """After how long it is looked at again among all that wait for the same job."""
    turn_ms = upstream.waiting * 1000 // LOOKS_PER_S
    if upstream.in_front:
        return min(turn_ms, LOOK_MS)
    return max(turn_ms, min(waited_ms, LOOK_LONGEST_MS)) if upstream.waiting >= COUNTED else turn_ms


def _by_name(upstream: Upstream) -> tuple[str, str]:
    return upstream.name, upstream.job_id


def _of_one(upstream: Upstream, now_ms: int, soon_ms: int) -> Verdict:
    name, answer = upstream.name, upstream.answer
    if upstream.undecided:  # before all else: a later tick in the period would count instead
        return WaitFor(upstream.job_id, soon_ms, f"upstream {name} is not decided")
    # Also if it is paused since its success: a pause may last for weeks, and whether ticks fall into it is not known
    # here (who is paused has no next tick). As soon as it is resumed they are a gap, which is undecided.
    if upstream.is_satisfied:
        return Ready()
    if answer is None:
        return _failed(upstream, "paused", now_ms)
    if isinstance(answer, RunState) and not answer.is_final:
        return WaitFor(upstream.job_id, soon_ms, f"upstream {name} is {answer}")
    return _failed(upstream, answer, now_ms)


def _failed(upstream: Upstream, state: str, now_ms: int) -> Verdict:
    match upstream.on_failure:
        case "skip":
            return SkipBecause(f"upstream {upstream.name} is {state}")
        case "run":
            return Ready()
        case "wait":  # a replay may make it succeed; otherwise the start deadline is the end
            return WaitFor(upstream.job_id, now_ms + LOOK_AT_FAILED_MS, f"upstream {upstream.name} is {state}")


def refusals(wanted: Mapping[str, Sequence[str]], stored: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Which of the jobs of a tenant that are to be written cannot be, and why. The order of the jobs does not matter.

    `wanted` has what each is to depend on, `stored` the same for all jobs that exist and that they reach. A job that is
    refused stays as it is stored, or does not come to exist, which may refuse others.
    """
    refused: dict[str, str] = {}
    while True:
        left = {name: needs for name, needs in wanted.items() if name not in refused}
        edges = {**stored, **left}
        found = _without_upstream(left, edges, refused) or _in_cycles(left, edges)
        if not found:
            return refused
        refused |= found


def cycle(edges: Mapping[N, Sequence[N]], start: N) -> list[N] | None:
    """The shortest way from a job back to itself, both ends included; None if there is none."""
    came_from: dict[N, N] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for need in edges.get(name, ()):
            if need == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if need not in came_from:
                came_from[need] = name
                queue.append(need)
    return None


def upstream_first(edges: Mapping[N, Sequence[N]]) -> list[N]:
    """The jobs in an order in which each comes after those it depends on, as far as there is no cycle."""
    order: list[N] = []
    seen: set[N] = set()
    for root in edges:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(edges[root]))]
        while path:
            name, needs = path[-1]
            deeper = next((need for need in needs if need in edges and need not in seen), None)
            if deeper is None:
                order.append(name)
                path.pop()
            else:
                seen.add(deeper)
                path.append((deeper, iter(edges[deeper])))
    return order


def _without_upstream(
    left: Mapping[str, Sequence[str]], edges: Mapping[str, Sequence[str]], refused: Mapping[str, str]
) -> dict[str, str]:
    found = {}
    for name, needs in left.items():
        lacking = [need for need in needs if need not in edges]
        if lacking:
            was = "was refused" if lacking[0] in refused else "does not exist"
            hint = "mend that one first" if lacking[0] in refused else "create it first, or in the same file"
            found[name] = f"it depends on {lacking[0]}, which {was}; {hint}"
    return found


def _in_cycles(left: Mapping[str, Sequence[str]], edges: Mapping[str, Sequence[str]]) -> dict[str, str]:
    place = {name: at for at, name in enumerate(upstream_first(edges))}
    if all(place[need] < place[name] for name, needs in edges.items() for need in needs if need in place):
        return {}  # the usual case, in one walk
    found = {}
    for name in left:
        way = cycle(edges, name)
        if way is not None:
            found[name] = f"its dependencies would close a cycle: {' → '.join(way)}; leave one of them out"
    return found
