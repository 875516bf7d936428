"""May these jobs be written? The limits of their tenants: how many jobs, and how large a payload (S3-54, S3-59).

Asked inside the transaction that writes. Whoever adds jobs to a tenant with a cap waits for the one before, so two that
come at once cannot both take the last place; tenants without a cap do not wait for anybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetcron.model import payload
from fleetcron.model.amendment import Amendment
from fleetcron.model.standing import Standing
from fleetcron.store.engine import Script
from fleetcron.store.rows import texts
from fleetcron.store.written import Refused

_OPEN = ("active", "paused")


@dataclass(frozen=True, slots=True)
class RefusedJobs(Refused):
    """Some jobs may not be written, by id, and why. Nothing was written: ask again without them."""

    jobs: Mapping[str, str]


def admit(amendments: Sequence[Amendment]) -> Script[RefusedJobs | None]:
    """Part of the verb that writes jobs. The first ones get the places that are left."""
    found = yield from _refusals(amendments)
    return RefusedJobs("a tenant has reached a limit", found) if found else None


def _refusals(amendments: Sequence[Amendment]) -> Script[dict[str, str]]:
    written = [a for a in amendments if a.action in ("create", "edit")]
    tenants = sorted({_tenant(a) for a in written})
    if not tenants:
        return {}
    found: dict[str, str] = {}
    caps = {row["tenant"]: row for row in (yield "tenants_caps", {"tenants": texts(tenants)})}
    for tenant in sorted(caps):
        mine = [a for a in written if _tenant(a) == tenant]
        found |= _too_large(mine, caps[tenant]["max_payload"])
        added = [a for a in mine if _is_open(a.after) and not _is_open(a.before) and _id(a) not in found]
        if added and caps[tenant]["max_jobs"] is not None:
            found |= yield from _too_many(tenant, added, caps[tenant]["max_jobs"])
    return found


def _too_large(amendments: Sequence[Amendment], most: int) -> Mapping[str, str]:
    """An edit that leaves the payload alone is not the one that made it too large."""
    found: dict[str, str] = {}
    for a in amendments:
        wanted = a.after.job.definition.payload
        if a.before is not None and a.before.job.definition.payload == wanted:
            continue
        size = payload.size(wanted)
        if size > most:
            tenant = _tenant(a)
            found[_id(a)] = (
                f"its payload has {size:,} bytes, and tenant {tenant} may have {most:,}; make it smaller,"
                f" or: fleetcron tenants set {tenant} --max-payload {size}"
            )
    return found


def _too_many(tenant: str, added: Sequence[Amendment], most: int) -> Script[dict[str, str]]:
    yield "work_lock", {"name": f"jobs:{tenant}"}
    [counted] = yield "jobs_count_open", {"tenant": tenant}
    names = texts(a.after.job.definition.name for a in added if a.before is None)
    taken = {row["name"] for row in (yield "jobs_taken", {"tenant": tenant, "names": names})}
    # a name that is taken adds nothing: somebody was faster, and the job will be looked at again
    new = [a for a in added if a.before is not None or a.after.job.definition.name not in taken]
    now = counted["jobs"]
    room = max(0, most - now)
    why = (
        f"tenant {tenant} has {now + min(room, len(new)):,} of at most {most:,} jobs; delete or cancel some,"
        f" or: fleetcron tenants set {tenant} --max-jobs {now + len(new)}"
    )
    return {_id(a): why for a in new[room:]}


def _is_open(standing: Standing | None) -> bool:
    return standing is not None and standing.job.state in _OPEN


def _tenant(a: Amendment) -> str:
    return a.after.job.definition.tenant


def _id(a: Amendment) -> str:
    return a.after.job.job_id
