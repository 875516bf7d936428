"""Who asks, as the server sees it: for programs that want to know what their key may do."""

from typing import Any

from pydantic import BaseModel, Field

from fleetcron.api.access import TheCaller
from fleetcron.api.routing import needs, router
from fleetcron.model.access import Role

routes = router("access")


class Me(BaseModel):
    name: str
    key_id: str
    role: Role
    tenant: str | None = Field(description="null: all tenants")
    pools: list[str]
    open_access: bool = Field(description="no key exists, and everybody on this machine is admin")


@routes.get("/me", response_model=Me, summary="Whose key this is", **needs(Role.VIEWER))
async def get_me(caller: TheCaller) -> dict[str, Any]:
    key = caller.credential
    return {
        "name": key.name,
        "key_id": key.key_id,
        "role": key.role,
        "tenant": key.tenant,
        "pools": list(key.pools),
        "open_access": caller.is_open,
    }
