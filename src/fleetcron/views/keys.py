"""API keys as documents. No secret is ever among them."""

from typing import Any

from fleetcron.model.access import Credential
from fleetcron.policy.access import state_of
from fleetcron.views.instants import as_json as instant_json


def key_json(credential: Credential, now_ms: int) -> dict[str, Any]:
    return {
        "key_id": credential.key_id,
        "name": credential.name,
        "role": credential.role,
        "tenant": credential.tenant,
        "pools": list(credential.pools),
        "rate_per_minute": credential.rate_per_minute,
        "state": state_of(credential, now_ms),
        "created_at": instant_json(credential.created_ms),
        "created_by": credential.created_by,
        "expires_at": instant_json(credential.expires_ms),
        "last_used_at": instant_json(credential.last_used_ms),
        "revoked_at": instant_json(credential.revoked_ms),
        "revoked_by": credential.revoked_by,
        "reason": credential.revoked_why,
    }
