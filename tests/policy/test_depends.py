"""Dependencies: what upstream jobs let a run do, and which ones a job may have."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcron.model.states import RunState
from fleetcron.model.upstream import COUNTED, FRONT, OnUpstreamFailure, Upstream
from fleetcron.policy.depends import (
    LOOK_AT_FAILED_MS,
    LOOK_FIRST_MS,
    LOOK_LONGEST_MS,
    LOOK_MS,
    LOOKS_PER_S,
    Ready,
    SkipBecause,
    Verdict,
    WaitFor,
    cycle,
    refusals,
    upstream_first,
    verdict,
)

NOW = 1_000_000
OPEN = [state for state in RunState if not state.is_final]
FAILED = [state for state in RunState if state.is_final and state != "succeeded"]


def upstream(
    answer: str | None,
    on_failure: OnUpstreamFailure = "skip",
    *,
    undecided: bool = False,
    paused: bool = False,
    name: str = "load",
) -> Upstream:
    state = RunState(answer) if answer not in (None, "missed") else answer
    return Upstream(f"id-{name}", name, on_failure, state, undecided, paused)  # type: ignore[arg-type]


def of(*upstreams: Upstream, deadline_ms: int | None = None) -> Verdict:
    return verdict(upstreams, NOW, deadline_ms)


def waiting(text: str, look_ms: int = LOOK_FIRST_MS, name: str = "load") -> WaitFor:
    return WaitFor(f"id-{name}", NOW + look_ms, text)


def test_without_upstream_jobs_nothing_holds_it() -> None:
    assert of() == Ready()


@pytest.mark.parametrize("on_failure", ["skip", "run", "wait"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_success_satisfies(on_failure: OnUpstreamFailure, paused: bool) -> None:
    """S1-19: also if the upstream was paused after it."""
    assert of(upstream("succeeded", on_failure, paused=paused)) == Ready()


def test_no_tick_in_the_period_satisfies() -> None:
    """S1-9: a weekly upstream does not stop a daily job on the other days."""
    assert of(upstream(None)) == Ready()


@pytest.mark.parametrize("on_failure", ["skip", "run", "wait"])
@pytest.mark.parametrize("state", OPEN)
def test_a_run_that_is_not_over_is_waited_for(state: RunState, on_failure: OnUpstreamFailure) -> None:
    """S1-20: whatever is to happen if it fails."""
    assert of(upstream(state, on_failure)) == waiting(f"upstream load is {state}")


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("answer", [None, "missed", *FAILED, "succeeded"])
def test_a_later_tick_that_nobody_decided_is_waited_for(answer: str | None, paused: bool) -> None:
    """S1-20: it will be the latest of the period, so what the one before it became does not matter."""
    assert of(upstream(answer, undecided=True, paused=paused)) == waiting("upstream load is not decided")


@pytest.mark.parametrize("answer", [*FAILED, "missed"])
def test_a_failure_does_what_the_job_says(answer: str) -> None:
    assert of(upstream(answer, "skip")) == SkipBecause(f"upstream load is {answer}")
    assert of(upstream(answer, "run")) == Ready()
    assert of(upstream(answer, "wait")) == waiting(f"upstream load is {answer}", LOOK_AT_FAILED_MS)


def test_a_paused_upstream_without_an_answer_failed() -> None:
    assert of(upstream(None, "skip", paused=True)) == SkipBecause("upstream load is paused")
    assert of(upstream(None, "run", paused=True)) == Ready()
    assert of(upstream(None, "wait", paused=True)) == waiting("upstream load is paused", LOOK_AT_FAILED_MS)


def test_all_must_be_satisfied_and_a_skip_wins() -> None:
    done, running = upstream("succeeded", name="a"), upstream("running", name="b")
    dead, late = upstream("dead", name="c"), upstream("missed", name="d")
    assert of(done, running) == waiting("upstream b is running", name="b")
    assert of(running, dead, done) == SkipBecause("upstream c is dead")
    assert of(late, dead) == SkipBecause("upstream c is dead")
    assert of(done, upstream("dead", "run", name="c")) == Ready()
    assert of(upstream("dead", "wait", name="a"), running) == waiting("upstream a is dead", name="a")  # the sooner look


def test_it_is_looked_at_when_its_deadline_has_passed() -> None:
    """Start deadlines are checked when a run is looked at: the last millisecond is in time, the next is not."""
    assert of(upstream("running"), deadline_ms=NOW + 10) == WaitFor("id-load", NOW + 11, "upstream load is running")
    assert of(upstream("running"), deadline_ms=NOW + LOOK_FIRST_MS) == waiting("upstream load is running")
    assert of(upstream("running"), deadline_ms=NOW - 1) == waiting("upstream load is running")


@pytest.mark.parametrize(
    ("waited_ms", "look_ms"),
    [(None, LOOK_FIRST_MS), (0, LOOK_FIRST_MS), (-5, LOOK_FIRST_MS), (700, 700), (4_999, 4_999), (90_000, LOOK_MS)],
)
def test_it_looks_soon_at_first_and_then_now_and_then(waited_ms: int | None, look_ms: int) -> None:
    """An end that was written while it was being parked has missed it: that costs a moment, not a sweep. A clock that
    was put back makes nobody look at once for ever."""
    since_ms = None if waited_ms is None else NOW - waited_ms
    for each in (upstream("running"), upstream(None, undecided=True)):
        found = verdict([each], NOW, None, since_ms)
        assert isinstance(found, WaitFor)
        assert found.look_ms == NOW + look_ms


def look_of(waiting: int, *, in_front: bool = False, waited_ms: int = 0, answer: str = "running") -> int:
    """After how long it is looked at again, with so many that wait for the same job."""
    crowded = upstream(answer, "wait")._replace(waiting=waiting, in_front=in_front)
    found = verdict([crowded, upstream("running", name="other")], NOW, None, NOW - waited_ms)
    assert isinstance(found, WaitFor)
    return found.look_ms - NOW


def test_the_more_wait_the_longer_each() -> None:
    """Together they are looked at no more often than LOOKS_PER_S, whatever their number; a few as soon as ever."""
    assert [look_of(waiting) for waiting in (0, 19, 20, 21, 2_000)] == [200, 200, 200, 210, 20_000]
    assert [look_of(waiting, waited_ms=90_000) for waiting in (0, 500, 600)] == [LOOK_MS, LOOK_MS, 6_000]
    for waiting in (2_000, COUNTED):
        assert waiting / look_of(waiting) * 1000 <= LOOKS_PER_S
    assert [look_of(waiting, answer="dead") for waiting in (10, 9_000)] == [LOOK_FIRST_MS, 90_000]


def test_more_than_are_counted_are_looked_at_half_as_often_each_time() -> None:
    full_ms = COUNTED * 1000 // LOOKS_PER_S
    waited = [0, full_ms, 2 * full_ms, 10**9]
    assert [look_of(COUNTED, waited_ms=ms) for ms in waited] == [full_ms, full_ms, 2 * full_ms, LOOK_LONGEST_MS]


def test_the_first_ones_are_not_kept_waiting_for_the_others() -> None:
    assert [look_of(waiting, in_front=True) for waiting in (0, 100, COUNTED)] == [200, 1_000, LOOK_MS]
    assert FRONT * 1000 / LOOK_MS <= LOOKS_PER_S


def test_a_deadline_is_looked_at_however_many_wait() -> None:
    crowded = upstream("running")._replace(waiting=COUNTED, in_front=False)
    assert verdict([crowded], NOW, NOW + 700) == WaitFor("id-load", NOW + 701, "upstream load is running")


upstreams = st.builds(
    upstream,
    st.sampled_from([None, "missed", *RunState]),
    st.sampled_from(["skip", "run", "wait"]),
    undecided=st.booleans(),
    paused=st.booleans(),
    name=st.sampled_from("abcde"),
)


@given(st.lists(upstreams, max_size=5, unique_by=lambda each: each.name), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(some: list[Upstream], random: Random) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    alone = [of(each) for each in some]
    told = of(*some)
    assert of(*shuffled) == told
    worst = max([SkipBecause, WaitFor, Ready], key=lambda kind: any(isinstance(each, kind) for each in alone))
    assert isinstance(told, worst if alone else Ready)
    if isinstance(told, WaitFor):
        assert told.look_ms == min(each.look_ms for each in alone if isinstance(each, WaitFor) and each.look_ms)


# -- which dependencies a job may have


@pytest.mark.parametrize(
    ("edges", "way"),
    [
        ({}, None),
        ({"a": ["b"], "b": []}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c", "a"]),
        ({"a": ["b", "c"], "b": ["d"], "d": ["c"], "c": ["a"]}, ["a", "c", "a"]),  # the shortest
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, None),  # somebody else's
        ({"a": ["gone"]}, None),
    ],
)
def test_a_cycle_is_found(edges: dict[str, list[str]], way: list[str] | None) -> None:
    assert cycle(edges, "a") == way


def test_refusals_say_the_cycle_from_each_of_its_jobs() -> None:
    """S1-9."""
    text = "its dependencies would close a cycle: {}; leave one of them out"
    assert refusals({"a": ["b"], "b": ["c"]}, {"c": ["a"]}) == {
        "a": text.format("a → b → c → a"),
        "b": text.format("b → c → a → b"),
    }
    assert refusals({"c": ["a"]}, {"a": ["b"], "b": [], "c": []}) == {}
    assert refusals({"x": ["y"]}, {"y": ["z"], "z": ["y"]}) == {}  # an old cycle that it does not close


def test_an_upstream_must_exist_or_come_along() -> None:
    assert refusals({"b": ["a"], "a": []}, {}) == {}
    assert refusals({"b": ["a"]}, {"a": []}) == {}
    assert refusals({"b": ["a"]}, {}) == {
        "b": "it depends on a, which does not exist; create it first, or in the same file"
    }


def test_who_depends_on_a_refused_job_is_refused_if_it_does_not_exist() -> None:
    refused = refusals({"c": ["b"], "b": ["a"], "d": ["e"], "e": ["a"]}, {"e": []})
    assert sorted(refused) == ["b", "c", "e"]  # e is stored, without what it wanted, so d can depend on it
    assert refused["c"] == "it depends on b, which was refused; mend that one first"


def test_an_edit_that_is_refused_leaves_its_old_dependencies() -> None:
    """a would no longer depend on b, if its new upstream existed; as it does not, b cannot depend on a."""
    refused = refusals({"a": ["nobody"], "b": ["a"]}, {"a": ["b"], "b": []})
    assert set(refused) == {"a", "b"}
    assert "b → a → b" in refused["b"]


def test_long_chains_are_walked() -> None:
    edges = {str(at): [str(at + 1)] for at in range(20_000)}
    assert upstream_first(edges)[0] == "19999"
    assert cycle(edges | {"20000": ["0"]}, "5") is not None
    assert refusals(edges, {"20000": []}) == {}


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.lists(names, max_size=3, unique=True), max_size=6)


@given(graphs, graphs)
def test_what_is_not_refused_has_all_upstreams_and_no_cycle(
    wanted: dict[str, list[str]], old: dict[str, list[str]]
) -> None:
    """Against the definition, with every walk tried. And nothing is refused where all of it is right."""
    stored = {name: [need for need in needs if need in old and need > name] for name, needs in old.items()}
    refused = refusals(wanted, stored)
    left = {name: needs for name, needs in wanted.items() if name not in refused}
    edges = {**stored, **left}
    assert all(need in edges for needs in left.values() for need in needs)
    assert not any(name in _reached(edges, name) for name in edges)
    whole = {**stored, **wanted}
    if not any(name in _reached(whole, name) or not whole.keys() >= set(whole[name]) for name in whole):
        assert not refused
    for name, why in refused.items():
        assert "cycle" in why or any(need not in edges for need in wanted[name])
    reordered = dict(reversed(wanted.items()))
    assert set(refusals(reordered, stored)) == set(refused)


def _reached(edges: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    while True:
        more = {need for name in {start, *found} for need in edges.get(name, [])} - found
        if not more:
            return found
        found |= more


@given(graphs)
def test_upstream_first_is_an_order_of_all(edges: dict[str, list[str]]) -> None:
    order = upstream_first(edges)
    assert sorted(order) == sorted(edges)
    if not any(name in _reached(edges, name) for name in edges):
        for name, needs in edges.items():
            assert all(order.index(need) < order.index(name) for need in needs if need in edges)
