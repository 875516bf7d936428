"""Why a run stands where it stands, in one sentence that names what it waits for. Pure.

S3-7, S3-21: whoever asks why something has not run should not have to read tables.
"""

from collections.abc import Sequence
from typing import Final, get_args

from fleetcron.model.queued import stands_alone
from fleetcron.model.rules import OverlapPolicy
from fleetcron.model.run import RunLine, Waiting
from fleetcron.model.situation import KeyHolder, Situation
from fleetcron.model.states import RunState
from fleetcron.model.target import NO_PUBLISHER
from fleetcron.model.upstream import Upstream
from fleetcron.policy.depends import WaitFor, verdict
from fleetcron.times.durations import rough_text
from fleetcron.times.instants import from_ms

_SHOWN: Final = 5  # workers, or reasons


def why(known: Situation) -> str:
    line = known.line
    if known.ended is not None and line.node_id is None and not line.run.state.is_final:
        return _and_nobody_works(known, _ends(known))
    match line.run.state:
        case RunState.PLANNED:
            return _planned(known)
        case RunState.WAITING:
            return _and_nobody_works(known, _waits(known))
        case RunState.RUNNING | RunState.DISPATCHED:
            return _running(line)
        case RunState.RETRYING:
            return _retrying(known)
        case RunState.SUCCEEDED:
            return _succeeded(line)
        case RunState.DEAD:
            return f"dead after {_tries(line)}{_because(line)}"
        case RunState.MERGED:
            return f"merged into run {line.run.covered_by}{_because(line)}"
        case RunState.SKIPPED | RunState.EXPIRED | RunState.CANCELLED as state:
            reason = line.run.reason or ""
            return reason if reason.startswith(f"{state}: ") else f"{state}{_because(line)}"


# -- runs that are not final


def _planned(known: Situation) -> str:
    line, run = known.line, known.queued
    if line.node_id is not None and line.begun_ms is not None:
        return f"{line.node_id} has it, and starts it at {_at(line.begun_ms)}"
    due_ms = run.due_ms if run else line.run.run_after_ms
    if due_ms > known.now_ms:
        return _and_nobody_works(known, f"planned: it may start at {_at(due_ms)}")
    if not known.workers:
        return f"no worker serves the pool {_pool(known)}: it is due since {_at(due_ms)}"
    if run is None:
        return f"due since {_at(due_ms)}, and about to be queued"
    if all(run.handler in each.lacks for each in known.workers):
        return _no_handler(known, run.handler)
    if run.claim_key is not None and len(known.holders) >= run.max_running and known.in_pool.held < _most(known):
        return _key(known, run.claim_key)  # nobody has looked at it yet
    return f"waits for a free slot of the pool {_pool(known)}{_slots(known)}: it is due since {_at(due_ms)}"


def _most(known: Situation) -> int:
    there = max(sum(each.slots for each in known.workers), known.in_pool.held)  # workers that are ending use some too
    return there if known.in_pool.most is None else min(there, known.in_pool.most)


def _slots(known: Situation) -> str:
    most = _most(known)
    others = known.ready - 1
    waiting = f", {others:,} other {'run waits' if others == 1 else 'runs wait'}" if others > 0 else ""
    free = "; catch-up leaves some free for live runs" if known.line.run.lane == "catchup" else ""
    return f" ({known.in_pool.held} of {most} in use{waiting}{free})"


def _running(line: RunLine) -> str:
    said = f"attempt {line.run.attempt} runs on {line.node_id} since {_at(line.begun_ms)}"
    if line.progress is not None:
        said += f", {line.progress:.0%} done"
    if line.note:
        said += f": {line.note}"
    return said if line.cancel is None else f"{said}; it was asked to stop: {line.cancel}"


def _retrying(known: Situation) -> str:
    line = known.line
    said = f"{_tries(line)} so far{_because(line)}"
    if line.waiting is not None:
        return _and_nobody_works(known, f"{said}; its next try {_waits(known)}")
    next_ms = line.next_ms if line.node_id is None else line.begun_ms
    if next_ms is not None and next_ms > known.now_ms:
        return _and_nobody_works(known, f"{said}; the next try is at {_at(next_ms)}")
    if not known.workers:
        return f"{said}; no worker serves the pool {_pool(known)} for its next try"
    return f"{said}; its next try waits for a free slot of the pool {_pool(known)}{_slots(known)}"


def _ends(known: Situation) -> str:
    """Its job is over. Whoever meets it next closes it."""
    line = known.line
    due_ms = line.next_ms if line.run.state is RunState.RETRYING else line.run.run_after_ms
    when = f"at {_at(due_ms)}" if due_ms is not None and due_ms > known.now_ms else "when its turn comes"
    told = f"its job was {known.ended}, so it is closed as cancelled {when}"
    return f"{_tries(line)} so far{_because(line)}; {told}" if line.run.state is RunState.RETRYING else told


def _and_nobody_works(known: Situation, said: str) -> str:
    return said if known.workers else f"{said}; no worker serves the pool {_pool(known)} now"


# -- what it waits for


def _waits(known: Situation) -> str:
    waiting = known.line.waiting
    assert waiting is not None
    match waiting.gate:
        case "key":
            return _key(known, waiting.key)
        case "former":
            return _former(known)
        case "upstream":
            return _upstream(known)
        case "tenant":
            return f"waits for tenant {waiting.key}: {_used(known)} in flight"
        case "quota_tenant":
            pool, _, tenant = waiting.key.partition(":")
            return f"waits for tenant {tenant} in the pool {pool}: {_used(known)} in flight there"
        case "quota_type":
            pool, _, kind = waiting.key.partition(":")
            return f"waits for type {kind} in the pool {pool}: {_used(known)} in flight there"
        case "rate":
            return f"waits for the rate of tenant {waiting.key}{_next_start(known)}"
        case "paused":
            return _held_back(known, waiting)
        case "handler":
            return _no_handler(known, waiting.key)
        case other:  # a newer program may know more gates
            return f"waits for {other} {waiting.key} since {_at(waiting.since_ms)}"


def _key(known: Situation, name: str) -> str:
    own = name.startswith("j:")
    key = "its own job" if own else f"the key {name.split(':', 2)[-1]}"
    if known.holders:
        held = "; ".join(_holder(each, own, known.now_ms) for each in known.holders)
        return f"waits for {key}: {held}"
    if known.earlier is not None:
        first = known.earlier.run
        return f"waits for its turn: run {first.run_id} of {_at(first.scheduled_for_ms)} comes first"
    return f"waited for {key}, which is free now: it is looked at next"


def _former(known: Situation) -> str:
    if known.queued is not None and known.queued.overlap not in get_args(OverlapPolicy):
        return f"waits for a worker of a newer release, which knows what overlap: {known.queued.overlap} means"
    if not known.holders:
        return "waited for its own job, which is free now: it is looked at next"
    held = "; ".join(_holder(each, True, known.now_ms) for each in known.holders)
    return f"waits for its own job, which was edited meanwhile: {held}"


def _holder(holder: KeyHolder, own: bool, now_ms: int) -> str:
    who = f"run {holder.run_id}" if own else f"run {holder.run_id} of job {holder.job}"
    verb = "runs" if own else "holds it"
    if holder.node_id is None:
        tried = f"is tried again at {_at(holder.at_ms)}" if holder.at_ms > now_ms else "waits for its next try"
        return f"{who} {tried}" if own else f"{who} holds it and {tried}"
    if holder.at_ms > now_ms:
        return f"{who} {'starts' if own else 'holds it and starts'} at {_at(holder.at_ms)}"
    return f"{who} {verb} since {_at(holder.at_ms)}"


def _upstream(known: Situation) -> str:
    asked = [_as_seen(each, known) for each in known.upstream]
    found = verdict(asked, known.now_ms, None)
    if not isinstance(found, WaitFor):
        return "waited for its upstream jobs, which are ready now: it is looked at next"
    line = known.upstream_runs.get(found.job_id)
    answer = next((each.answer for each in asked if each.job_id == found.job_id), None)
    one = f" (run {line.run.run_id} of {_at(line.run.scheduled_for_ms)})" if line and line.run.state == answer else ""
    return f"waits for its upstream jobs: {found.text}{one}"


def _as_seen(upstream: Upstream, known: Situation) -> Upstream:
    """With the state that people see: the row of a run says planned until it is final."""
    line = known.upstream_runs.get(upstream.job_id)
    seen = upstream.answer == RunState.PLANNED and line is not None and not line.run.state.is_final
    return upstream._replace(answer=line.run.state) if line is not None and seen else upstream


def _used(known: Situation) -> str:
    held, most = known.cap
    return f"{held} of {most}" if most is not None else f"{held}, and no limit any more,"


def _next_start(known: Situation) -> str:
    return "" if known.next_start_ms is None else f": the next start is at {_at(known.next_start_ms)}"


def _held_back(known: Situation, waiting: Waiting) -> str:
    scope, _, name = waiting.key.partition(":")
    if known.control is None:
        return f"was held back with {scope} {name}, which is released: it is looked at next"
    control = known.control.control
    drawn = "runs" if known.queued is None or stands_alone(known.queued.overlap) else "jobs"
    how = "is paused" if control.percent == 0 else f"goes on with {control.percent} % of its {drawn}"
    until = "" if control.until_ms is None else f" until {_at(control.until_ms)}"
    return f"held back: {scope} {name} {how}{until} by {known.control.actor}: {known.control.reason}"


def _no_handler(known: Situation, handler: str) -> str:
    pool = _pool(known)
    if handler.startswith("publish:"):
        return f"waits for a worker that has {handler}, and {NO_PUBLISHER}"
    if not known.workers:
        return f"waits for a worker of the pool {pool} that has {handler}"
    has = [each.node_id for each in known.workers if handler not in each.lacks]
    if has:
        look = "looks" if len(has) == 1 else "look"
        return f"waited for a worker of the pool {pool} that has {handler}: {_some(has)} {look} at it next"
    return f"no worker of the pool {pool} has {handler}; {_reasons(known, handler)}"


def _reasons(known: Situation, handler: str) -> str:
    """Why each of them has it not; workers of one kind have the same reason."""
    by_reason: dict[str, list[str]] = {}
    for each in known.workers:
        by_reason.setdefault(each.lacks[handler], []).append(each.node_id)
    told = [f"{_some(names)}: {reason}" if reason else _some(names) for reason, names in by_reason.items()]
    return "; ".join(told[:_SHOWN]) + ("; and others" if len(told) > _SHOWN else "")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


# -- final runs


def _succeeded(line: RunLine) -> str:
    tries = "" if line.run.attempt <= 1 else f", after {_tries(line)}"
    ended = "" if line.run.finished_ms is None else f" at {_at(line.run.finished_ms)}"
    lasted = line.lasted_ms(0)
    return f"succeeded{ended}{tries}" + ("" if lasted is None else f": it took {rough_text(lasted)}")


def _tries(line: RunLine) -> str:
    """2 failed attempts and 1 lost one."""
    failed, lost = line.run.failures, line.run.losses
    said = [f"{failed} failed attempt{'' if failed == 1 else 's'}"] if failed else []
    if lost:
        said.append(f"{lost} lost {'one' if said else 'attempt'}{'' if lost == 1 else 's'}")
    return " and ".join(said) or f"{line.run.attempt} attempt{'' if line.run.attempt == 1 else 's'}"


def _because(line: RunLine) -> str:
    return f": {line.run.reason}" if line.run.reason else ""


def _pool(known: Situation) -> str:
    return known.queued.pool if known.queued else known.line.pool


def _at(ms: int | None) -> str:
    if ms is None:
        return "?"
    return from_ms(ms).isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")
