"""A lease: who holds something, until when, and the number that makes a stale holder harmless."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """`term` is the fencing token: it rises with every change of owner and is checked by the write itself."""

    owner: str
    term: int
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """From the instant of its expiry on, by the database's clock."""
        return now_ms >= self.expires_ms
