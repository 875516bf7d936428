"""Signed requests, as Standard Webhooks writes them: the receiver can tell that a call is ours, whole and not old."""

import base64
import hmac


def signature_headers(secret: bytes, call_id: str, now_s: int, body: bytes) -> dict[str, str]:
    """`call_id` stays the same when a call is repeated."""
    mac = hmac.digest(secret, f"{call_id}.{now_s}.".encode() + body, "sha256")
    return {
        "webhook-id": call_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
