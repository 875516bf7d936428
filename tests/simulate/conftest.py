"""The rounds of the long tests (tests/soak)."""

from tests.soak.rounds import soak

__all__ = ["soak"]
