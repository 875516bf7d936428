"""The command in an empty folder."""

from tests.cli.conftest import quick

__all__ = ["quick"]
