"""Signed requests, as Standard Webhooks writes them: the receiver can tell that a call is ours, whole and not old.

The fleet has one secret, and each tenant a key that follows from it, but not the other way: whoever receives the calls
of one tenant cannot forge those of another.
"""

import base64
import hmac


def key_of(secret: bytes, tenant: str) -> bytes:
    return hmac.digest(secret, f"fleetcron calls of {tenant}".encode(), "sha256")


def shown(key: bytes) -> str:
    """As libraries for webhooks want it."""
    return f"whsec_{base64.b64encode(key).decode()}"


def signature_headers(secret: bytes, call_id: str, now_s: int, body: bytes) -> dict[str, str]:
    """`call_id` stays the same when a call is repeated."""
    mac = hmac.digest(secret, f"{call_id}.{now_s}.".encode() + body, "sha256")
    return {
        "webhook-id": call_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
