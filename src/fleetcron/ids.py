"""Identifiers that sort by the time they were made: UUID version 7 (RFC 9562)."""

import os
from collections.abc import Callable
from uuid import UUID


def uuid7(now_ms: int, random: Callable[[int], bytes] = os.urandom) -> str:
    """48 bits of time, 74 bits of chance. `random(n)` gives n bytes."""
    if not 0 <= now_ms < 1 << 48:
        raise ValueError(f"{now_ms} ms since 1970 does not fit into the 48 bits that a UUID has for time")
    chance = int.from_bytes(random(10), "big")
    high = chance >> 62 & 0xFFF  # 12 bits beside the version, 62 beside the variant
    low = chance & (1 << 62) - 1
    return str(UUID(int=now_ms << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low))
