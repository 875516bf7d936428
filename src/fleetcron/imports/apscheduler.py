"""Jobs of APScheduler 3 as jobs of ours: from the rows of a job store, or from `scheduler.export_jobs(file)`.

The state of a job is a pickle. It is read without running any of it (`pickles.py`), so neither APScheduler nor the
project has to be here, and nobody has to trust the rows.

A function that takes no arguments is run as a Python job. One that takes some is run by a small command, because a
handler of ours is given a context, not these arguments.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from fleetcron.errors import DefinitionError, Mistake, ScheduleError
from fleetcron.imports.ap_triggers import When, when_of
from fleetcron.imports.dialect import Unreadable
from fleetcron.imports.pickles import BadPickle, Inert, read_pickle, stand_in
from fleetcron.imports.plan import NO_TIMEOUT, Document, Finding, Origin, Plan
from fleetcron.model.writing import instant_text

_GRACE_S: Final = 60  # ours, unless a job says otherwise
# the function, its arguments and its keywords come as arguments: nothing is put into the text of a program
_CALLER: Final = (
    "import functools, importlib, json, sys; module, _, name = sys.argv[1].partition(':'); "
    "function = functools.reduce(getattr, name.split('.'), importlib.import_module(module)); "
    "function(*json.loads(sys.argv[2]), **json.loads(sys.argv[3]))"
)


def add_row(plan: Plan, source: str, job_id: str, state: bytes) -> None:
    """A row of a job store: `job_state` as it is."""
    origin = Origin(source, None, job_id)
    try:
        read = read_pickle(state)
        if not isinstance(read, dict):
            raise Unreadable(f"its state is a {type(read).__name__}")
        _add(plan, origin, read)
    except (BadPickle, Unreadable, ScheduleError) as error:
        _leave_out(plan, origin, error)


def add_export(plan: Plan, source: str, text: str) -> None:
    """What `scheduler.export_jobs` wrote."""
    try:
        read = json.loads(text, object_hook=_revived)
    except (ValueError, RecursionError) as error:
        raise DefinitionError(
            [Mistake(source, f"not an export: {error}", "scheduler.export_jobs(file) makes one")]
        ) from None
    if not isinstance(read, dict) or read.get("version") != 1 or not isinstance(read.get("jobs"), list):
        raise DefinitionError(
            [Mistake(source, "is not an export of version 1", "scheduler.export_jobs(file) makes one")]
        )
    states = [job.state if isinstance(job, Inert) else job for job in read["jobs"]]
    for state in sorted(states, key=lambda each: str(each.get("id")) if isinstance(each, dict) else ""):
        origin = Origin(source, None, str(state.get("id") if isinstance(state, dict) else "?"))
        try:
            if not isinstance(state, dict):
                raise Unreadable("it is not the state of a job")
            _add(plan, origin, state)
        except (BadPickle, Unreadable, ScheduleError) as error:
            _leave_out(plan, origin, error)


def _revived(given: dict[str, Any]) -> Any:
    """Objects of an export are written as class and state, or as a pickle."""
    if isinstance(packed := given.get("__apscheduler_pickle__"), str):
        try:
            return read_pickle(base64.b64decode(packed, validate=True))
        except ValueError:
            return stand_in("unreadable")()
    if isinstance(name := given.get("__apscheduler_class__"), str):
        made = stand_in(name.replace(":", "."))()
        state = given.get("__apscheduler_state__")
        made.state.update(state if isinstance(state, dict) else {})
        return made
    return given


def _leave_out(plan: Plan, origin: Origin, error: Exception) -> None:
    text = error.mistake if isinstance(error, ScheduleError) else str(error)
    plan.leave_out(origin, text, getattr(error, "hint", None))


def _add(plan: Plan, origin: Origin, state: Mapping[str, Any]) -> None:
    if state.get("next_run_time") is None:
        raise Unreadable("it is paused: it has no next run", "resume it there first, or write the job yourself")
    when = when_of(state.get("trigger"))
    findings = list(when.findings)
    name = str(state.get("name") or "")
    document: Document = {
        "description": f"{name or state.get('func')}, from {origin}",
        "schedule": when.entries[0] if len(when.entries) == 1 else when.entries,
        "run": _run(state, findings),
    }
    for key, at in (("starts_at", when.starts_ms), ("ends_at", when.ends_ms)):
        if at is not None:
            document[key] = instant_text(at)
    if when.jitter_s:
        document["jitter"] = f"{when.jitter_s}s"
    if not plan.wish.defaults:
        document |= _rules(state, when, findings)
    if state.get("executor") not in (None, "default"):
        findings.append(Finding("differs", f"its executor {state['executor']} is left out", "a pool may stand for it"))
    plan.add(origin, str(state.get("id") or name or "job"), document, findings)


def _run(state: Mapping[str, Any], findings: list[Finding]) -> Document:
    function = str(state.get("func") or "")
    args, kwargs = state.get("args") or (), state.get("kwargs") or {}
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        raise Unreadable("its arguments are not a list and a mapping")
    if not args and not kwargs:
        hint = "it must take no arguments, or our (ctx) or (ctx, payload)"
        findings.append(Finding("note", f"workers run {function} if executor.handlers names it", hint))
        return {"python": function}
    try:
        given = [json.dumps(each, ensure_ascii=False) for each in (list(args), kwargs)]
    except (TypeError, ValueError, RecursionError):
        raise Unreadable("its arguments have a value that JSON does not have", "write a handler of its own") from None
    findings.append(Finding("differs", "its function takes arguments: it runs in a Python process of its own"))
    return {"command": ["python3", "-c", _CALLER, function, *given]}


def _rules(state: Mapping[str, Any], when: When, findings: list[Finding]) -> Document:
    instances = state.get("max_instances") or 1
    overlap: object = "skip" if instances == 1 else {"policy": "allow", "max_running": instances}
    rules: Document = {"timeout": NO_TIMEOUT, "retry": {"max_attempts": 1}, "overlap": overlap}
    grace = state.get("misfire_grace_time")
    policy = "latest" if state.get("coalesce") else "all"
    if isinstance(grace, int | float) and grace <= _GRACE_S:
        rules["misfire"] = "skip"
        if grace < _GRACE_S:
            findings.append(
                Finding("note", f"a run may be {_GRACE_S} s late here, and {grace} s there (misfire_grace_time)")
            )
    elif isinstance(grace, int | float):
        rules["misfire"] = {"policy": policy, "window": f"{round(grace)}s"}
    else:
        rules["misfire"] = policy
        findings.append(Finding("note", "without a misfire_grace_time, what is missed is caught up for 24 h"))
    if len(when.entries) == 1 and "at" in when.entries[0]:
        rules["misfire"] = {"policy": "latest"}  # there is only this one tick to lose
    elif isinstance(grace, int | float):  # what is later than that is not started there either
        rules["start_deadline"] = f"{max(round(grace), _GRACE_S) + when.jitter_s}s"
    return rules
