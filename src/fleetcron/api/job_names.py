"""Jobs in a path: by name, or by `id:` and the id. No name has a colon, so nobody has to guess which is meant."""

import re
from typing import Annotated, Final

from fastapi import Depends, Path

from fleetcron.api.access import Tenant, TheCaller, TheContext
from fleetcron.api.problems import not_found

_PREFIX: Final = "id:"
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def _named(
    context: TheContext,
    caller: TheCaller,
    name: Annotated[str, Path(max_length=200, description="the name of a job, or `id:` and its `job_id`")],
    tenant: Tenant = None,
) -> str:
    """Looked up within the tenant that the request is about, like a name: an id lets nobody see more."""
    if not name.startswith(_PREFIX):
        return name
    own, job_id = caller.tenant(tenant), name.removeprefix(_PREFIX)
    found = await context.store.jobs.name_of(own, job_id) if _ID.fullmatch(job_id) else None
    if found is None:
        raise not_found(f"job with the id {job_id} of tenant {own}")
    return found


Name = Annotated[str, Depends(_named)]
