"""CronJobs of Kubernetes as jobs.

Two things are not what their names say. `Forbid` does not skip a tick for good: when the run before it ends, the
controller starts the newest tick that it has missed, if the starting deadline allows. That is our `collapse`. And at
clock changes its schedules know no defaults: what falls into a gap is lost, what falls into a fold runs twice.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from fleetcron.errors import ScheduleError
from fleetcron.imports.containers import run_of
from fleetcron.imports.dialect import KUBERNETES, Unreadable, cron_document, expression, is_utc, read_field
from fleetcron.imports.manifests import Manifest, read_manifests
from fleetcron.imports.plan import NO_TIMEOUT, Document, Finding, Origin, Plan
from fleetcron.times.expression import FIVE
from fleetcron.times.expression import MACROS as OURS
from fleetcron.times.zones import zone

_VERSIONS: Final = ("batch/v1", "batch/v1beta1", "batch/v2alpha1")
_MACROS: Final = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_GO_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|m|s|ms))+")
_ZONE_IN_FRONT: Final = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)")
_OVERLAP: Final = {"Allow": "allow", "Forbid": "collapse", "Replace": "cancel_previous"}
_BACKOFF_LIMIT: Final = 6  # if a manifest does not say
_OF_THE_CRONJOB: Final = frozenset(
    ("schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "jobTemplate",
     "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
)  # fmt: skip
_OF_THE_JOB: Final = frozenset(("template", "backoffLimit", "activeDeadlineSeconds", "completions", "parallelism",
                                "ttlSecondsAfterFinished", "completionMode", "suspend"))  # fmt: skip
_OF_THE_POD: Final = frozenset(("containers", "restartPolicy", "activeDeadlineSeconds", "dnsPolicy", "schedulerName",
                                "terminationGracePeriodSeconds", "securityContext"))  # fmt: skip


def add_manifests(plan: Plan, name: str, text: str, suspended: bool = False) -> None:
    """Every CronJob of a text. Those that are suspended are left out unless they are wished for."""
    others: dict[str, int] = {}
    for manifest in read_manifests(text, name):
        if manifest.kind != "CronJob":
            others[manifest.kind or "?"] = others.get(manifest.kind or "?", 0) + 1
            continue
        meta = manifest.body.get("metadata")
        named = meta.get("name") if isinstance(meta, dict) else None
        origin = Origin(name, manifest.line, str(named or "no name"))
        try:
            if manifest.version not in _VERSIONS:
                raise Unreadable(f"apiVersion {manifest.version or '(none)'} is not one of {', '.join(_VERSIONS)}")
            _add(plan, origin, manifest, suspended)
        except (Unreadable, ScheduleError) as error:
            said = error.mistake if isinstance(error, ScheduleError) else str(error)
            plan.leave_out(origin, said, error.hint)
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        plan.say("note", f"only CronJobs are imported; there are also {kinds}", origin=Origin(name))


def _add(plan: Plan, origin: Origin, manifest: Manifest, suspended: bool) -> None:
    meta, spec = _mapping(manifest.body, "metadata"), _mapping(manifest.body, "spec")
    job = _mapping(_mapping(spec, "jobTemplate"), "spec")
    pod = _mapping(_mapping(job, "template"), "spec")
    findings: list[Finding] = []
    if spec.get("suspend") is True:
        if not suspended:
            raise Unreadable("it is suspended", "--suspended imports it all the same; then pause the job")
        findings.append(Finding("differs", "it is suspended there, and will run here", "fleetcron jobs pause NAME"))
    full_name = f"{meta.get('namespace', 'default')}/{meta.get('name', '')}"
    document: Document = {
        "description": f"CronJob {full_name} ({origin.file}:{origin.line})",
        "schedule": _schedule(plan, spec, findings),
        "run": run_of(pod, findings),
    }
    document |= _rules(spec, job, pod, findings)
    if plan.wish.defaults:
        document = {key: document[key] for key in ("description", "schedule", "run")}
    _say_rest(spec, job, pod, findings)
    plan.add(origin, str(meta.get("name") or "job"), document, findings)


def _schedule(plan: Plan, spec: Mapping[str, Any], findings: list[Finding]) -> Document:
    text = " ".join(str(spec.get("schedule") or "").split())
    if not text:
        raise Unreadable("spec.schedule is missing", "Kubernetes would refuse it too: write one, such as '0 2 * * *'")
    timezone = str(spec.get("timeZone") or "")
    if in_front := _ZONE_IN_FRONT.fullmatch(text):
        timezone, text = timezone or in_front[1], in_front[2]
    if not timezone:
        timezone = "UTC"
        plan.say("note", "schedules without a timeZone are read in UTC", "Kubernetes takes the controller's own zone")
    timezone = zone(timezone).name
    if text.startswith("@every "):
        every = text.removeprefix("@every ").strip()
        if not _GO_DURATION.fullmatch(every):
            raise Unreadable(f"'{every}' is not a duration")
        findings.append(Finding("differs", f"'{text}' is counted from the creation of the job"))
        return {"every": every}
    if text.startswith("@"):
        if text not in _MACROS:
            raise Unreadable(f"Kubernetes does not know {text}")
        written, text = text, OURS[text]
    else:
        words = text.split()
        if len(words) != len(FIVE):
            raise Unreadable(f"'{text}' has {len(words)} fields, and not 5")
        fields = [read_field(kind, word, KUBERNETES) for kind, word in zip(FIVE, words, strict=True)]
        written = expression(fields, fields[2].star or fields[4].star, text)
        if written.upper() != text.upper():
            findings.append(Finding("note", f"'{text}' is written '{written}' here, which means the same"))
    if plan.wish.defaults:
        return cron_document(written, timezone)
    document = cron_document(written, timezone, "skip", "both")
    if not is_utc(timezone) and ("dst_gap" in document or "dst_fold" in document):
        hint = "--defaults runs it once in both cases"
        findings.append(
            Finding("note", "as in Kubernetes, a time in a gap is skipped, and in a fold it runs twice", hint)
        )
    return document


def _rules(
    spec: Mapping[str, Any], job: Mapping[str, Any], pod: Mapping[str, Any], findings: list[Finding]
) -> Document:
    policy = str(spec.get("concurrencyPolicy") or "Allow")
    if policy not in _OVERLAP:
        raise Unreadable(f"concurrencyPolicy {policy} is not one of {', '.join(_OVERLAP)}")
    rules: Document = {"overlap": _OVERLAP[policy], "misfire": {"policy": "latest"}}
    if (deadline := _seconds(spec, "startingDeadlineSeconds")) is not None:
        rules["start_deadline"] = f"{deadline}s"
        # what is later than the deadline is not started; grace cannot be longer than what is caught up
        rules["misfire"] |= {"window": f"{deadline}s", "grace": f"{min(deadline, 60)}s"}
    else:
        text = "without a starting deadline, what is missed is caught up for 24 h, and runs that wait for a worker all "
        findings.append(Finding("note", text + "start when one comes, as pods do when a node comes"))
    limit = _seconds(job, "backoffLimit", least=0)
    rules["retry"] = {
        "max_attempts": (_BACKOFF_LIMIT if limit is None else limit) + 1,
        "backoff": {"exponential": {"first": "10s", "max": "6m"}},
        "jitter": 0.0,
    }
    whole = _seconds(job, "activeDeadlineSeconds") or _seconds(pod, "activeDeadlineSeconds")
    rules["timeout"] = NO_TIMEOUT if whole is None else f"{whole}s"
    if whole is not None and rules["retry"]["max_attempts"] > 1:
        findings.append(Finding("differs", f"activeDeadlineSeconds {whole} is the timeout of each attempt, not of all"))
    for name in ("completions", "parallelism"):
        if (job.get(name) or 1) != 1:
            raise Unreadable(f"{name} is {job[name]}: a run is one piece of work", "make it several jobs")
    if job.get("completionMode") not in (None, "NonIndexed"):
        raise Unreadable(f"completionMode {job['completionMode']}: a run is one piece of work")
    return rules


def _say_rest(spec: Mapping[str, Any], job: Mapping[str, Any], pod: Mapping[str, Any], findings: list[Finding]) -> None:
    kept = [name for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit") if name in spec]
    kept += ["ttlSecondsAfterFinished"] if "ttlSecondsAfterFinished" in job else []
    if kept:
        findings.append(Finding("note", f"{', '.join(kept)}: runs are kept for 90 days", "retention says otherwise"))
    for what, given, known in (
        ("CronJob", spec, _OF_THE_CRONJOB),
        ("job", job, _OF_THE_JOB),
        ("pod", pod, _OF_THE_POD),
    ):
        rest = [name for name in given if name not in known and given[name]]
        if what == "pod" and given.get("securityContext"):
            rest.append("securityContext")
        if rest:
            findings.append(Finding("differs", f"not translated, of the {what}: {', '.join(rest)}"))


def _seconds(given: Mapping[str, Any], name: str, least: int = 1) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Unreadable(f"{name} is {value!r}, and not a number from {least} on")
    return value


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"{name} is not a mapping")
    return value
