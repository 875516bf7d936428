"""Many jobs over an API: in parts that a request can carry, in an order in which they can be written.

Each part is written by itself, as `apply` on a database writes some hundred jobs at a time: what others depend on comes
first, so that a part finds it. Only the last one prunes, and it names what came before it: that is not gone. A
rehearsal writes nothing that the next part could find, so it is one request or none.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fleetcron.cli.asking import Doc
from fleetcron.cli.tables import numbered
from fleetcron.client.errors import Refused
from fleetcron.policy.depends import upstream_first

MOST_JOBS: Final = 1_000  # of a part: a second or two of work, so that a bar moves
MOST_BYTES: Final = 8 * 1024 * 1024  # of its jobs; a request may have 16 MiB
REHEARSED: Final = 20_000  # jobs that one request may have
_REHEARSED_BYTES: Final = 15 * 1024 * 1024


def parts(body: Doc) -> Sequence[Doc]:
    """The bodies to be sent one after the other; one alone is the body as it is."""
    cut = list(_cut(_upstream_first(body["jobs"])))
    if len(cut) < 2:
        return [body]
    before = [full(job) for some in cut[:-1] for job in some]
    made: list[dict[str, Any]] = [{**body, "jobs": some, "calendars": [], "prune": None} for some in cut]
    made[0]["calendars"] = body["calendars"]
    if body["prune"] not in (None, "keep"):
        made[-1] |= {"prune": body["prune"], "besides": before}
    return made


def whole(body: Doc) -> Doc:
    """The body, if a rehearsal of it is possible."""
    jobs = body["jobs"]
    size = sum(map(_size, jobs))
    if len(jobs) > REHEARSED or size > _REHEARSED_BYTES:
        raise Refused(
            f"{numbered(len(jobs), 'job')} ({size / 2**20:.0f} MiB) are too many to be rehearsed over an API, which"
            f" takes {REHEARSED:,} ({_REHEARSED_BYTES / 2**20:.0f} MiB) at once",
            code="too_large",
            hint="name fewer files, or ask the database itself (--database URL); apply sends any number, in parts",
        )
    return body


def full(named: Doc) -> str:
    return f"{named['tenant']}/{named['name']}"


def in_order(jobs: Sequence[Doc], wanted: Sequence[Doc]) -> list[Doc]:
    """What became of jobs, in the order of the files; what the files do not have comes after it."""
    places = {full(job): at for at, job in enumerate(wanted)}
    return sorted(jobs, key=lambda job: places.get(full(job), len(places)))


def _upstream_first(jobs: Sequence[Doc]) -> list[Doc]:
    known = {full(job): job for job in jobs}
    tenants = {name: name.partition("/")[0] for name in known}
    needs = {name: [f"{tenants[name]}/{need}" for need in job.get("depends_on", ())] for name, job in known.items()}
    return [known[name] for name in upstream_first(needs)]


def _cut(jobs: Sequence[Doc]) -> Iterator[list[Doc]]:
    some: list[Doc] = []
    size = 0
    for job in jobs:
        more = _size(job)
        if some and (len(some) == MOST_JOBS or size + more > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(job)
        size += more
    if some:
        yield some


def _size(job: Doc) -> int:
    return len(json.dumps(job, ensure_ascii=False).encode())
